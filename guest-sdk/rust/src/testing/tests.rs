//! Tests of the fake host, with a plugin that uses listers, an index, the client and the work queue.

use std::time::Duration;

use serde_json::{Value, json};

use super::Host;
use crate::client::{Dynamic, Matching};
use crate::{
    Added, Client, Description, Error, Failure, Fields, Handler, Index, Lister, Namespaces, Object,
    ObjectMeta, ObjectRef, Outcome, Plugin, Reconciler, Request, Resource, Subscription, Updated, WorkKey,
    gvr, key, metrics, requeue_after, work_queue,
};

const PODS: Lister = Lister::new("pods", "", "v1", "pods");
const BY_NODE: Index = PODS.index_by_pointer("pods-by-node", "/spec/nodeName");

#[derive(Debug, Fields, PartialEq)]
struct OnNode {
    #[field("/spec/nodeName")]
    node: Option<String>,
}

#[derive(Resource, serde::Serialize, serde::Deserialize)]
#[resource(group = "example.com", version = "v1", plural = "widgets")]
struct Widget {
    metadata: ObjectMeta,
    status: Option<Value>,
}

/// Counts the Pods of a node when one is added.
struct Counter;

impl Plugin for Counter {
    fn describe() -> Result<Description, String> {
        Ok(Description::new("counter", "0.1.0")
            .subscribe(Subscription::new("pods", gvr("", "v1", "pods")).fields::<OnNode>())
            .read(PODS)
            .index(BY_NODE)
            .request(Request::of::<Widget>(&["create", "patch", "delete", "update", "get", "list"]))
            .request(Request::of::<Widget>(&["patch"]).subresource("status")))
    }

    fn start() -> Result<Self, Failure> {
        Ok(Self)
    }
}

impl Handler for Counter {
    fn on_add(&mut self, added: &Added) -> Result<(), Failure> {
        let Some(node) = added.fields::<OnNode>()?.node else { return Ok(()) };
        let pods: Vec<ObjectRef> = BY_NODE.get(&node).collect::<Result<_, _>>()?;
        Ok(metrics::set("pods", pods.len() as f64, &[("node", &node)])?)
    }

    fn on_update(&mut self, updated: &Updated) -> Result<(), Failure> {
        let (old, new) = (updated.old_fields::<OnNode>()?, updated.fields::<OnNode>()?);
        if old != new {
            work_queue::add_after(&work_queue::work_key("moved", key("", "")), Duration::from_secs(2))?;
        }
        Ok(())
    }
}

impl Reconciler for Counter {
    fn reconcile(&mut self, _: &WorkKey) -> Result<Outcome, Failure> {
        Ok(requeue_after(Duration::from_secs(60)))
    }
}

fn pod(name: &str, node: Option<&str>) -> Value {
    json!({"metadata": {"namespace": "home", "name": name, "labels": {"app": name}}, "spec": {"nodeName": node}})
}

#[test]
fn a_plugin_is_called_with_the_declared_fields_and_reads_all_pages() {
    let host = Host::new();
    host.set_page_size(1);
    host.insert(&PODS.gvr(), &pod("a", Some("n1")));
    let mut plugin = host.start::<Counter>();
    plugin.add("pods", &pod("b", Some("n1"))).unwrap();
    plugin.add("pods", &pod("c", None)).unwrap();
    assert_eq!(host.metric("pods", &[("node", "n1")]), Some(2.0));
    assert_eq!(BY_NODE.values().unwrap(), ["n1"]);

    let names = |namespaces: &Namespaces, selector: &str| -> Vec<String> {
        PODS.list::<ObjectRef>(namespaces, selector).map(|pod| pod.unwrap().name).collect()
    };
    assert_eq!(names(&Namespaces::All, ""), ["a", "b", "c"]);
    assert_eq!(names(&Namespaces::One("home".to_owned()), "app in (a,c)"), ["a", "c"]);
    assert_eq!(names(&Namespaces::One("away".to_owned()), ""), [""; 0]);

    plugin.update("pods", &pod("b", Some("n2"))).unwrap();
    plugin.update("pods", &pod("b", Some("n2"))).unwrap();
    let queue = host.queue();
    assert_eq!(queue.len(), 1, "{queue:?}");
    assert_eq!((&*queue[0].0.kind, queue[0].1), ("moved", Duration::from_secs(2)));
    assert_eq!(plugin.reconcile("moved", "", "").unwrap(), Outcome::RequeueAfter(60_000));
}

#[test]
fn each_read_returns_what_its_type_asks_for() {
    let host = Host::new();
    host.declare::<Counter>();
    host.insert(&PODS.gvr(), &pod("a", Some("n1")));
    let at = key("home", "a");
    let (id, fields) = PODS.get::<(ObjectRef, OnNode)>(&at).unwrap().unwrap();
    assert_eq!((&*id.uid, fields.node.as_deref()), ("uid-1", Some("n1")));
    let object: Object<Value> = PODS.get(&at).unwrap().unwrap();
    assert_eq!(object.get().unwrap()["spec"]["nodeName"], "n1");
    assert_eq!(PODS.get::<OnNode>(&key("home", "b")).unwrap(), None);
    const OTHER: Lister = Lister::new("other", "", "v1", "pods");
    assert!(matches!(OTHER.get::<OnNode>(&at), Err(Error::NotDeclared(_))));
}

#[test]
fn requests_change_the_cluster_and_are_recorded() {
    let host = Host::new();
    host.declare::<Counter>();
    let widgets = || Client::of::<Widget>();
    let metadata =
        ObjectMeta { name: Some("w".into()), namespace: Some("home".into()), ..ObjectMeta::default() };
    let created = widgets().create(&Widget { metadata: metadata.clone(), status: None }).unwrap();
    let again = widgets().create(&Widget { metadata: metadata.clone(), status: None });
    assert!(matches!(again, Err(Error::AlreadyExists(_))), "{again:?}");

    let at = key("home", "w");
    let id = ObjectRef {
        namespace: created.namespace,
        name: created.name,
        uid: created.uid,
        resource_version: created.resource_version,
    };
    assert_eq!((id.namespace.as_str(), id.name.as_str()), ("home", "w"));
    let status = json!({"status": {"ready": true}, "spec": {"lost": 1}});
    let patched = widgets().status().merge_patch(&at, &status).unwrap();
    assert_eq!((patched.namespace, patched.name), ("home".to_owned(), "w".to_owned()));
    let stale = widgets().if_unchanged(&id).merge_patch(&at, &json!({"spec": {}}));
    assert!(matches!(stale, Err(Error::Conflict(_))), "{stale:?}");
    let mut object: Value = widgets().get(&at).unwrap().unwrap();
    assert_eq!((&object["status"]["ready"], &object["spec"]), (&json!(true), &Value::Null));
    object["metadata"]["finalizers"] = json!(["example.com/wait"]);
    assert_eq!(widgets().replace(&Dynamic(object.clone())).unwrap().namespace, "home");
    assert!(matches!(widgets().replace(&Dynamic(object.clone())), Err(Error::Conflict(_))));
    // These would concern the object, not its status.
    let text = "a client of widgets/status was used where widgets are deleted: only whole objects can be";
    assert_eq!(widgets().status().delete(&at), Err(Error::Invalid(text.to_owned())));
    let created = widgets().status().create(&Dynamic(object));
    assert!(matches!(created, Err(Error::Invalid(_))), "{created:?}");
    let listed = widgets().status().list::<ObjectRef>(&Namespaces::All, Matching::default());
    assert!(matches!(listed, Err(Error::Invalid(_))), "{listed:?}");
    widgets().delete(&at).unwrap();
    let going: Vec<Object<Widget>> = widgets().list(&Namespaces::All, Matching::default()).unwrap();
    assert!(going[0].get().unwrap().metadata.deletion_timestamp.is_some());
    widgets().merge_patch(&at, &json!({"metadata": {"finalizers": null}})).unwrap();
    assert_eq!(host.object(&Widget::gvr(), &at), None);
    widgets().delete(&at).unwrap();
    let applied = Widget { metadata, status: None };
    assert_eq!(widgets().force().apply(&applied).unwrap().namespace, "home");
    let written: Vec<_> = host.writes().iter().map(ToString::to_string).collect();
    let of = |verb: &str| format!("{verb} example.com/v1/widgets home/w");
    let status = "patch example.com/v1/widgets/status home/w".to_owned();
    let mut expected: Vec<_> = ["create", "create"].map(of).into();
    expected.push(status);
    expected.extend(["patch", "replace", "replace", "delete", "patch", "delete", "apply"].map(of));
    assert_eq!(written, expected);
    assert_eq!(host.writes()[0].body["kind"], "Widget");
}

#[test]
fn a_live_list_of_large_objects_is_read_in_smaller_pages() {
    let host = Host::new();
    for name in ["a", "b", "c"] {
        host.insert(&Widget::gvr(), &json!({"metadata": {"namespace": "home", "name": name}}));
    }
    let list = || Client::of::<Widget>().list::<ObjectRef>(&Namespaces::All, Matching::default());
    let fail = |n| (0..n).for_each(|_| host.fail_next("list", Error::LimitExceeded("4 MiB".to_owned())));
    // 500 rows are 1 after eight halves.
    fail(8);
    assert_eq!(list().unwrap().len(), 3);
    fail(9);
    assert_eq!(list(), Err(Error::LimitExceeded("4 MiB".to_owned())));
}

#[test]
fn a_request_that_is_not_declared_or_fails_is_an_error() {
    let host = Host::new();
    host.declare::<Counter>();
    let pods = Client::new(PODS.gvr());
    let Err(Error::Forbidden(text)) = pods.delete(&key("home", "a")) else { panic!("it is allowed") };
    assert_eq!(text, "describe declares no request with the verb delete for v1/pods \"\"");
    host.fail_next("get", Error::Unavailable("the network".to_owned()));
    let failed = Client::of::<Widget>().get::<Value>(&key("home", "w"));
    assert_eq!(failed, Err(Error::Unavailable("the network".to_owned())));
    assert_eq!(Client::of::<Widget>().get::<Value>(&key("home", "w")), Ok(None));
}

#[test]
#[should_panic(expected = "the plugin declares no subscription nodes; it declares pods")]
fn a_subscription_that_is_not_declared_is_named() {
    let _ = Host::new().start::<Counter>().add("nodes", &json!({"metadata": {"name": "a"}}));
}
