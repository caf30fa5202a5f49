use oarlock_fake_api::{FakeApi, Reply};
use oarlock_plugin::guest::{HostBytes, host_bytes::Use};

use super::*;
use crate::kube_access::testing::{core_v1, requester};

/// A page of ConfigMaps as an API server sends it: items without a type, and with managedFields.
fn page(names: &[&str], continue_token: &str, padding: usize) -> String {
    let items: Vec<_> = names
        .iter()
        .map(|name| {
            serde_json::json!({
                "metadata": {
                    "namespace": "a", "name": name, "uid": format!("uid-{name}"), "resourceVersion": "7",
                    "managedFields": [{"manager": "kubectl"}],
                },
                "data": {"padding": "p".repeat(padding)},
            })
        })
        .collect();
    serde_json::json!({
        "kind": "ConfigMapList", "apiVersion": "v1",
        "metadata": {"resourceVersion": "9", "continue": continue_token}, "items": items,
    })
    .to_string()
}

fn api(reply: impl Fn() -> Reply + Send + Sync + 'static) -> FakeApi {
    FakeApi::new(move |request| if request.path == "/api/v1" { core_v1() } else { reply() })
}

fn target(plural: &str) -> GroupVersionResource {
    GroupVersionResource { group: String::new(), version: "v1".into(), plural: plural.into() }
}

fn request(limit: u32, continue_token: &str) -> PageRequest {
    PageRequest { limit, continue_token: continue_token.into() }
}

const NONE: Selectors<'_> = Selectors { labels: "", fields: "" };

#[tokio::test(start_paused = true)]
async fn a_live_list_is_one_request_as_the_account_with_limit_token_and_selectors() {
    let api = api(|| Reply::json(200, page(&["b", "c"], "next", 1)));
    let requester = requester(&api);
    let selectors = Selectors { labels: "app in (a,b)", fields: "metadata.name!=x" };
    let in_a = Namespaces::One("a".into());
    let fields = Projection::Fields(vec!["/data/padding".into(), "/kind".into(), "/nothing".into()]);
    let listed =
        requester.list(&target("configmaps"), &in_a, selectors, &fields, &request(2, "t k")).await.unwrap();
    assert_eq!(listed.continue_token, "next");
    let rows: Vec<_> = listed.rows.iter().map(|row| (row.object.name.as_str(), row.fields.clone())).collect();
    let expected = vec![Some("\"p\"".to_owned()), Some("\"ConfigMap\"".to_owned()), None];
    assert_eq!(rows, [("b", expected.clone()), ("c", expected)]);
    let one_page = request(9, "");
    requester
        .list(&target("configmaps"), &Namespaces::All, NONE, &Projection::Keys, &one_page)
        .await
        .unwrap();
    let sent: Vec<_> = api
        .requests()
        .into_iter()
        .filter(|it| it.path != "/api/v1")
        .map(|it| {
            assert_eq!(it.headers["impersonate-user"], "system:serviceaccount:oarlock-plugins:hello");
            format!("{} {}?{}", it.method, it.path, it.query)
        })
        .collect();
    insta::assert_snapshot!(sent.join("\n"), @"
    GET /api/v1/namespaces/a/configmaps?limit=2&continue=t%20k&labelSelector=app%20in%20%28a%2Cb%29&fieldSelector=metadata.name%21%3Dx
    GET /api/v1/configmaps?limit=9
    ");
}

#[tokio::test(start_paused = true)]
async fn the_json_of_a_row_is_the_whole_object_with_its_type() {
    let api = api(|| Reply::json(200, page(&["b"], "", 1)));
    let listed = requester(&api)
        .list(&target("configmaps"), &Namespaces::All, NONE, &Projection::Json, &request(1, ""))
        .await
        .unwrap();
    assert!(listed.continue_token.is_empty());
    let object: serde_json::Value = serde_json::from_str(listed.rows[0].json.as_ref().unwrap()).unwrap();
    assert_eq!(object["kind"], "ConfigMap");
    assert_eq!(object["apiVersion"], "v1");
    assert_eq!(object["metadata"]["managedFields"][0]["manager"], "kubectl");
}

#[tokio::test(start_paused = true)]
async fn errors_of_a_live_list_are_those_of_the_contract() {
    let list = async |reply: Reply| {
        let api = api(move || reply.clone());
        let listed = requester(&api)
            .list(&target("configmaps"), &Namespaces::All, NONE, &Projection::Json, &request(500, ""))
            .await;
        listed.unwrap_err()
    };
    let expired = list(Reply::status(410, "Expired", "the token is too old")).await;
    assert!(matches!(expired, Error::Gone(_)), "{expired:?}");
    let forbidden = list(Reply::status(403, "Forbidden", "no")).await;
    assert!(matches!(forbidden, Error::Forbidden(_)), "{forbidden:?}");
    let malformed = list(Reply::status(400, "BadRequest", "field label not supported")).await;
    assert!(matches!(malformed, Error::Invalid(_)), "{malformed:?}");
    let not_a_list = list(Reply::json(200, "{}")).await;
    assert!(matches!(not_a_list, Error::Unavailable(_)), "{not_a_list:?}");
    let half = page(&["b", "c"], "", 1);
    let half = list(Reply::json(200, &half[..half.len() - 9])).await;
    assert!(matches!(half, Error::Unavailable(_)), "{half:?}");
}

#[tokio::test(start_paused = true)]
async fn promise_4_a_live_list_is_bounded_in_bytes_and_charged_to_the_plugin() {
    let names = ["a", "b", "c", "d", "e"];
    let long = page(&names, "", 1 << 20);
    let length = long.len();
    let api = api(move || Reply::json(200, long.clone()));
    let list = async |account: HostBytes, projection: Projection| {
        let requester = requester(&api).charged_to(account);
        requester
            .list(&target("configmaps"), &Namespaces::All, NONE, &projection, &request(500, ""))
            .await
            .map(|page| page.rows.len())
    };
    // The rows have more than 4 MiB as JSON, but not as keys.
    let account = HostBytes::default();
    let refused = list(account.clone(), Projection::Json).await;
    assert!(matches!(&refused, Err(Error::LimitExceeded(why)) if why.contains("fewer rows")), "{refused:?}");
    assert_eq!(list(account.clone(), Projection::Keys).await, Ok(5));
    assert_eq!(account.view().requests, 0, "the charges end with the requests");
    // An account with less room than the answer.
    let refused = list(HostBytes::new(length as u64 / 2), Projection::Keys).await;
    assert!(matches!(refused, Err(Error::LimitExceeded(_))), "{refused:?}");
    // An answer beyond the limit.
    let account = HostBytes::default();
    let whole = account.charge(Use::Requests, 0).unwrap();
    let longest = page(&["a"], "", 17 << 20);
    let api = FakeApi::new(move |request| match request.path.as_str() {
        "/api/v1" => core_v1(),
        _ => Reply::json(200, longest.clone()),
    });
    let refused = requester(&api)
        .charged_to(account)
        .list(&target("configmaps"), &Namespaces::All, NONE, &Projection::Keys, &request(1, ""))
        .await;
    assert!(matches!(refused, Err(Error::LimitExceeded(_))), "{refused:?}");
    drop(whole);
}

#[tokio::test(start_paused = true)]
async fn promise_4_an_object_of_a_live_list_that_is_too_long_is_an_error() {
    let list = async |padding: usize| {
        let long = page(&["a"], "", padding);
        requester(&api(move || Reply::json(200, long.clone())))
            .list(&target("configmaps"), &Namespaces::All, NONE, &Projection::Keys, &request(1, ""))
            .await
            .map(|page| page.rows.len())
    };
    assert_eq!(list((8 << 20) - 1_024).await, Ok(1));
    let message = "list configmaps: an object has more than 8388608 bytes".to_owned();
    assert_eq!(list(8 << 20).await, Err(Error::LimitExceeded(message)));
}
