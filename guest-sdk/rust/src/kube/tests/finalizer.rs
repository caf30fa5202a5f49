//! Clean-up before an object is deleted.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{ConfigMap, Widget};
use crate::kube::finalizer::{Error as FinalizerError, Event};
use crate::kube::{Action, Api, Client, Controller, DeleteParams, ResourceExt as _, Run, finalizer, watcher};
use crate::testing::{Host, Instance};
use crate::{Error, Failure, Outcome, Request, Resource as _, key, requeue_after};

const NAME: &str = "example.com/cleanup";
const TOMORROW: std::time::Duration = std::time::Duration::from_secs(86_400);

async fn reconcile(widget: Arc<Widget>, client: Arc<Client>) -> Result<Action, FinalizerError<Error>> {
    let configmaps = Api::<ConfigMap>::namespaced(*client, "home");
    finalizer(&Api::<Widget>::namespaced(*client, "home"), NAME, widget, async |event| match event {
        Event::Apply(_) => Ok(Action::requeue(TOMORROW)),
        Event::Cleanup(widget) => {
            configmaps.delete(&widget.name_any(), &DeleteParams::default()).await?;
            Ok(Action::await_change())
        }
    })
    .await
}

fn controller() -> impl Run {
    Controller::new(Api::<Widget>::all(Client::default()), watcher::Config::default())
        .request(Request::of::<Widget>(&["patch", "delete"]))
        .request(Request::of::<ConfigMap>(&["delete"]))
        .run(reconcile, |_, _, _| Action::await_change(), Arc::new(Client::default()))
}

crate::__controller!(Cleaning, controller());

fn start(finalizers: &[&str]) -> (Host, Instance<Cleaning>) {
    let host = Host::new();
    let mut metadata = json!({"namespace": "home", "name": "w"});
    // An API server stores no empty list.
    if !finalizers.is_empty() {
        metadata["finalizers"] = json!(finalizers);
    }
    host.insert(&Widget::gvr(), &json!({"metadata": metadata, "mode": ""}));
    let plugin = host.start();
    (host, plugin)
}

fn reconciled(plugin: &mut Instance<Cleaning>) -> Result<Outcome, Failure> {
    plugin.reconcile("Widget", "home", "w")
}

fn finalizers(host: &Host) -> Option<Value> {
    host.object(&Widget::gvr(), &key("home", "w")).map(|widget| widget["metadata"]["finalizers"].clone())
}

#[test]
fn the_finalizer_is_there_before_the_object_is_applied_and_until_it_is_cleaned_up() {
    for others in [&[][..], &["example.com/other"]] {
        let (host, mut plugin) = start(others);
        assert_eq!(reconciled(&mut plugin), Ok(Outcome::Done));
        assert_eq!(finalizers(&host), Some(json!([others, &[NAME]].concat())));
        assert_eq!(reconciled(&mut plugin), Ok(requeue_after(TOMORROW)));
        // A client deletes it.
        crate::Client::of::<Widget>().delete(&key("home", "w")).unwrap();
        host.fail_next("delete", Error::Forbidden("no right".to_owned()));
        let text = r#"CleanupFailed(Error::Forbidden("no right"))"#;
        assert_eq!(reconciled(&mut plugin), Err(Failure::Terminal(text.to_owned())));
        assert_eq!(finalizers(&host), Some(json!([others, &[NAME]].concat())));
        assert_eq!(reconciled(&mut plugin), Ok(Outcome::Done));
        let left = if others.is_empty() { None } else { Some(json!(others)) };
        assert_eq!(finalizers(&host), left);
        assert_eq!(reconciled(&mut plugin), Ok(Outcome::Done));
    }
}

#[test]
fn an_object_that_is_gone_already_has_been_cleaned_up() {
    let (host, mut plugin) = start(&[NAME]);
    crate::Client::of::<Widget>().delete(&key("home", "w")).unwrap();
    host.fail_next("patch", Error::NotFound("widgets home/w".to_owned()));
    assert_eq!(reconciled(&mut plugin), Ok(Outcome::Done));
}

#[test]
fn finalizers_that_another_client_changed_are_not_overwritten() {
    let (host, mut plugin) = start(&[]);
    let metadata = json!({"namespace": "home", "name": "w", "finalizers": ["example.com/other"]});
    host.insert(&Widget::gvr(), &json!({"metadata": metadata, "mode": ""}));
    let metadata = crate::ObjectMeta { name: Some("w".to_owned()), ..crate::ObjectMeta::default() };
    let seen = Widget { metadata, mode: String::new() };
    let added = crate::kube::controller::ready(reconcile(Arc::new(seen), Arc::new(Client::default())));
    assert!(matches!(added, Ok(Err(FinalizerError::AddFinalizer(Error::Invalid(_))))), "{added:?}");
    assert_eq!(finalizers(&host), Some(json!(["example.com/other"])));
    assert_eq!(reconciled(&mut plugin), Ok(Outcome::Done));
}
