//! Restarts the Pods of Deployments when a ConfigMap or Secret that they read changes.
//!
//! For each Deployment with the annotation `oarlock.dev/reload`, a hash of what its Pod template names is an
//! annotation of that template: another hash is another template, and a roll-out. The reads of a run wake its
//! key again, so the plugin subscribes to Deployments only.
//!
//! [`template`]: what a Pod template names.

#![deny(unsafe_code)]

mod template;

use oarlock_sdk::cache::{self, RowExt as _, Select};
use oarlock_sdk::client::{self, Preconditions};
use oarlock_sdk::{
    Description, Enqueue, Failure, GroupVersionResource, Outcome, Plugin, Reconciler, Subscription, Test,
    WorkKey, gvr, info, key,
};
use serde_json::{Value, json};

use template::Source;

/// The annotation of a Deployment that has it restarted.
const RELOAD: &str = "/metadata/annotations/oarlock.dev~1reload";

/// The annotation of the Pod template.
const HASH: &str = "oarlock.dev/reload-hash";

struct Reloader;

// === impl Reloader ===

impl Plugin for Reloader {
    fn describe() -> Result<Description, String> {
        let annotated = Subscription::new("deployments", deployments())
            .condition(RELOAD, Test::Exists)
            .enqueue(Enqueue::Itself)
            .ignore_own_writes();
        Ok(Description::new("reloader", env!("CARGO_PKG_VERSION"))
            .stateless()
            .subscribe(annotated)
            .read("deployments", deployments())
            .read_that_wakes("configmaps", gvr("", "v1", "configmaps"))
            .read_that_wakes("secrets", gvr("", "v1", "secrets"))
            .request(deployments(), &["patch"]))
    }

    fn start() -> Result<Self, Failure> {
        Ok(Self)
    }
}

impl Reconciler for Reloader {
    fn reconcile(&mut self, deployment: &WorkKey) -> Result<Outcome, Failure> {
        let at = &deployment.object;
        let fields = Select::Fields(&[RELOAD, "/spec/template/spec", "/spec/template/metadata/annotations"]);
        let Some(row) = cache::get("deployments", at, fields)? else { return Ok(Outcome::Done) };
        if row.field::<String>(0)?.is_none() {
            return Ok(Outcome::Done);
        }
        let pods: Value = row.field(1)?.unwrap_or_default();
        let annotations: Value = row.field(2)?.unwrap_or_default();
        let hash = hash_of(&at.namespace, &pods)?;
        if annotations[HASH] == hash {
            return Ok(Outcome::Done);
        }
        let patch = json!({"spec": {"template": {"metadata": {"annotations": {HASH: hash}}}}});
        // If the Deployment changed meanwhile, this fails with a conflict, and the host tries again.
        let unchanged = Preconditions {
            uid: Some(row.object.uid.clone()),
            resource_version: Some(row.object.resource_version.clone()),
        };
        client::merge_patch(&deployments(), at, &patch, &unchanged)?;
        info!("restarted", "namespace" = at.namespace, "name" = at.name, "hash" = hash);
        Ok(Outcome::Done)
    }
}

fn deployments() -> GroupVersionResource {
    gvr("apps", "v1", "deployments")
}

/// Returns the hash of everything that the Pods read. Each read wakes the Deployment's key.
fn hash_of(namespace: &str, pods: &Value) -> Result<String, Failure> {
    let mut hash = Fnv::default();
    for (kind, name) in template::sources(pods) {
        let (lister, content) = match kind {
            Source::ConfigMap => ("configmaps", Select::Fields(&["/data", "/binaryData"])),
            Source::Secret => ("secrets", Select::Fields(&["/data"])),
        };
        hash.add(lister);
        hash.add(&name);
        let found = cache::get(lister, &key(namespace, &name), content)?;
        for text in found.into_iter().flat_map(|row| row.fields) {
            hash.add(text.as_deref().unwrap_or("null"));
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
