//! Makes a ConfigMap from each ConfigMapGenerator, and restores it when it is changed.
//!
//! The example `configmapgen_controller` of kube-rs, in its shape: `Api`, `Controller`, `reconcile`,
//! `error_policy`. Its `main`, with the client and the runtime, is gone; the host has both.

#![deny(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use oarlock_sdk::kube::{
    Action, Api, Client, Controller, Patch, PatchParams, ResourceExt as _, Run, watcher,
};
use oarlock_sdk::{ObjectMeta, Request, Resource};
use serde::{Deserialize, Serialize};

/// The custom resource; `crd.yaml` defines it.
#[derive(Resource, Deserialize, Serialize)]
#[resource(group = "nullable.se", version = "v1", plural = "configmapgenerators")]
struct ConfigMapGenerator {
    metadata: ObjectMeta,
    spec: ConfigMapGeneratorSpec,
}

#[derive(Deserialize, Serialize)]
struct ConfigMapGeneratorSpec {
    content: String,
}

/// As much of a ConfigMap as the controller writes. The type of k8s-openapi would do as well.
#[derive(Resource, Deserialize, Serialize)]
#[resource(version = "v1", plural = "configmaps")]
struct ConfigMap {
    metadata: ObjectMeta,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

#[derive(Debug)]
#[expect(dead_code, reason = "shown with Debug")]
enum Error {
    MissingObjectKey(&'static str),
    ConfigMapCreationFailed(oarlock_sdk::Error),
}

/// What `reconcile` needs.
struct Data {
    client: Client,
}

async fn reconcile(generator: Arc<ConfigMapGenerator>, ctx: Arc<Data>) -> Result<Action, Error> {
    let name = generator.name_any();
    let namespace = generator.namespace().ok_or(Error::MissingObjectKey(".metadata.namespace"))?;
    let owner = generator.controller_owner_ref(&()).ok_or(Error::MissingObjectKey(".metadata.uid"))?;
    let cm = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            owner_references: vec![owner],
            ..ObjectMeta::default()
        },
        data: [("content".to_owned(), generator.spec.content.clone())].into(),
    };
    Api::<ConfigMap>::namespaced(ctx.client, &namespace)
        .patch(
            &name,
            &PatchParams::apply("configmapgenerator.kube-rt.nullable.se").force(),
            &Patch::Apply(&cm),
        )
        .await
        .map_err(Error::ConfigMapCreationFailed)?;
    Ok(Action::requeue(Duration::from_secs(300)))
}

fn error_policy(_object: Arc<ConfigMapGenerator>, _error: &Error, _ctx: Arc<Data>) -> Action {
    Action::requeue(Duration::from_secs(1))
}

fn controller() -> impl Run {
    let client = Client::default();
    let generators = Api::<ConfigMapGenerator>::all(client);
    let configmaps = Api::<ConfigMap>::all(client);
    Controller::new(generators, watcher::Config::default())
        .owns(configmaps, watcher::Config::default())
        .request(Request::of::<ConfigMap>(&["create", "patch"]))
        .run(reconcile, error_policy, Arc::new(Data { client }))
}

oarlock_sdk::export_controller!(ConfigMapGenerators, controller());

#[cfg(test)]
mod tests {
    use oarlock_sdk::testing::Host;
    use oarlock_sdk::{Error, Failure, Outcome, retry_after};
    use serde_json::json;

    use super::*;

    fn host() -> Host {
        let host = Host::new();
        let metadata = json!({"namespace": "home", "name": "greeting"});
        host.insert(&ConfigMapGenerator::gvr(), &json!({"metadata": metadata, "spec": {"content": "hello"}}));
        host
    }

    #[test]
    fn the_configmap_has_the_content_and_its_owner() {
        let host = host();
        let mut plugin = host.start::<ConfigMapGenerators>();
        let outcome = plugin.reconcile("ConfigMapGenerator", "home", "greeting");
        assert_eq!(outcome, Ok(Outcome::RequeueAfter(300_000)));
        let made = host.object(&ConfigMap::gvr(), &oarlock_sdk::key("home", "greeting")).unwrap();
        assert_eq!(made["data"], json!({"content": "hello"}));
        assert_eq!(made["metadata"]["ownerReferences"][0]["kind"], "ConfigMapGenerator");
    }

    #[test]
    fn a_write_that_fails_is_tried_again_after_a_second() {
        let host = host();
        let mut plugin = host.start::<ConfigMapGenerators>();
        host.fail_next("apply", Error::Forbidden("no right".to_owned()));
        let failed = plugin.reconcile("ConfigMapGenerator", "home", "greeting");
        let text = "ConfigMapCreationFailed(Error::Forbidden(\"no right\"))";
        assert_eq!(failed, Err::<Outcome, Failure>(retry_after(text, Duration::from_secs(1))));
    }
}
