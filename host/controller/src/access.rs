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
//! - A ServiceAccount that does not exist may nothing, whatever RBAC still says of its name.
//! - Each account has a [rate](REVIEWS_PER_SECOND) of questions and so many [answers](MOST_ANSWERS): nobody's plugin keeps the API server
//!   busy with resources and namespaces that it may not see. Plugins that share an account share these.
//!
//! Writes and live reads do not pass here: they go out impersonating the account, and the API server itself decides.

mod asked;
mod review;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use oarlock_informer::GroupVersionResource;
use oarlock_plugin::contract::Namespaces;
use parking_lot::Mutex;
use tokio::time::Instant;

use self::asked::{Asked, Kept};
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

/// How many reviews an account costs the API server in a second, in the long run.
pub const REVIEWS_PER_SECOND: f64 = 100.0;

/// How many it may cost at once.
pub const REVIEWS_AT_ONCE: u32 = 500;

/// How many answers about an account are kept.
pub const MOST_ANSWERS: usize = 16_384;

/// How long a question waits for the account's rate.
const RATE_PATIENCE: Duration = Duration::from_secs(5);

/// Where an account may not see all namespaces, the denials in single ones are kept longer the more of them there are: so many of
/// them are asked again in a second.
const DENIALS_PER_SECOND: f64 = 20.0;

/// But no denial is kept longer than this.
const DENIED_AT_MOST: Duration = Duration::from_secs(60);

/// How long a ServiceAccount that was there counts as there.
pub const PRESENT_FOR: Duration = Duration::from_secs(5);

/// How long one that was not counts as missing.
pub const MISSING_FOR: Duration = Duration::from_secs(1);

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountState {
    /// It does.
    Present {
        /// Which one of that name: one that is made anew has another.
        uid: String,
    },
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
    /// The account does not exist, so it may nothing.
    #[error("the ServiceAccount {account} does not exist")]
    NoAccount {
        /// Which.
        account: Account,
    },
    /// The account asks for more than its rate allows.
    #[error(
        "what {account} may do takes more than {REVIEWS_PER_SECOND} questions a second to find out; declare fewer resources, or \
         grant them in all namespaces: one answer then does for all"
    )]
    TooMany {
        /// On whose behalf.
        account: Account,
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
    /// What was asked, account by account.
    asked: Mutex<HashMap<Account, Arc<Asked>>>,
}

/// Where may this account read this resource, in this namespace or in all?
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Reading {
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
        Self { reviewer, namespaces, asked: Mutex::default() }
    }

    /// Returns whether Kubernetes allows it, by an answer no older than [`ALLOWED_FOR`].
    ///
    /// Cancel-safe: a question that was given up by one asker is finished by the next.
    pub async fn allowed(&self, question: Question) -> Result<bool, Error> {
        let asked = self.asked(&question.account);
        Ok(self.answer(&asked, question, DENIED_FOR).await?.allowed)
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
        let asked = self.asked(account);
        let reading = Reading {
            resource: resource.clone(),
            namespace: match namespaces {
                Namespaces::All => None,
                Namespaces::One(namespace) => Some(namespace.clone()),
            },
        };
        if let Some(readable) = asked.reading(&reading) {
            return Ok(readable);
        }
        let Read { readable, good_until } = self.read(&asked, account, resource, namespaces).await?;
        let good_until = match readable.is_nowhere() {
            // What it may not do it may not do, be it there or not.
            true => good_until,
            false => match self.account(account).await? {
                AccountState::Present { .. } => good_until.min(Instant::now() + PRESENT_FOR),
                AccountState::Missing => return Err(Error::NoAccount { account: account.clone() }),
            },
        };
        // A guest can name more namespaces than there are, and only those are worth remembering.
        if reading.namespace.as_ref().is_none_or(|name| self.namespaces.has(name) == Some(true)) {
            asked.remember(reading, Read { readable: readable.clone(), good_until });
        }
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
        let reading = Reading { resource: resource.clone(), namespace: None };
        if let Some(contains) = self.asked(account).may_read_in(&reading, namespace) {
            return Ok(contains);
        }
        Ok(self.readable(account, resource, &Namespaces::All).await?.contains(namespace))
    }

    /// Returns whether the ServiceAccount exists, by an answer no older than [`PRESENT_FOR`].
    pub async fn account(&self, account: &Account) -> Result<AccountState, Error> {
        let asked = self.asked(account);
        if let Some(state) = asked.account() {
            return Ok(state);
        }
        let at = Instant::now();
        let state = tokio::time::timeout(ASK_TIMEOUT, self.reviewer.account_state(account))
            .await
            .unwrap_or_else(|_| Err(Error::Unavailable { account: account.clone(), reason: no_answer() }))?;
        asked.note_account(at, state.clone());
        Ok(state)
    }

    async fn read(
        &self,
        asked: &Asked,
        account: &Account,
        resource: &GroupVersionResource,
        namespaces: &Namespaces,
    ) -> Result<Read, Error> {
        let everywhere = self.may_read(asked, account, resource, None, DENIED_FOR).await?;
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
        let denied_for = denied_for(candidates.len());
        let mut good_until = everywhere.good_until.min(Instant::now() + NAMESPACES_FOR);
        let mut readable = BTreeSet::new();
        let mut answers = stream::iter(candidates)
            .map(|namespace| async move {
                let answer = self.may_read(asked, account, resource, Some(&namespace), denied_for).await?;
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
        asked: &Asked,
        account: &Account,
        resource: &GroupVersionResource,
        namespace: Option<&str>,
        denied_for: Duration,
    ) -> Result<Answer, Error> {
        let question = |verb| Question {
            account: account.clone(),
            verb,
            resource: resource.clone(),
            namespace: namespace.map(str::to_owned),
        };
        let list = self.answer(asked, question("list"), denied_for).await?;
        if !list.allowed {
            return Ok(list);
        }
        let watch = self.answer(asked, question("watch"), denied_for).await?;
        Ok(Answer { allowed: watch.allowed, good_until: watch.good_until.min(list.good_until) })
    }

    async fn answer(&self, asked: &Asked, question: Question, denied_for: Duration) -> Result<Answer, Error> {
        let Kept { asked: at, answer, .. } =
            asked.answer(question, denied_for, |question, wait| self.ask(question, wait))?;
        let allowed = answer.await?;
        Ok(Answer { allowed, good_until: at + if allowed { ALLOWED_FOR } else { denied_for } })
    }

    fn ask(&self, question: Question, wait: Duration) -> asked::Asking {
        let reviewer = Arc::clone(&self.reviewer);
        async move {
            tokio::time::sleep(wait).await;
            tokio::time::timeout(ASK_TIMEOUT, reviewer.review(&question)).await.unwrap_or_else(|_| {
                Err(Error::Unavailable { account: question.account.clone(), reason: no_answer() })
            })
        }
        .boxed()
        .shared()
    }

    /// What was asked about an account.
    fn asked(&self, account: &Account) -> Arc<Asked> {
        let mut asked = self.asked.lock();
        if let Some(asked) = asked.get(account) {
            return Arc::clone(asked);
        }
        // Accounts come from plugin files; those whose plugin is gone are forgotten when another one comes.
        asked.retain(|_, it| Arc::strong_count(it) > 1 || !it.is_idle());
        let new = Arc::new(Asked::default());
        asked.insert(account.clone(), Arc::clone(&new));
        new
    }
}

/// How long denials in so many single namespaces are kept.
fn denied_for(namespaces: usize) -> Duration {
    let turn = Duration::from_secs_f64(namespaces as f64 / DENIALS_PER_SECOND);
    turn.clamp(DENIED_FOR, DENIED_AT_MOST)
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
