use super::comparison::{Target, WINDOW};
use super::*;

fn target(name: &str) -> Target {
    Target { verb: "apply", object: format!("configmaps default/{name}") }
}

fn comparison() -> Comparison {
    let comparison = Comparison::default();
    comparison.begin("d1");
    comparison
}

#[tokio::test(start_paused = true)]
async fn the_last_writes_of_both_sides_are_compared_by_path_and_never_by_value() {
    let comparison = comparison();
    comparison.wrote(Side::Serving, target("a"), r#"{"metadata":{"labels":{"app":"old"}}}"#);
    comparison.wrote(Side::Serving, target("a"), r#"{"metadata":{"labels":{"app":"hunter2"}}}"#);
    comparison.wrote(Side::Shadow, target("a"), r#"{"metadata":{"labels":{"app":"hunter3"}}}"#);
    comparison.wrote(Side::Shadow, target("b"), r#"{"data":{"x":"1"}}"#);
    comparison.wrote(Side::Serving, target("b"), r#"{ "data": {"x": "1"} }"#);
    let view = comparison.view().unwrap();
    assert_eq!((view.compared, view.equal, view.different, view.waiting), (2, 1, 1, 0));
    let difference = &view.differences[0];
    assert_eq!(difference.path, "/metadata/labels/app");
    assert_eq!(difference.object, "configmaps default/a");
    assert_ne!(difference.serving, difference.shadow);
    let json = serde_json::to_string(&view).unwrap();
    assert!(!json.contains("hunter"), "{json}");
}

#[tokio::test(start_paused = true)]
async fn a_write_without_a_counterpart_counts_for_its_side_after_the_window() {
    let comparison = comparison();
    comparison.wrote(Side::Serving, target("a"), "{}");
    comparison.wrote(Side::Shadow, target("b"), "{}");
    comparison.wrote(Side::Shadow, target("c"), "{}");
    tokio::time::advance(WINDOW).await;
    let view = comparison.view().unwrap();
    assert_eq!((view.only_serving, view.only_shadow, view.waiting), (0, 0, 3));
    // Written again, so it waits again.
    comparison.wrote(Side::Shadow, target("c"), r#"{"x":1}"#);
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let view = comparison.view().unwrap();
    assert_eq!((view.only_serving, view.only_shadow, view.waiting), (1, 1, 1));
}

#[tokio::test(start_paused = true)]
async fn writes_that_wait_are_bounded() {
    let comparison = comparison();
    for n in 0..5_000 {
        comparison.wrote(Side::Serving, target(&n.to_string()), "{}");
    }
    let view = comparison.view().unwrap();
    assert_eq!((view.waiting, view.left_out), (4_096, 904));
    assert_eq!(view.only_serving, 0);
    for _ in 0..20_000 {
        comparison.wrote(Side::Serving, target("1"), "{}");
    }
    let view = comparison.view().unwrap();
    assert_eq!((view.waiting, view.only_serving), (4_096, 0));
    tokio::time::advance(WINDOW + WINDOW).await;
    assert_eq!(comparison.view().unwrap().only_serving, 4_096);
}

#[tokio::test(start_paused = true)]
async fn another_shadow_begins_again() {
    let comparison = comparison();
    comparison.wrote(Side::Serving, target("a"), "{}");
    comparison.wrote(Side::Shadow, target("a"), "[]");
    comparison.begin("d1");
    assert_eq!(comparison.view().unwrap().different, 1);
    comparison.begin("d2");
    assert_eq!(comparison.view().unwrap(), ShadowView { digest: "d2".to_owned(), ..ShadowView::default() });
    comparison.end();
    comparison.wrote(Side::Serving, target("a"), "{}");
    assert_eq!(comparison.view(), None);
}
