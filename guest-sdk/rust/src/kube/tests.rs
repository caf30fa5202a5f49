//! Tests of controllers in the shape of kube-rs.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

mod finalizer;
mod watches;

use super::controller::ready;
use super::{Action, Api, Client, Controller, ListParams, Patch, PatchParams, ResourceExt, Run, watcher};
use crate::testing::{Host, Instance};
use crate::{Error, Failure, ObjectMeta, Outcome, Request, Resource, key, work_key};

#[derive(Resource, Serialize, Deserialize)]
#[resource(group = "example.com", version = "v1", plural = "widgets")]
struct Widget {
    metadata: ObjectMeta,
    /// What `reconcile` does.
    mode: String,
}

#[derive(Resource, Serialize, Deserialize)]
#[resource(version = "v1", plural = "configmaps")]
struct ConfigMap {
    metadata: ObjectMeta,
}

async fn reconcile(widget: Arc<Widget>, client: Arc<Client>) -> Result<Action, Error> {
    let name = widget.name_any();
    let configmaps = Api::<ConfigMap>::namespaced(*client, "home");
    match &*widget.mode {
        "wait" => std::future::pending().await,
        "apply" => {
            let owner_references = widget.controller_owner_ref(&()).into_iter().collect();
            let metadata = ObjectMeta { name: Some(name.clone()), owner_references, ..ObjectMeta::default() };
            configmaps
                .patch(&name, &PatchParams::apply("x").force(), &Patch::Apply(&ConfigMap { metadata }))
                .await?;
            let listed = configmaps.list(&ListParams::default().fields("metadata.name=w")).await?;
            assert_eq!(listed.into_iter().count(), 1);
            let patch = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
            configmaps.patch(&name, &PatchParams::default(), &patch).await?;
            assert_eq!(configmaps.get(&name).await?.metadata.labels["a"], "b");
            configmaps.delete(&name, &super::DeleteParams::default()).await?;
            assert!(configmaps.get_opt(&name).await?.is_none());
            Ok(Action::await_change())
        }
        _ => configmaps.get("missing").await.map(|_| Action::await_change()),
    }
}

fn error_policy(widget: Arc<Widget>, _: &Error, _: Arc<Client>) -> Action {
    if widget.mode == "park" { Action::await_change() } else { Action::requeue(Duration::from_secs(7)) }
}

fn controller() -> impl Run {
    Controller::new(Api::<Widget>::all(Client::default()), watcher::Config::default().labels("app"))
        .owns(Api::<ConfigMap>::namespaced(Client::default(), "home"), watcher::Config::default())
        .request(Request::of::<ConfigMap>(&["patch", "delete"]))
        .run(reconcile, error_policy, Arc::new(Client::default()))
}

crate::__controller!(Widgets, controller());

fn start(mode: &str) -> (Host, Instance<Widgets>) {
    let host = Host::new();
    let metadata = json!({"namespace": "home", "name": "w", "labels": {"app": "a"}});
    host.insert(&Widget::gvr(), &json!({"metadata": metadata, "mode": mode}));
    let plugin = host.start::<Widgets>();
    (host, plugin)
}

#[test]
fn reconcile_gets_the_object_and_its_requests_are_made() {
    let (host, mut plugin) = start("apply");
    assert_eq!(plugin.reconcile("Widget", "home", "w"), Ok(Outcome::Done));
    let writes = host.writes();
    let texts: Vec<_> = writes.iter().map(ToString::to_string).collect();
    let of = |verb: &str| format!("{verb} v1/configmaps home/w");
    assert_eq!(texts, ["apply", "patch", "delete"].map(of));
    let owner = json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "uid-1",
        "controller": true, "blockOwnerDeletion": true});
    assert_eq!(
        (&writes[0].body["kind"], &writes[0].body["metadata"]["ownerReferences"][0]),
        (&json!("ConfigMap"), &owner)
    );
    assert_eq!(writes[2].key, key("home", "w"));
    assert_eq!(writes[2].body, Value::Null);
}

#[test]
fn an_object_that_is_gone_is_not_reconciled() {
    let (host, mut plugin) = start("apply");
    assert_eq!(plugin.reconcile("Widget", "home", "gone"), Ok(Outcome::Done));
    assert_eq!(host.writes(), []);
}

#[test]
fn an_object_that_the_selector_excludes_is_not_reconciled() {
    let (host, mut plugin) = start("apply");
    host.insert(&Widget::gvr(), &json!({"metadata": {"namespace": "home", "name": "w"}, "mode": "apply"}));
    assert_eq!(plugin.reconcile("Widget", "home", "w"), Ok(Outcome::Done));
    assert_eq!(host.writes(), []);
}

#[test]
fn a_key_of_another_kind_is_queued_as_the_objects_own() {
    let (host, mut plugin) = start("apply");
    assert_eq!(plugin.reconcile("configmaps", "home", "w"), Ok(Outcome::Done));
    assert_eq!(host.writes(), []);
    assert_eq!(host.queue(), [(work_key("Widget", key("home", "w")), Duration::ZERO)]);
}

#[test]
fn a_cluster_scoped_owner_of_a_namespaced_object_is_reconciled() {
    let (host, mut plugin) = start("apply");
    let metadata = json!({"name": "everywhere", "labels": {"app": "a"}});
    host.insert(&Widget::gvr(), &json!({"metadata": metadata, "mode": "park"}));
    assert_eq!(plugin.reconcile("Widget", "home", "everywhere"), Ok(Outcome::Done));
    assert_eq!(host.queue(), [(work_key("Widget", key("", "everywhere")), Duration::ZERO)]);
    assert!(plugin.reconcile("Widget", "", "everywhere").is_err(), "it is found there");
}

#[test]
fn an_object_is_created_in_the_namespace_of_its_api() {
    let host = Host::new();
    let configmaps = Api::<ConfigMap>::namespaced(Client::default(), "home");
    let create = |namespace: Option<&str>| {
        let namespace = namespace.map(str::to_owned);
        let metadata = ObjectMeta { name: Some("c".to_owned()), namespace, ..ObjectMeta::default() };
        ready(configmaps.create(&super::PostParams::default(), &ConfigMap { metadata })).unwrap()
    };
    assert!(matches!(create(Some("other")), Err(Error::Invalid(_))));
    create(None).unwrap();
    assert!(host.object(&ConfigMap::gvr(), &key("home", "c")).is_some());
}

#[test]
fn the_error_policy_decides_about_the_next_call() {
    let text = "Error::NotFound(\"configmaps missing\")".to_owned();
    let (_host, mut plugin) = start("fail");
    let retried = Failure::RetryAfter(crate::failure::RetryInfo { message: text.clone(), after_ms: 7_000 });
    assert_eq!(plugin.reconcile("Widget", "home", "w"), Err(retried));
    let (_host, mut plugin) = start("park");
    assert_eq!(plugin.reconcile("Widget", "home", "w"), Err(Failure::Terminal(text)));
}

#[test]
fn a_future_that_waits_is_a_failure() {
    let (_host, mut plugin) = start("wait");
    let Err(Failure::Terminal(text)) = plugin.reconcile("Widget", "home", "w") else { panic!("it waited") };
    assert!(text.starts_with("reconcile waits for something else than the host"), "{text}");
}

#[test]
fn the_description_has_the_watches_of_the_controller() {
    let described = controller().describe("widgets", "0.1.0").unwrap().0;
    let [objects, owned] = &described.subscriptions[..] else { panic!("{described:?}") };
    assert_eq!((&*objects.name, &*objects.label_selector), ("Widget", "app"));
    assert_eq!(objects.enqueue, crate::Enqueue::Itself);
    assert_eq!(owned.enqueue, crate::enqueue_controller_owner("example.com", "Widget"));
    assert_eq!(owned.namespaces, crate::Namespaces::One("home".to_owned()));
    assert_eq!((&*described.reads[0].name, described.requests.len()), ("widgets", 1));
}
