//! Restarts the Pods of Deployments when a ConfigMap or Secret that they read changes.
//!
//! For each Deployment with the annotation `oarlock.dev/reload`, a hash of what its Pod template names is an
//! annotation of that template: another hash is another template, and a roll-out. The reads of a run wake its
//! key again, so the plugin subscribes to Deployments only.
//!
//! [`template`]: what a Pod template names.

#![deny(unsafe_code)]

mod template;

use oarlock_sdk::fields::Json;
use oarlock_sdk::{
    Client, Description, Enqueue, Failure, Fields, Lister, ObjectRef, Outcome, Plugin, Reconciler, Request,
    Subscription, Test, WorkKey, info, key,
};
use serde_json::{Value, json};

use template::Source;

/// The annotation of a Deployment that has it restarted.
const RELOAD: &str = "/metadata/annotations/oarlock.dev~1reload";

/// The annotation of the Pod template.
const HASH: &str = "oarlock.dev/reload-hash";

const DEPLOYMENTS: Lister = Lister::new("deployments", "apps", "v1", "deployments");
const CONFIGMAPS: Lister = Lister::new("configmaps", "", "v1", "configmaps");
const SECRETS: Lister = Lister::new("secrets", "", "v1", "secrets");

/// What a run needs of a Deployment.
#[derive(Fields)]
struct Deployment {
    #[field("/metadata/annotations/oarlock.dev~1reload")]
    reload: Option<String>,
    #[field("/spec/template/spec", default)]
    pods: Value,
    #[field("/spec/template/metadata/annotations", default)]
    annotations: Value,
}

/// What Pods read of a ConfigMap. A Secret has no `binaryData`.
#[derive(Fields)]
struct Content {
    #[field("/data")]
    data: Json<Value>,
    #[field("/binaryData")]
    binary_data: Json<Value>,
}

struct Reloader;

// === impl Reloader ===

impl Plugin for Reloader {
    fn describe() -> Result<Description, String> {
        let annotated = Subscription::new("deployments", DEPLOYMENTS.gvr())
            .condition(RELOAD, Test::Exists)
            .enqueue(Enqueue::Itself)
            .ignore_own_writes();
        Ok(Description::new("reloader", env!("CARGO_PKG_VERSION"))
            .stateless()
            .subscribe(annotated)
            .read(DEPLOYMENTS)
            .read(CONFIGMAPS.wakes())
            .read(SECRETS.wakes())
            .request(Request::new(DEPLOYMENTS.gvr(), &["patch"])))
    }

    fn start() -> Result<Self, Failure> {
        Ok(Self)
    }
}

impl Reconciler for Reloader {
    fn reconcile(&mut self, key: &WorkKey) -> Result<Outcome, Failure> {
        let at = &key.object;
        let found = DEPLOYMENTS.get::<(ObjectRef, Deployment)>(at)?;
        let Some((id, deployment)) = found else { return Ok(Outcome::Done) };
        if deployment.reload.is_none() {
            return Ok(Outcome::Done);
        }
        let hash = hash_of(&at.namespace, &deployment.pods)?;
        if deployment.annotations[HASH] == hash {
            return Ok(Outcome::Done);
        }
        let patch = json!({"spec": {"template": {"metadata": {"annotations": {HASH: hash}}}}});
        // If the Deployment changed meanwhile, this fails with a conflict, and the host tries again.
        Client::new(DEPLOYMENTS.gvr()).if_unchanged(&id).merge_patch(at, &patch)?;
        info!("restarted", "namespace" = at.namespace, "name" = at.name, "hash" = hash);
        Ok(Outcome::Done)
    }
}

/// Returns the hash of everything that the Pods read. Each read wakes the Deployment's key.
fn hash_of(namespace: &str, pods: &Value) -> Result<String, Failure> {
    let mut hash = Fnv::default();
    for (kind, name) in template::sources(pods) {
        let (lister, resource) = match kind {
            Source::ConfigMap => (CONFIGMAPS, "configmaps"),
            Source::Secret => (SECRETS, "secrets"),
        };
        hash.add(resource);
        hash.add(&name);
        if let Some(Content { data, binary_data }) = lister.get(&key(namespace, &name))? {
            hash.add(data.text().unwrap_or("null"));
            if kind == Source::ConfigMap {
                hash.add(binary_data.text().unwrap_or("null"));
            }
        }
    }
    Ok(format!("{:016x}", hash.0))
}

/// FNV-1a: equal on every machine and in every version. It recognises changes; it proves nothing.
struct Fnv(u64);

// === impl Fnv ===

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds a text, and an end that no text contains.
    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

oarlock_sdk::export_reconciler!(Reloader);

#[cfg(test)]
mod tests {
    use oarlock_sdk::gvr;
    use oarlock_sdk::testing::Host;

    use super::*;

    fn deployment(host: &Host, reload: bool) {
        let annotations = if reload { json!({"oarlock.dev/reload": "true"}) } else { json!({}) };
        let env = json!([{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "password"}}]);
        let object = json!({
            "metadata": {"namespace": "home", "name": "web", "annotations": annotations},
            "spec": {"template": {"spec": {"containers": [{"name": "web", "envFrom": env}]}}},
        });
        host.insert(&DEPLOYMENTS.gvr(), &object);
    }

    fn settings(host: &Host, value: &str) {
        let object = json!({"metadata": {"namespace": "home", "name": "settings"}, "data": {"a": value}});
        host.insert(&gvr("", "v1", "configmaps"), &object);
    }

    fn hash(host: &Host) -> String {
        let object = host.object(&DEPLOYMENTS.gvr(), &key("home", "web")).unwrap();
        object["spec"]["template"]["metadata"]["annotations"][HASH].as_str().unwrap_or_default().to_owned()
    }

    #[test]
    fn the_hash_changes_with_what_the_pods_read_and_is_written_once() {
        let host = Host::new();
        let mut plugin = host.start::<Reloader>();
        deployment(&host, true);
        settings(&host, "1");
        let mut run = || {
            assert_eq!(plugin.reconcile("deployments", "home", "web"), Ok(Outcome::Done));
            hash(&host)
        };
        let first = run();
        assert_eq!((first.len(), run()), (16, first.clone()));
        assert_eq!(host.writes().len(), 1);
        settings(&host, "2");
        let second = run();
        assert_ne!(second, first);
        host.remove(&gvr("", "v1", "configmaps"), &key("home", "settings"));
        assert!(![first, second].contains(&run()), "a ConfigMap that is gone is another content");
    }

    #[test]
    fn a_deployment_without_the_annotation_is_left_alone() {
        let host = Host::new();
        let mut plugin = host.start::<Reloader>();
        deployment(&host, false);
        assert_eq!(plugin.reconcile("deployments", "home", "web"), Ok(Outcome::Done));
        assert_eq!(plugin.reconcile("deployments", "home", "gone"), Ok(Outcome::Done));
        assert_eq!(host.writes(), []);
    }

    #[test]
    fn a_deployment_that_changed_meanwhile_is_tried_again() {
        let host = Host::new();
        let mut plugin = host.start::<Reloader>();
        deployment(&host, true);
        host.fail_next("patch", oarlock_sdk::Error::Conflict("it changed".to_owned()));
        assert_eq!(
            plugin.reconcile("deployments", "home", "web"),
            Err(Failure::Retry("it changed".to_owned()))
        );
    }
}
