//! The state of one server, shared by all requests.

use crate::authn::{BoundObject, Refusal, Tokens};
use crate::authorizer::Authorizer;
use crate::catalog::{Catalog, Served};
use crate::faults::Faults;
use crate::generated::Generated;
use crate::services::ClusterIps;
use crate::status::{GroupResource, StatusError};
use crate::store::{Store, Transaction};
use crate::user::UserInfo;
use http::HeaderMap;
use parking_lot::Mutex;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Duration;

#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) store: Store,
    pub(crate) catalog: Catalog,
    pub(crate) tokens: Tokens,
    pub(crate) faults: Faults,
    pub(crate) cluster_ips: ClusterIps,
    /// The interval between the bookmarks of a watch.
    pub(crate) bookmark_interval: Duration,
    rights: Rights,
    /// Notifies of changes to CustomResourceDefinitions.
    definitions: Mutex<watch::Receiver<u64>>,
}

/// The authorizer over the stored Roles and Bindings. A change of one of them replaces it.
#[derive(Debug)]
struct Rights {
    storages: Vec<GroupResource>,
    changes: Vec<watch::Receiver<u64>>,
    latest: Mutex<(Vec<u64>, Arc<Authorizer>)>,
}

const RBAC: &str = "rbac.authorization.k8s.io";
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

// === impl Cluster ===

impl Cluster {
    pub(crate) fn new(history_limit: usize, bookmark_interval: Duration, generated: Generated) -> Self {
        let store = Store::with(history_limit, generated);
        let storages = ["clusterroles", "clusterrolebindings", "roles", "rolebindings"]
            .map(|resource| GroupResource::new(RBAC, resource))
            .to_vec();
        let rights = Rights {
            changes: storages.iter().map(|storage| store.subscribe_to(storage)).collect(),
            storages,
            latest: Mutex::new((Vec::new(), Arc::new(Authorizer::new([])))),
        };
        let definitions = store.subscribe_to(&GroupResource::new(DEFINITIONS.0, DEFINITIONS.1));
        Self {
            store,
            catalog: Catalog::new(),
            tokens: Tokens::default(),
            faults: Faults::default(),
            cluster_ips: ClusterIps::default(),
            bookmark_interval,
            rights,
            definitions: Mutex::new(definitions),
        }
    }

    /// Returns the authorizer over the current Roles and Bindings.
    pub(crate) fn authorizer(&self) -> Arc<Authorizer> {
        let stamp: Vec<u64> = self.rights.changes.iter().map(|changes| *changes.borrow()).collect();
        let mut latest = self.rights.latest.lock();
        if latest.0 != stamp {
            let objects: Vec<Value> =
                self.rights.storages.iter().flat_map(|storage| self.values(storage)).collect();
            *latest = (stamp, Arc::new(Authorizer::new(&objects)));
        }
        latest.1.clone()
    }

    /// Returns the user who sent a request.
    pub(crate) fn authenticate(&self, headers: &HeaderMap) -> Result<UserInfo, StatusError> {
        self.tokens.authenticate(headers, |bound| self.is_there(bound))
    }

    /// Returns the user behind a token, and those of the wanted audiences that the token is for.
    pub(crate) fn review(&self, token: &str, wanted: &[String]) -> Result<(UserInfo, Vec<String>), Refusal> {
        self.tokens.review(token, wanted, |bound| self.is_there(bound))
    }

    fn is_there(&self, bound: &BoundObject) -> bool {
        self.store.get(&bound.storage, &bound.key).is_some_and(|object| object.uid == bound.uid)
    }

    /// Runs a write. Changes of CustomResourceDefinitions are in effect when this returns.
    pub(crate) fn write<T>(
        &self,
        dry_run: bool,
        work: impl FnOnce(&mut Transaction<'_>, &Served) -> Result<T, StatusError>,
    ) -> Result<T, StatusError> {
        let result = self.store.transact(dry_run, |transaction| work(transaction, &self.catalog.served()));
        let mut definitions = self.definitions.lock();
        if definitions.has_changed().unwrap_or(false) {
            definitions.borrow_and_update();
            self.catalog.replace(&self.values(&GroupResource::new(DEFINITIONS.0, DEFINITIONS.1)));
        }
        result
    }

    fn values(&self, storage: &GroupResource) -> Vec<Value> {
        let snapshot = self.store.snapshot(storage, "", None);
        let objects = snapshot.map(|snapshot| snapshot.objects).unwrap_or_default();
        objects.iter().filter_map(|object| object.value().ok()).collect()
    }
}
