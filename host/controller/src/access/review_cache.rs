//! The gate's cache for one account: its reviews, its decisions, its rate, and whether the account exists.

use std::collections::HashMap;
use std::hash::RandomState;
use std::time::Duration;

use futures::future::{BoxFuture, Shared};
use hashbrown::Equivalent;
use oarlock_flow_control::TokenBucket;
use oarlock_informer::GroupVersionResource;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    ALLOWED_FOR, Access, AccountState, Error, MISSING_FOR, MOST_ANSWERS, PRESENT_FOR, Question,
    RATE_PATIENCE, REVIEWS_AT_ONCE, REVIEWS_PER_SECOND,
};

/// The cache drops expired entries when it has more than this many, and at most once in a second.
const EXPIRE_ABOVE: usize = 1_024;

/// A review that was begun, or its answer.
pub(super) type PendingReview = Shared<BoxFuture<'static, Result<bool, Error>>>;

/// A question whether an account exists, or its answer.
pub(super) type PendingAccount = Shared<BoxFuture<'static, Result<AccountState, Error>>>;

/// Everything that the gate remembers about one account.
pub(super) struct ReviewCache {
    rate: TokenBucket,
    reviews: Mutex<CachedReviews>,
    decisions: Mutex<hashbrown::HashMap<AccessKey, CachedAccess, RandomState>>,
    account: Mutex<Option<CachedAccount>>,
}

/// The last question whether the account exists.
struct CachedAccount {
    asked_at: Instant,
    answer: PendingAccount,
}

/// One review, and how long its answer may be used.
#[derive(Clone)]
pub(super) struct CachedReview {
    /// When the review is or was sent.
    pub(super) asked_at: Instant,
    denied_for: Duration,
    pub(super) answer: PendingReview,
}

/// The subject of a decision about an account: a resource in one namespace, or in all.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AccessKey {
    pub(super) resource: GroupVersionResource,
    pub(super) namespace: Option<String>,
}

/// An [`AccessKey`] whose parts are borrowed, to find a decision. It has the hash of that key.
#[derive(Clone, Copy, Hash)]
pub(super) struct AccessKeyRef<'a> {
    pub(super) resource: &'a GroupVersionResource,
    pub(super) namespace: Option<&'a str>,
}

/// A decision, and until when the gate uses it.
pub(super) struct CachedAccess {
    pub(super) access: Access,
    pub(super) valid_until: Instant,
}

struct CachedReviews {
    by_question: HashMap<Question, CachedReview>,
    expired_at: Instant,
}

// === impl ReviewCache ===

impl Default for ReviewCache {
    fn default() -> Self {
        let reviews = CachedReviews { by_question: HashMap::new(), expired_at: Instant::now() };
        Self {
            rate: TokenBucket::per_second(REVIEWS_PER_SECOND, REVIEWS_AT_ONCE),
            reviews: Mutex::new(reviews),
            decisions: Mutex::default(),
            account: Mutex::default(),
        }
    }
}

impl ReviewCache {
    /// Returns the cached review, or begins one when the account's rate allows it.
    ///
    /// # Errors
    ///
    /// [`Error::TooMany`] when the account asks too often, or about too much.
    pub(super) fn answer(
        &self,
        question: Question,
        denied_for: Duration,
        review: impl FnOnce(Question, Duration) -> PendingReview,
    ) -> Result<CachedReview, Error> {
        let mut reviews = self.reviews.lock();
        if let Some(cached) = reviews.by_question.get(&question).filter(|cached| cached.is_valid()) {
            return Ok(cached.clone());
        }
        reviews.drop_expired();
        let too_many = || Error::TooMany { account: question.account.clone() };
        if reviews.by_question.len() >= MOST_ANSWERS && !reviews.by_question.contains_key(&question) {
            return Err(too_many());
        }
        let wait = self.rate.reserve(RATE_PATIENCE).map_err(|_| too_many())?;
        let answer = review(question.clone(), wait);
        let cached = CachedReview { asked_at: Instant::now() + wait, denied_for, answer };
        reviews.by_question.insert(question, cached.clone());
        Ok(cached)
    }

    /// Returns what `read` returns for a cached decision; `None` without a valid one.
    pub(super) fn read_access<T>(&self, key: AccessKeyRef<'_>, read: impl FnOnce(&Access) -> T) -> Option<T> {
        let decisions = self.decisions.lock();
        decisions.get(&key).filter(|cached| cached.is_valid()).map(|cached| read(&cached.access))
    }

    pub(super) fn store_access(&self, key: AccessKey, access: CachedAccess) {
        let mut decisions = self.decisions.lock();
        if decisions.len() > EXPIRE_ABOVE {
            decisions.retain(|_, cached| cached.is_valid());
        }
        if decisions.len() < MOST_ANSWERS {
            decisions.insert(key, access);
        }
    }

    /// Returns whether the account exists: what the gate asked recently, or asks now.
    pub(super) fn account_state(&self, ask: impl FnOnce() -> PendingAccount) -> PendingAccount {
        let mut account = self.account.lock();
        if let Some(cached) = account.as_ref().filter(|cached| cached.is_valid()) {
            return cached.answer.clone();
        }
        let answer = ask();
        *account = Some(CachedAccount { asked_at: Instant::now(), answer: answer.clone() });
        answer
    }

    /// Drops what is not valid any more, and returns how much is left.
    pub(super) fn drop_expired(&self) -> usize {
        let reviews = {
            let mut reviews = self.reviews.lock();
            reviews.by_question.retain(|_, cached| cached.is_valid());
            reviews.by_question.len()
        };
        let mut decisions = self.decisions.lock();
        decisions.retain(|_, cached| cached.is_valid());
        reviews + decisions.len()
    }

    /// Keeps the newest reviews, at most this many, and no decision: decisions are made of reviews. Returns
    /// how many are left. A caller that waits for a review still gets its answer.
    pub(super) fn keep_newest(&self, most: usize) -> usize {
        self.decisions.lock().clear();
        let mut reviews = self.reviews.lock();
        let surplus = reviews.by_question.len().saturating_sub(most);
        if surplus > 0 {
            let mut times: Vec<_> = reviews.by_question.values().map(|cached| cached.asked_at).collect();
            times.sort_unstable();
            let mut left = surplus;
            let newest_surplus = times[surplus - 1];
            reviews.by_question.retain(|_, cached| {
                let is_surplus = left > 0 && cached.asked_at <= newest_surplus;
                left -= usize::from(is_surplus);
                !is_surplus
            });
        }
        reviews.by_question.len()
    }

    /// Returns whether the cache has no valid review.
    pub(super) fn is_idle(&self) -> bool {
        !self.reviews.lock().by_question.values().any(CachedReview::is_valid)
    }

    #[cfg(test)]
    pub(super) fn n_cached(&self) -> usize {
        self.reviews.lock().by_question.len() + self.decisions.lock().len()
    }

    #[cfg(test)]
    pub(super) fn n_decisions(&self) -> usize {
        self.decisions.lock().len()
    }
}

// === impl CachedReviews ===

impl CachedReviews {
    fn drop_expired(&mut self) {
        let is_due = self.expired_at.elapsed() >= Duration::from_secs(1);
        if self.by_question.len() > EXPIRE_ABOVE && is_due {
            self.by_question.retain(|_, cached| cached.is_valid());
            self.expired_at = Instant::now();
        }
    }
}

// === impl CachedAccount ===

impl CachedAccount {
    /// Returns whether the answer may still be used. A pending question is valid for as long as its answer
    /// could be; a failed one is not, so that the next caller asks again.
    fn is_valid(&self) -> bool {
        let age = self.asked_at.elapsed();
        match self.answer.peek() {
            None | Some(Ok(AccountState::Present { .. })) => age < PRESENT_FOR,
            Some(Ok(AccountState::Missing)) => age < MISSING_FOR,
            Some(Err(_)) => false,
        }
    }
}

// === impl CachedReview ===

impl CachedReview {
    /// Returns whether the review may still be used. A pending review is valid for as long as its answer
    /// could be; a failed one is not, so that the next caller asks again.
    fn is_valid(&self) -> bool {
        let age = self.asked_at.elapsed();
        match self.answer.peek() {
            None | Some(Ok(true)) => age < ALLOWED_FOR,
            Some(Ok(false)) => age < self.denied_for,
            Some(Err(_)) => false,
        }
    }
}

// === impl AccessKeyRef ===

impl Equivalent<AccessKey> for AccessKeyRef<'_> {
    fn equivalent(&self, key: &AccessKey) -> bool {
        *self.resource == key.resource && self.namespace == key.namespace.as_deref()
    }
}

// === impl CachedAccess ===

impl CachedAccess {
    fn is_valid(&self) -> bool {
        Instant::now() < self.valid_until
    }
}
