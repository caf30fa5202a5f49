//! Controllers that name the objects to reconcile in a function.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{ConfigMap, Widget};
use crate::kube::{Action, Api, Client, Controller, ObjectRef, ResourceExt as _, Run, watcher};
use crate::testing::{Host, Instance};
use crate::{Error, Failure, Resource as _, Subscription, work_key};

async fn reconcile(_: Arc<Widget>, _: Arc<()>) -> Result<Action, Error> {
    Ok(Action::await_change())
}

fn error_policy(_: Arc<Widget>, _: &Error, _: Arc<()>) -> Action {
    Action::await_change()
}

fn widgets() -> Controller<Widget> {
    Controller::new(Api::all(Client::default()), watcher::Config::default())
}

fn configmaps() -> Api<ConfigMap> {
    Api::all(Client::default())
}

/// The widgets that the annotation `for` names.
fn named(configmap: ConfigMap) -> Vec<ObjectRef<Widget>> {
    let names = configmap.annotations().get("for").cloned().unwrap_or_default();
    let namespace = configmap.namespace().unwrap_or_default();
    names.split(',').filter(|it| !it.is_empty()).map(|it| ObjectRef::new(it).within(&namespace)).collect()
}

fn controller() -> impl Run {
    widgets()
        .watches(configmaps(), watcher::Config::default(), named)
        .watches(configmaps(), watcher::Config::default().labels("all"), |_| Some(ObjectRef::new("all")))
        .run(reconcile, error_policy, Arc::new(()))
}

crate::__controller!(Watching, controller());

fn start() -> (Host, Instance<Watching>) {
    let host = Host::new();
    let plugin = host.start();
    (host, plugin)
}

fn configmap(names: &str) -> Value {
    json!({"metadata": {"namespace": "home", "name": "c", "annotations": {"for": names}}})
}

/// The names of the keys in the work queue.
fn queued(host: &Host) -> Vec<String> {
    let key = |name: &String| work_key("Widget", crate::key("home", name));
    let names: Vec<_> = host.queue().into_iter().map(|(key, _)| key.object.name).collect();
    let expected: Vec<_> = names.iter().map(|name| (key(name), Duration::ZERO)).collect();
    assert_eq!(host.queue(), expected);
    names
}

#[test]
fn the_function_names_the_objects_of_each_state() {
    let (host, mut plugin) = start();
    plugin.add("watched-configmaps", &configmap("a,b")).unwrap();
    assert_eq!(queued(&host), ["a", "b"]);
    plugin.update("watched-configmaps", &configmap("c")).unwrap();
    assert_eq!(queued(&host), ["a", "b", "c", "a", "b"], "the objects of the old state too");
    plugin.delete("watched-configmaps", "home", "c").unwrap();
    assert_eq!(queued(&host), ["a", "b", "c", "a", "b", "c"]);
}

#[test]
fn a_notification_whose_keys_cannot_be_added_is_delivered_again() {
    let (host, mut plugin) = start();
    host.fail_next("queue", Error::LimitExceeded("full".to_owned()));
    let failed = plugin.add("watched-configmaps", &configmap("a"));
    assert!(matches!(&failed, Err(Failure::Retry(text)) if text.contains("full")), "{failed:?}");
    let unparsable = json!({"metadata": {"namespace": "home", "name": 1}});
    assert!(plugin.add("watched-configmaps", &unparsable).is_err());
}

#[test]
fn one_resource_can_be_watched_twice() {
    let described = controller().describe("watching", "0.1.0").unwrap().0;
    let subscriptions = described.subscriptions.iter();
    let names: Vec<_> = subscriptions.map(|it| (&*it.name, &*it.label_selector)).collect();
    assert_eq!(names, [("Widget", ""), ("watched-configmaps", ""), ("watched-configmaps-2", "all")]);
    let (host, mut plugin) = start();
    plugin.add("watched-configmaps-2", &configmap("a")).unwrap();
    assert_eq!(host.queue()[0].0, work_key("Widget", crate::key("", "all")));
}

#[test]
fn a_subscription_without_a_rule_is_refused() {
    let controller = widgets().subscribe(Subscription::new("configmaps", ConfigMap::gvr()));
    let refused = controller.run(reconcile, error_policy, Arc::new(())).describe("watching", "0.1.0");
    let text = refused.err().unwrap();
    assert!(text.starts_with("the subscription configmaps says of no object"), "{text}");
}
