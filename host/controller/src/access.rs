//! The gate: the one place that decides where a ServiceAccount may list and watch a resource.
//!
//! Deliveries, cache reads and everything else that the host does on a plugin's behalf without impersonating
//! it ask [`Gate::access`]. Kubernetes decides: each question is a SubjectAccessReview with the account's
//! user name and groups. There is no second permission language and no way around the gate.
//!
//! - The gate uses an answer for [`ALLOWED_FOR`] or [`DENIED_FOR`], counted from when it *asked*: a right
//!   that is revoked is gone here after [`ALLOWED_FOR`] at the latest. The task of an account asks every five
//!   seconds, so notifications stop up to five seconds later (docs/operating.md has the times).
//! - Callers that ask the same question at the same time share one review, or one look at the account.
//! - When the API server cannot be asked, the decision is [`Access::Unknown`], never a guess.
//! - A ServiceAccount that does not exist may do nothing, whatever RBAC still grants to its name.
//! - About a cluster-scoped resource only the answer for the whole cluster counts.
//! - Each account has a [rate](REVIEWS_PER_SECOND) of questions and a [number](MOST_ANSWERS) of cached
//!   answers, so no plugin keeps the API server busy with resources and namespaces that it may not see.
//!   Plugins that share an account share both limits. All accounts together have a
//!   [number](MOST_ANSWERS_IN_TOTAL), too: beyond it, the account with the most answers loses its oldest.
//!
//! Writes and live reads do not pass here: they impersonate the account, and the API server itself decides.

mod cluster;
mod decision;
mod review;
mod review_cache;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use oarlock_informer::{GroupVersionResource, object::Namespaces};
use oarlock_plugin::contract;
use parking_lot::Mutex;
use tokio::time::Instant;

pub(crate) use self::cluster::{KnownNamespaces, Scopes};
pub(crate) use self::decision::{Access, Denial, is_same_cause};
pub(crate) use self::review::{AccountState, ApiReviewer, Error, Question, Reviewer};
use self::review_cache::{
    AccessKey, AccessKeyRef, CachedAccess, CachedReview, PendingAccount, PendingReview, ReviewCache,
};
use crate::account::Account;

/// How long the gate uses an answer that allows.
pub(crate) const ALLOWED_FOR: Duration = Duration::from_secs(10);

/// How long the gate uses an answer that denies. Shorter, so that a new right takes effect soon.
pub(crate) const DENIED_FOR: Duration = Duration::from_secs(5);

/// How long a review may take before the answer counts as unknown.
pub(crate) const ASK_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the gate uses a set of namespaces that it combined from many answers, if these are valid that
/// long: the gate asks about a new namespace after this time at the latest.
pub(crate) const NAMESPACES_FOR: Duration = Duration::from_secs(1);

/// How many namespaces the gate asks about at the same time.
const ASK_AT_ONCE: usize = 16;

/// How many reviews per second an account may cost the API server in the long run.
pub(crate) const REVIEWS_PER_SECOND: f64 = 100.0;

/// How many reviews an account may cost the API server at once.
pub(crate) const REVIEWS_AT_ONCE: u32 = 500;

/// How many answers about one account the gate caches.
pub(crate) const MOST_ANSWERS: usize = 16_384;

/// How many answers about all accounts the gate caches, before it evicts some.
pub(crate) const MOST_ANSWERS_IN_TOTAL: usize = 65_536;

/// The gate counts the answers of all accounts once for so many reviews.
const COUNT_EVERY: usize = 1_024;

/// How long a question waits for the account's rate.
const RATE_PATIENCE: Duration = Duration::from_secs(5);

/// How many denials in single namespaces the gate asks again per second. The more namespaces there are, the
/// longer it uses each denial.
const DENIALS_PER_SECOND: f64 = 20.0;

/// The longest time for which the gate uses a denial.
const DENIED_AT_MOST: Duration = Duration::from_secs(60);

/// How long a ServiceAccount that existed counts as existing.
pub(crate) const PRESENT_FOR: Duration = Duration::from_secs(5);

/// How long a ServiceAccount that was missing counts as missing.
pub(crate) const MISSING_FOR: Duration = Duration::from_secs(1);

/// The gate. Everything that acts for a plugin shares it.
pub(crate) struct Gate {
    reviewer: Arc<dyn Reviewer>,
    namespaces: Arc<dyn KnownNamespaces>,
    scopes: Arc<dyn Scopes>,
    caches: Mutex<HashMap<Account, Arc<ReviewCache>>>,
    most_answers: usize,
    /// Reviews since the answers were counted last.
    uncounted: AtomicUsize,
}

/// One answer, and until when the gate uses it.
#[derive(Debug, Clone, Copy)]
struct Answer {
    allowed: bool,
    valid_until: Instant,
}

// === impl Gate ===

impl Gate {
    /// Creates the gate that asks the API server behind `client`, as the host.
    #[must_use]
    pub(crate) fn new(
        client: kube::Client,
        namespaces: Arc<dyn KnownNamespaces>,
        scopes: Arc<dyn Scopes>,
    ) -> Self {
        Self::with_reviewer(Arc::new(ApiReviewer::new(client)), namespaces, scopes)
    }

    /// Creates a gate that asks another reviewer. For tests.
    #[must_use]
    pub(crate) fn with_reviewer(
        reviewer: Arc<dyn Reviewer>,
        namespaces: Arc<dyn KnownNamespaces>,
        scopes: Arc<dyn Scopes>,
    ) -> Self {
        Self {
            reviewer,
            namespaces,
            scopes,
            caches: Mutex::default(),
            most_answers: MOST_ANSWERS_IN_TOTAL,
            uncounted: AtomicUsize::new(0),
        }
    }

    /// Decides in which of the given namespaces an account may both list and watch a resource.
    ///
    /// One pair of reviews decides for an account with the right in all namespaces, and about a
    /// cluster-scoped resource; other accounts cost one pair for each known namespace. Cancel-safe: the next
    /// caller finishes the reviews that this one began.
    pub(crate) async fn access(
        &self,
        account: &Account,
        resource: &GroupVersionResource,
        namespaces: &contract::Namespaces,
    ) -> Access {
        let decided = self.decide(account, resource, namespaces).await;
        decided.unwrap_or_else(|error| Access::Unknown(crate::chain::text(&error)))
    }

    /// Decides whether an account may both list and watch a resource in one namespace, as a part of what
    /// [`Gate::access`] decides for all namespaces.
    ///
    /// The gate asks nothing about this namespace alone: it answers alike, and as quickly, for a namespace
    /// that is forbidden and for one that does not exist.
    pub(crate) async fn access_in(
        &self,
        account: &Account,
        resource: &GroupVersionResource,
        namespace: &str,
    ) -> Access {
        let key = AccessKeyRef { resource, namespace: None };
        let within = |access: &Access| access.within(account, resource, namespace);
        if let Some(access) = self.cache_of(account).read_access(key, within) {
            return access;
        }
        within(&self.access(account, resource, &contract::Namespaces::All).await)
    }

    /// Returns whether a decision that the gate has already made, and still uses, allows an account to list
    /// and watch a resource in one namespace. If not, [`Gate::access_in`] decides.
    pub(crate) fn is_known_to_allow(
        &self,
        account: &Account,
        resource: &GroupVersionResource,
        namespace: &str,
    ) -> bool {
        let key = AccessKeyRef { resource, namespace: None };
        let allows =
            |access: &Access| matches!(access, Access::Allowed(allowed) if allowed.contains(namespace));
        self.cache_of(account).read_access(key, allows).unwrap_or(false)
    }

    /// Returns whether the ServiceAccount exists, by an answer no older than [`PRESENT_FOR`].
    ///
    /// # Errors
    ///
    /// When the API server cannot be asked.
    pub(crate) async fn account(&self, account: &Account) -> Result<AccountState, Error> {
        self.cache_of(account).account_state(|| self.ask_account(account.clone())).await
    }

    /// Returns a question whether an account exists, whose answer any number of callers may await.
    fn ask_account(&self, account: Account) -> PendingAccount {
        let reviewer = Arc::clone(&self.reviewer);
        async move {
            tokio::time::timeout(ASK_TIMEOUT, reviewer.account_state(&account))
                .await
                .unwrap_or_else(|_| Err(Error::Unavailable { account: account.clone(), reason: no_answer() }))
        }
        .boxed()
        .shared()
    }

    async fn decide(
        &self,
        account: &Account,
        resource: &GroupVersionResource,
        namespaces: &contract::Namespaces,
    ) -> Result<Access, Error> {
        let cache = self.cache_of(account);
        let namespace = match namespaces {
            contract::Namespaces::All => None,
            contract::Namespaces::One(namespace) => Some(&**namespace),
        };
        if let Some(access) = cache.read_access(AccessKeyRef { resource, namespace }, Access::clone) {
            return Ok(access);
        }
        let (granted, valid_until) = self.granted(&cache, account, resource, namespaces).await?;
        let (access, valid_until) = match granted {
            // An account without the right is denied, whether it exists or not.
            Err(denial) => (Access::Forbidden(denial), valid_until),
            Ok(granted) => match self.account(account).await? {
                AccountState::Present { .. } => {
                    (Access::Allowed(granted), valid_until.min(Instant::now() + PRESENT_FOR))
                }
                AccountState::Missing => return Ok(Access::Forbidden(Denial::NoAccount(account.clone()))),
            },
        };
        // A guest can name more namespaces than exist; the gate caches decisions about existing ones only.
        if namespace.is_none_or(|name| self.namespaces.has(name) == Some(true)) {
            let key = AccessKey { resource: resource.clone(), namespace: namespace.map(str::to_owned) };
            cache.store_access(key, CachedAccess { access: access.clone(), valid_until });
        }
        Ok(access)
    }

    /// Returns in which of the given namespaces RBAC grants both verbs, or that it does so in none; and until
    /// when that may be used.
    async fn granted(
        &self,
        cache: &ReviewCache,
        account: &Account,
        resource: &GroupVersionResource,
        namespaces: &contract::Namespaces,
    ) -> Result<(Result<Namespaces, Denial>, Instant), Error> {
        let not_granted = || Denial::NotGranted {
            account: account.clone(),
            resource: resource.clone(),
            namespaces: namespaces.clone(),
        };
        let everywhere = self.list_and_watch(cache, account, resource, None, DENIED_FOR).await?;
        if everywhere.allowed {
            let granted = match namespaces {
                contract::Namespaces::All => Namespaces::All,
                contract::Namespaces::One(namespace) => Namespaces::one(namespace),
            };
            return Ok((Ok(granted), everywhere.valid_until));
        }
        // RBAC also answers about a cluster-scoped resource in a namespace, where no object of it is.
        let is_cluster_scoped = self.scopes.is_cluster_scoped(resource).await.map_err(|error| {
            Error::Unavailable { account: account.clone(), reason: crate::chain::text(&error) }
        })?;
        if is_cluster_scoped {
            let denial = Denial::NotGrantedInCluster { account: account.clone(), resource: resource.clone() };
            return Ok((Err(denial), everywhere.valid_until));
        }
        let candidates = match namespaces {
            // An account without the right everywhere has none in a namespace that does not exist: a
            // namespace that a guest made up costs no review.
            contract::Namespaces::One(namespace) if self.namespaces.has(namespace) == Some(false) => {
                return Ok((Err(not_granted()), Instant::now()));
            }
            contract::Namespaces::One(namespace) => [namespace.clone()].into(),
            contract::Namespaces::All => self.namespaces.names().ok_or_else(|| Error::Unavailable {
                account: account.clone(),
                reason: "the namespaces are not known yet".to_owned(),
            })?,
        };
        let denied_for = denied_for(candidates.len());
        let mut valid_until = everywhere.valid_until.min(Instant::now() + NAMESPACES_FOR);
        let mut granted = BTreeSet::new();
        let mut answers = stream::iter(candidates)
            .map(|namespace| async move {
                let answer =
                    self.list_and_watch(cache, account, resource, Some(&namespace), denied_for).await?;
                Ok::<_, Error>((namespace, answer))
            })
            .buffer_unordered(ASK_AT_ONCE);
        while let Some((namespace, answer)) = answers.try_next().await? {
            valid_until = valid_until.min(answer.valid_until);
            if answer.allowed {
                granted.insert(namespace);
            }
        }
        let granted = if granted.is_empty() { Err(not_granted()) } else { Ok(Namespaces::Only(granted)) };
        Ok((granted, valid_until))
    }

    async fn list_and_watch(
        &self,
        cache: &ReviewCache,
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
        let list = self.answer(cache, question("list"), denied_for).await?;
        if !list.allowed {
            return Ok(list);
        }
        let watch = self.answer(cache, question("watch"), denied_for).await?;
        Ok(Answer { allowed: watch.allowed, valid_until: watch.valid_until.min(list.valid_until) })
    }

    async fn answer(
        &self,
        cache: &ReviewCache,
        question: Question,
        denied_for: Duration,
    ) -> Result<Answer, Error> {
        let mut is_new = false;
        let review = |question, wait| {
            is_new = true;
            self.review(question, wait)
        };
        let CachedReview { asked_at, answer, .. } = cache.answer(question, denied_for, review)?;
        if is_new && self.uncounted.fetch_add(1, Ordering::Relaxed) + 1 >= COUNT_EVERY.min(self.most_answers)
        {
            self.uncounted.store(0, Ordering::Relaxed);
            self.evict();
        }
        let allowed = answer.await?;
        Ok(Answer { allowed, valid_until: asked_at + if allowed { ALLOWED_FOR } else { denied_for } })
    }

    /// Returns a review that begins after the wait, and that any number of callers may await.
    fn review(&self, question: Question, wait: Duration) -> PendingReview {
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

    /// Evicts answers until all accounts together have no more than the limit. The account with the most
    /// answers loses its oldest ones, so that an account that asks about few things keeps them.
    fn evict(&self) {
        let caches: Vec<_> = self.caches.lock().values().cloned().collect();
        let mut sizes: Vec<_> = caches.iter().map(|cache| (cache.drop_expired(), cache)).collect();
        let mut total: usize = sizes.iter().map(|(size, _)| size).sum();
        while total > self.most_answers {
            let Some((size, largest)) = sizes.iter_mut().max_by_key(|(size, _)| *size) else { return };
            let left = largest.keep_newest(*size / 2);
            total -= *size - left;
            *size = left;
        }
    }

    fn cache_of(&self, account: &Account) -> Arc<ReviewCache> {
        let mut caches = self.caches.lock();
        if let Some(cache) = caches.get(account) {
            return Arc::clone(cache);
        }
        // Accounts come from plugin files. Caches of accounts that no plugin uses any more are dropped here.
        caches.retain(|_, cache| Arc::strong_count(cache) > 1 || !cache.is_idle());
        let new = Arc::new(ReviewCache::default());
        caches.insert(account.clone(), Arc::clone(&new));
        new
    }
}

/// Returns how long the gate uses denials in single namespaces, by how many namespaces it asks about.
fn denied_for(n_namespaces: usize) -> Duration {
    let round = Duration::from_secs_f64(n_namespaces as f64 / DENIALS_PER_SECOND);
    round.clamp(DENIED_FOR, DENIED_AT_MOST)
}

fn no_answer() -> String {
    format!("no answer within {} s", ASK_TIMEOUT.as_secs())
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
