//! A reviewer for unit tests.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use async_trait::async_trait;
use parking_lot::Mutex;

use super::{AccountState, Error, KnownNamespaces, Question, Reviewer};
use crate::account::Account;

/// Allows what is in a list, counts, and can be made to fail or stall.
#[derive(Default)]
pub(crate) struct FakeReviewer {
    pub(crate) allowed: Mutex<BTreeSet<(String, Option<String>)>>,
    asked: AtomicUsize,
    pub(crate) down: Mutex<bool>,
    pub(crate) stalls: Mutex<Option<Duration>>,
    /// That of the account, while there is one; `the-first` if never set.
    pub(crate) account: Mutex<Option<AccountState>>,
}

pub(crate) struct Known(pub(crate) Option<&'static [&'static str]>);

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

    async fn account_state(&self, _account: &Account) -> Result<AccountState, Error> {
        let first = || AccountState::Present { uid: "the-first".to_owned() };
        Ok(self.account.lock().clone().unwrap_or_else(first))
    }
}

impl KnownNamespaces for Known {
    fn names(&self) -> Option<BTreeSet<String>> {
        self.0.map(|names| names.iter().map(|&name| name.to_owned()).collect())
    }
}

impl FakeReviewer {
    pub(crate) fn allow(&self, verb: &str, namespace: Option<&str>) {
        self.allowed.lock().insert((verb.to_owned(), namespace.map(str::to_owned)));
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}
