//! The one gate: may this ServiceAccount do this to that resource in this namespace?
//!
//! Deliveries, cache reads and everything else that the host does on a plugin's behalf without impersonating it ask
//! here, and Kubernetes answers: each question is a SubjectAccessReview with the account's user name and groups. There is
//! no second permission language and no way around it.
//!
//! - An answer is kept for [`ALLOWED_FOR`] or [`DENIED_FOR`], counted from when it was *asked for*: a right that is
//!   taken away is gone here after [`ALLOWED_FOR`] at the latest.
//! - The same question asked many times at once goes out once.
//! - When the API server cannot be asked, the gate is closed: [`Error::Unavailable`], never a guess.
//!
//! Writes and live reads do not pass here: they go out impersonating the account, and the API server itself decides.

mod review;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::{
    FutureExt, StreamExt, TryStreamExt,
    future::{BoxFuture, Shared},
    stream,
};
use oarlock_informer::GroupVersionResource;
use oarlock_plugin::contract::Namespaces;
use parking_lot::Mutex;
use tokio::time::Instant;

pub use self::review::{ApiReviewer, Reviewer};
use crate::account::Account;

/// How long an allowing answer is used.
pub const ALLOWED_FOR: Duration = Duration::from_secs(10);

/// How long a denying answer is used. Shorter, so that a right just given shows soon.
pub const DENIED_FOR: Duration = Duration::from_secs(5);

/// How long a question may take before the gate counts as closed.
pub const ASK_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a set of namespaces is used that was put together of many answers, if they last that long: a namespace that
/// appears is asked about after this long at the latest.
pub const NAMESPACES_FOR: Duration = Duration::from_secs(1);

/// How many namespaces are asked about at the same time.
const ASK_AT_ONCE: usize = 16;

/// Beyond this many kept answers, those that are too old are thrown out.
const SWEEP_ABOVE: usize = 4_096;

/// One question to Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Question {
    /// Who.
    pub account: Account,
    /// The API's verb, such as `list`.
    pub verb: &'static str,
    /// What.
    pub resource: GroupVersionResource,
    /// Where; none asks for all namespaces at once.
    pub namespace: Option<String>,
}

/// Where an account may list and watch a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readable {
    /// Everywhere, future namespaces included.
    All,
    /// In these namespaces. Empty: nowhere.
    Only(BTreeSet<String>),
}

/// Whether a ServiceAccount exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccountState {
    /// It does.
    Present,
    /// It does not.
    Missing,
}

/// The gate is closed for want of an answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The API server could not be asked, or did not answer in time.
    #[error("the API server cannot be asked what {account} may do: {reason}")]
    Unavailable {
        /// On whose behalf.
        account: Account,
        /// What went wrong.
        reason: String,
    },
    /// The host itself may not ask.
    #[error(
        "the host may not ask what {account} may do; give it the rights that `oarlock rbac` prints: {reason}"
    )]
    HostForbidden {
        /// On whose behalf.
        account: Account,
        /// What the API server says.
        reason: String,
    },
}

/// The names of the namespaces that there are.
pub trait KnownNamespaces: Send + Sync {
    /// All of them; none while they are not known yet.
    fn names(&self) -> Option<BTreeSet<String>>;

    /// Whether there is one of this name; none while that is not known.
    fn has(&self, name: &str) -> Option<bool> {
        self.names().map(|names| names.contains(name))
    }
}

/// The gate. Shared by everything that acts for a plugin.
pub struct Gate {
    reviewer: Arc<dyn Reviewer>,
    namespaces: Arc<dyn KnownNamespaces>,
    answers: Mutex<HashMap<Question, Kept>>,
    readings: Mutex<HashMap<Reading, Read>>,
}

/// Where may this account read this resource, in this namespace or in all?
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Reading {
    account: Account,
    resource: GroupVersionResource,
    namespace: Option<String>,
}

/// What came of it.
struct Read {
    readable: Readable,
    good_until: Instant,
}

/// One answer and how long it may be used.
#[derive(Debug, Clone, Copy)]
struct Answer {
    allowed: bool,
    good_until: Instant,
}

/// An answer, or the asking for it.
struct Kept {
    asked: Instant,
    answer: Shared<BoxFuture<'static, Result<bool, Error>>>,
}

// === impl Gate ===

impl Gate {
    /// Makes the gate that asks the API server behind `client`, as the host.
    #[must_use]
    pub fn new(client: kube::Client, namespaces: Arc<dyn KnownNamespaces>) -> Self {
        Self::with_reviewer(Arc::new(ApiReviewer::new(client)), namespaces)
    }

    /// Makes a gate that asks someone else. For tests.
    #[must_use]
    pub fn with_reviewer(reviewer: Arc<dyn Reviewer>, namespaces: Arc<dyn KnownNamespaces>) -> Self {
        Self { reviewer, namespaces, answers: Mutex::default(), readings: Mutex::default() }
    }

    /// Returns whether Kubernetes allows it, by an answer no older than [`ALLOWED_FOR`].
    ///
    /// Cancel-safe: a question that was given up by one asker is finished by the next.
    pub async fn allowed(&self, question: Question) -> Result<bool, Error> {
        Ok(self.answer(question).await?.allowed)
    }

    /// Returns where in a choice of namespaces an account may both list and watch a resource.
    ///
    /// An account with the right everywhere is asked about once; any other once per known namespace.
    pub async fn readable(
        &self,
        account: &Account,
        resource: &GroupVersionResource,
        namespaces: &Namespaces,
    ) -> Result<Readable, Error> {
        let reading = Reading {
            account: account.clone(),
            resource: resource.clone(),
            namespace: match namespaces {
                Namespaces::All => None,
                Namespaces::One(namespace) => Some(namespace.clone()),
            },
        };
        if let Some(read) = self.readings.lock().get(&reading).filter(|read| read.is_fresh()) {
            return Ok(read.readable.clone());
        }
        let read = self.read(account, resource, namespaces).await?;
        let readable = read.readable.clone();
        // A guest can name more namespaces than there are, and only those are worth remembering.
        if reading.namespace.as_ref().is_some_and(|name| self.namespaces.has(name) != Some(true)) {
            return Ok(readable);
        }
        let mut readings = self.readings.lock();
        if readings.len() > SWEEP_ABOVE {
            readings.retain(|_, read| read.is_fresh());
        }
        readings.insert(reading, read);
        Ok(readable)
    }

    /// Returns whether a namespace is among all those in which an account may both list and watch a resource.
    ///
    /// Nothing is asked about this namespace alone: one that is forbidden and one that does not exist are
    /// answered alike, and as quickly.
    pub async fn may_read_in(
        &self,
        account: &Account,
        resource: &GroupVersionResource,
        namespace: &str,
    ) -> Result<bool, Error> {
        let reading = Reading { account: account.clone(), resource: resource.clone(), namespace: None };
        if let Some(read) = self.readings.lock().get(&reading).filter(|read| read.is_fresh()) {
            return Ok(read.readable.contains(namespace));
        }
        Ok(self.readable(account, resource, &Namespaces::All).await?.contains(namespace))
    }

    /// Returns whether the ServiceAccount exists. Always asks.
    pub async fn account_state(&self, account: &Account) -> Result<AccountState, Error> {
        tokio::time::timeout(ASK_TIMEOUT, self.reviewer.account_state(account))
            .await
            .unwrap_or_else(|_| Err(Error::Unavailable { account: account.clone(), reason: no_answer() }))
    }

    async fn read(
        &self,
        account: &Account,
        resource: &GroupVersionResource,
        namespaces: &Namespaces,
    ) -> Result<Read, Error> {
        let everywhere = self.may_read(account, resource, None).await?;
        if everywhere.allowed {
            let readable = match namespaces {
                Namespaces::All => Readable::All,
                Namespaces::One(namespace) => Readable::Only([namespace.clone()].into()),
            };
            return Ok(Read { readable, good_until: everywhere.good_until });
        }
        let candidates = match namespaces {
            // Without a right everywhere there is none where there is no namespace: nobody needs to be asked about what a guest
            // made up.
            Namespaces::One(namespace) if self.namespaces.has(namespace) == Some(false) => {
                return Ok(Read { readable: Readable::Only(BTreeSet::new()), good_until: Instant::now() });
            }
            Namespaces::One(namespace) => [namespace.clone()].into(),
            Namespaces::All => self.namespaces.names().ok_or_else(|| Error::Unavailable {
                account: account.clone(),
                reason: "the namespaces are not known yet".to_owned(),
            })?,
        };
        let mut good_until = everywhere.good_until.min(Instant::now() + NAMESPACES_FOR);
        let mut readable = BTreeSet::new();
        let mut answers = stream::iter(candidates)
            .map(|namespace| async move {
                let answer = self.may_read(account, resource, Some(&namespace)).await?;
                Ok::<_, Error>((namespace, answer))
            })
            .buffer_unordered(ASK_AT_ONCE);
        while let Some((namespace, answer)) = answers.try_next().await? {
            good_until = good_until.min(answer.good_until);
            if answer.allowed {
                readable.insert(namespace);
            }
        }
        Ok(Read { readable: Readable::Only(readable), good_until })
    }

    async fn may_read(
        &self,
        account: &Account,
        resource: &GroupVersionResource,
        namespace: Option<&str>,
    ) -> Result<Answer, Error> {
        let question = |verb| Question {
            account: account.clone(),
            verb,
            resource: resource.clone(),
            namespace: namespace.map(str::to_owned),
        };
        let list = self.answer(question("list")).await?;
        if !list.allowed {
            return Ok(list);
        }
        let watch = self.answer(question("watch")).await?;
        Ok(Answer { allowed: watch.allowed, good_until: watch.good_until.min(list.good_until) })
    }

    async fn answer(&self, question: Question) -> Result<Answer, Error> {
        let (asked, answer) = {
            let mut answers = self.answers.lock();
            if answers.len() > SWEEP_ABOVE {
                answers.retain(|_, kept| kept.is_fresh());
            }
            match answers.get(&question) {
                Some(kept) if kept.is_fresh() => (kept.asked, kept.answer.clone()),
                _ => {
                    let (asked, answer) = (Instant::now(), self.ask(question.clone()));
                    answers.insert(question, Kept { asked, answer: answer.clone() });
                    (asked, answer)
                }
            }
        };
        let allowed = answer.await?;
        Ok(Answer { allowed, good_until: asked + if allowed { ALLOWED_FOR } else { DENIED_FOR } })
    }

    fn ask(&self, question: Question) -> Shared<BoxFuture<'static, Result<bool, Error>>> {
        let reviewer = Arc::clone(&self.reviewer);
        async move {
            tokio::time::timeout(ASK_TIMEOUT, reviewer.review(&question)).await.unwrap_or_else(|_| {
                Err(Error::Unavailable { account: question.account.clone(), reason: no_answer() })
            })
        }
        .boxed()
        .shared()
    }
}

fn no_answer() -> String {
    format!("no answer within {} s", ASK_TIMEOUT.as_secs())
}

// === impl Read ===

impl Read {
    fn is_fresh(&self) -> bool {
        Instant::now() < self.good_until
    }
}

// === impl Kept ===

impl Kept {
    /// Whether it may still be used. What is being asked for is fresh for as long as the answer could be, a
    /// failure is not: the next asker tries again.
    fn is_fresh(&self) -> bool {
        let age = self.asked.elapsed();
        match self.answer.peek() {
            None => age < ALLOWED_FOR,
            Some(Ok(true)) => age < ALLOWED_FOR,
            Some(Ok(false)) => age < DENIED_FOR,
            Some(Err(_)) => false,
        }
    }
}

// === impl Readable ===

impl Readable {
    /// Whether objects of this namespace may be read.
    #[must_use]
    pub fn contains(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(namespaces) => namespaces.contains(namespace),
        }
    }

    /// Whether nothing at all may be read.
    #[must_use]
    pub fn is_nowhere(&self) -> bool {
        matches!(self, Self::Only(namespaces) if namespaces.is_empty())
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
