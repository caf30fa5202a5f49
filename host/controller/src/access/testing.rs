//! A reviewer for unit tests.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use oarlock_informer::GroupVersionResource;
use parking_lot::Mutex;

use super::{AccountState, Error, KnownNamespaces, Question, Reviewer, Scopes};
use crate::account::Account;
use crate::discovery;

/// Allows what its list contains, counts the reviews, and fails or stalls on demand.
#[derive(Default)]
pub(crate) struct FakeReviewer {
    pub(crate) allowed: Mutex<BTreeSet<(String, Option<String>)>>,
    asked: AtomicUsize,
    /// How often it looked for the account.
    pub(crate) looked: AtomicUsize,
    pub(crate) down: Mutex<bool>,
    pub(crate) stalls: Mutex<Option<Duration>>,
    /// Whether all resources are cluster-scoped.
    pub(crate) cluster_scoped: Mutex<bool>,
    pub(crate) discovery_fails: Mutex<bool>,
    /// The account's state; without one, the account exists with the uid `the-first`.
    pub(crate) account: Mutex<Option<AccountState>>,
}

/// The namespaces that exist; `None` while they are unknown.
pub(crate) struct Known(pub(crate) Option<&'static [&'static str]>);

// === impl FakeReviewer ===

impl FakeReviewer {
    pub(crate) fn allow(&self, verb: &str, namespace: Option<&str>) {
        self.allowed.lock().insert((verb.to_owned(), namespace.map(str::to_owned)));
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Reviewer for FakeReviewer {
    async fn review(&self, question: &Question) -> Result<bool, Error> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let stall = *self.stalls.lock();
        if let Some(stall) = stall {
            tokio::time::sleep(stall).await;
        }
        if *self.down.lock() {
            return Err(Error::Unavailable { account: question.account.clone(), reason: "down".to_owned() });
        }
        Ok(self.allowed.lock().contains(&(question.verb.to_owned(), question.namespace.clone())))
    }

    async fn account_state(&self, account: &Account) -> Result<AccountState, Error> {
        self.looked.fetch_add(1, Ordering::SeqCst);
        let stall = *self.stalls.lock();
        if let Some(stall) = stall {
            tokio::time::sleep(stall).await;
        }
        if *self.down.lock() {
            return Err(Error::Unavailable { account: account.clone(), reason: "down".to_owned() });
        }
        let first = || AccountState::Present { uid: "the-first".to_owned() };
        Ok(self.account.lock().clone().unwrap_or_else(first))
    }
}

#[async_trait]
impl Scopes for FakeReviewer {
    async fn is_cluster_scoped(&self, resource: &GroupVersionResource) -> Result<bool, discovery::Error> {
        if *self.discovery_fails.lock() {
            let group_version = resource.api_version().to_string();
            return Err(discovery::Error::Unavailable { group_version, reason: "down".to_owned() });
        }
        Ok(*self.cluster_scoped.lock())
    }
}

// === impl Known ===

impl KnownNamespaces for Known {
    fn names(&self) -> Option<BTreeSet<String>> {
        self.0.map(|names| names.iter().map(|&name| name.to_owned()).collect())
    }
}
