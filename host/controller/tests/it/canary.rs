//! No secret leaves the host: not in a line, a page, an answer over the control socket, a metric, a status,
//! an Event or a trace; and not while it is on standby.

#[path = "canary/registry.rs"]
mod registry;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Event, Secret};
use kube::api::{Api, ListParams, PostParams};
use oarlock_controller::control;
use oarlock_controller::runtime::Config;
use oarlock_dev_cluster::faults::{Action, Fault, Match};
use serde_json::{Value, json};

use self::registry::Registry;
use crate::admin_pages::{Pages, account};
use crate::control_socket;
use crate::further_host::FurtherHost;
use crate::plugin_objects::{Objects, policy_for};
use crate::rig::until_ok;
use crate::traces::Collector;

/// In a watched Secret, in a Secret that a Plugin refers to, in the configuration of another Plugin, and in a
/// pull secret.
const CANARIES: [&str; 4] =
    ["canary-watched-3f9c1e", "canary-referenced-5d4140", "canary-config-9b20cc", "canary-pull-77ab12"];

/// The pages of the admin address. A standby has no objects.
const PAGES: [&str; 11] = [
    "/",
    "/livez?verbose",
    "/readyz?verbose",
    "/readyz/ping",
    "/metrics",
    "/plugins",
    "/v1/host",
    "/v1/plugins",
    "/v1/plugins/default.mirror",
    "/v1/plugins/default.hello",
    "/v1/parked",
];

const PAGES_OF_OBJECTS: [&str; 7] = [
    "/v1/all/metrics",
    "/v1/all/deadletters",
    "/v1/namespaces/default/metrics",
    "/v1/namespaces/default/deadletters",
    "/v1/namespaces/default/plugins/mirror/metrics",
    "/v1/namespaces/default/plugins/mirror/deadletters",
    "/v1/namespaces/default/plugins/mirror/logs",
];

/// Returns the text as it is, and as a part of a text in base64.
fn forms(text: &str) -> Vec<String> {
    let encoded = (0..3).map(|n_before| {
        let bytes = [vec![b'x'; n_before], text.as_bytes().to_vec()].concat();
        let n_bytes = bytes.len();
        let base64 = json!(ByteString(bytes));
        // Without the characters that also encode bytes before or after the text.
        base64.as_str().unwrap()[(n_before * 8).div_ceil(6)..n_bytes * 8 / 6].to_owned()
    });
    encoded.chain([text.to_owned()]).collect()
}

#[test]
fn a_text_is_found_in_base64_at_any_place() {
    for n_before in 0..4 {
        let text = format!("{}{}\n", "a".repeat(n_before), CANARIES[0]);
        let base64 = json!(ByteString(text.into_bytes())).to_string();
        assert!(forms(CANARIES[0]).iter().any(|form| base64.contains(form)), "{base64}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_line_page_answer_status_event_or_trace_has_a_secret() {
    let [watched, referenced, config, pull] = CANARIES;
    let collector = Collector::start().await;
    let (listener, pages) = Pages::bind().await;
    let traces = collector.config();
    let registry = Registry::start().await;
    let folder = tempfile::tempdir().unwrap();
    let socket = control::bind(folder.path(), None).unwrap();
    let socket_path = socket.path().to_owned();
    let objects = Objects::start_with(policy_for(registry.address), |it| Config {
        admin: Some(listener),
        control: Some(socket),
        traces: Some(traces),
        ..it
    })
    .await;
    objects.component("mirror.wasm", "mirror");
    objects.component("hello.wasm", "hello-rust");
    let no_copy = Match {
        resource: Some("secrets".into()),
        verbs: vec!["create".into()],
        namespace: Some("kube-system".into()),
        ..Match::default()
    };
    objects.rig.cluster.faults().add(Fault::new(no_copy, Action::InternalError));
    let secrets: Api<Secret> = Api::namespaced(objects.rig.client.clone(), "default");
    for secret in [
        json!({
            "metadata": {"name": "conf"},
            "stringData": {"good": format!("password: {referenced}"), "bad": format!("- {referenced}\n: [")},
        }),
        json!({
            "metadata": {"name": "settings", "annotations": {"oarlock.dev/mirror-to": "kube-public,kube-system"}},
            "stringData": {"password": watched},
        }),
        registry.pull_secret("pull", pull),
    ] {
        secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    }
    for name in ["mirror", "hello"] {
        objects.account(name).await;
    }
    let source = |file: &str| json!({"file": {"path": file}});
    let bad = json!({"secret": {"name": "conf", "key": "bad"}});
    objects
        .create(
            "mirror",
            json!({"source": source("mirror.wasm"), "serviceAccountName": "mirror", "configFrom": bad}),
        )
        .await;
    let inline = json!({"source": source("hello.wasm"), "serviceAccountName": "hello", "config": {"password": config}});
    objects.create("hello", inline).await;
    let message = objects.condition("mirror", "Ready", "False", "InvalidConfig").await;
    assert_eq!(message, "the key bad of the Secret conf is not a mapping in YAML or JSON");
    let good = json!({"secret": {"name": "conf", "key": "good"}});
    objects.patch("mirror", json!({"configFrom": good})).await;
    for name in ["mirror", "hello"] {
        objects.condition(name, "Ready", "True", "Serving").await;
    }

    // Registries that quote the credentials when they refuse them.
    for (name, repository) in [("token", registry::WITH_TOKEN), ("basic", registry::WITH_BASIC)] {
        let oci = json!({"reference": registry.reference(repository), "pullSecretName": "pull"});
        objects.create(name, json!({"source": {"oci": oci}, "serviceAccountName": "hello"})).await;
        let message = objects.condition(name, "Fetched", "False", "Forbidden").await;
        assert_eq!(message.contains("<hidden>"), name == "basic", "{message}");
    }
    assert!(registry.has_quoted(pull), "it was sent the credentials");

    // The plugin has read the watched Secret and written it; a second write has failed.
    let copies: Api<Secret> = Api::namespaced(objects.rig.client.clone(), "kube-public");
    until_ok("the copy", async || match copies.get_opt("settings").await.unwrap() {
        Some(copy) => {
            assert_eq!(copy.data.unwrap()["password"].0, watched.as_bytes());
            Ok(())
        }
        None => Err("there is none"),
    })
    .await;
    let logged = objects
        .rig
        .line(|it| {
            it["plugin"] == "default.mirror" && it["event"] == "guest-log" && it["message"] == "copied"
        })
        .await;
    assert_eq!(logged["object"], "default/settings", "{logged}");
    objects.rig.line(|it| it["plugin"] == "default.mirror" && it["event"] == "delivered").await;
    collector.until(|spans| spans.iter().find(|span| span.name == "api write").cloned()).await;

    let mut texts = Vec::new();
    let reader = account(&objects.rig, "reader").await;
    objects.make_admin("reader").await;
    until_ok("the copy that cannot be made is parked", async || {
        let (_, page) = pages.get("/v1/all/deadletters", Some(&reader)).await;
        if page.contains("settings") { Ok(()) } else { Err(page) }
    })
    .await;
    for path in PAGES.into_iter().chain(PAGES_OF_OBJECTS) {
        let (status, text) = pages.get(path, Some(&reader)).await;
        assert_eq!(status, 200, "{path}: {text}");
        assert!(path != "/v1/plugins" || text.contains("default.mirror"), "the page has the plugin: {text}");
        texts.push((path, text));
    }
    for what in
        ["/v1/plugins/default.mirror/lines", "/v1/plugins/default.hello/lines"].iter().chain(&PAGES[6..])
    {
        let (status, text) = control_socket::request(&socket_path, &format!("GET {what}")).await;
        assert!(status.contains(" 200 "), "{what}: {status} {text}");
        texts.push((what, text));
    }
    let standby = FurtherHost::start(&objects).await;
    for plugin in ["default.mirror", "default.hello"] {
        standby.event(plugin, "plugin-loaded").await;
    }
    for path in PAGES.into_iter().chain(PAGES_OF_OBJECTS) {
        texts.push((path, standby.pages.get(path, Some(&reader)).await.1));
    }
    let lines = standby.end().await;
    assert!(lines.iter().all(|it| it["event"] != "leading"), "it is on standby: {lines:#?}");
    texts.extend(lines.iter().map(|line| ("a line of the standby", Value::to_string(line))));
    for name in ["mirror", "hello", "token", "basic"] {
        let status = objects.plugins().get(name).await.unwrap().status;
        texts.push(("the status", json!(status.unwrap()).to_string()));
    }
    let events: Api<Event> = Api::all(objects.rig.client.clone());
    let events = events.list(&ListParams::default()).await.unwrap();
    assert!(events.items.iter().any(|it| it.reason.as_deref() == Some("InvalidConfig")), "{events:#?}");
    texts.push(("the Events", json!(events).to_string()));
    let lines = objects.rig.end().await;
    assert!(lines.iter().any(|it| it["level"] == "debug"), "the level is debug");
    texts.extend(lines.iter().map(|line| ("a line", Value::to_string(line))));
    texts.push(("the traces", String::from_utf8_lossy(&collector.bytes()).into_owned()));
    let secret =
        CANARIES.iter().flat_map(|it| forms(it)).chain([reader, registry.basic(pull)]).collect::<Vec<_>>();
    for (what, text) in texts {
        for secret in &secret {
            assert!(!text.contains(secret), "{what} has {secret}: {text}");
        }
    }
}
