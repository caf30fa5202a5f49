use super::comparison::{MOST_BYTES, Target, WINDOW};
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
async fn waiting_writes_are_bounded_in_bytes_whatever_their_names_and_bodies() {
    let comparison = comparison();
    // Names as large as the guest may pass, which differ at their ends only.
    let long = "ä".repeat(1 << 20);
    comparison.wrote(Side::Serving, target(&format!("{long}a")), r#"{"x":1}"#);
    comparison.wrote(Side::Shadow, target(&format!("{long}b")), r#"{"x":1}"#);
    assert!(comparison.bytes() < 1 << 10, "{}", comparison.bytes());
    comparison.wrote(Side::Shadow, target(&format!("{long}a")), r#"{"x":2}"#);
    let view = comparison.view().unwrap();
    assert_eq!((view.different, view.waiting), (1, 1), "two objects");
    let object = &view.differences[0].object;
    assert!(object.len() <= 1 << 10 && object.ends_with('ä'), "{}", object.len());

    // Bodies with as many leaves as are compared.
    let leaves: Vec<_> = (0..4_000).map(|n| format!(r#""f{n}":0"#)).collect();
    let body = format!("{{{}}}", leaves.join(","));
    for n in 0..600 {
        comparison.wrote(Side::Serving, target(&n.to_string()), &body);
        assert!(comparison.bytes() <= MOST_BYTES, "{}", comparison.bytes());
    }
    let view = comparison.view().unwrap();
    assert!(view.left_out > 0 && view.waiting > 200, "{view:?}");
    tokio::time::advance(WINDOW + WINDOW).await;
    comparison.view().unwrap();
    assert_eq!(comparison.bytes(), 0);
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

#[test]
fn only_a_shadow_that_serves_is_compared_and_the_next_one_from_its_switch_on() {
    let shadows = Shadows::default();
    // The plugin and its shadow are being prepared.
    let comparison = shadows.of("p");
    shadows.begin("p", "d0");
    assert_eq!(comparison.view(), None, "the plugin serves, and its shadow does not");
    comparison.wrote(Side::Serving, target("a"), "{}");
    assert_eq!(comparison.bytes(), 0, "nothing waits for a shadow that may never serve");
    shadows.begin("p.shadow", "d1");
    comparison.wrote(Side::Serving, target("a"), "{}");
    comparison.wrote(Side::Shadow, target("a"), "{}");
    // The next shadow is being prepared.
    let view = shadows.of("p").view().unwrap();
    assert_eq!((view.digest.as_str(), view.equal), ("d1", 1));
    shadows.begin("p.shadow", "d2");
    let view = comparison.view().unwrap();
    assert_eq!((view.digest.as_str(), view.equal), ("d2", 0));
    shadows.unload("p.shadow");
    assert_eq!(comparison.view(), None);
}

#[test]
fn nothing_is_kept_of_a_plugin_that_is_unloaded_with_its_shadow() {
    let shadows = Shadows::default();
    drop(shadows.of("p"));
    shadows.begin("p.shadow", "d1");
    // In the order of their names.
    shadows.unload("p");
    shadows.unload("p.shadow");
    assert!(shadows.comparisons.lock().is_empty());
    shadows.begin("p.shadow", "d2");
    assert!(shadows.comparisons.lock().is_empty(), "a switch that was on its way adds nothing");
}
