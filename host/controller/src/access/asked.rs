//! What was asked about one account: its answers, its rate, and whether it exists.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::{BoxFuture, Shared};
use oarlock_informer::flow_control::TokenBucket;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    ALLOWED_FOR, AccountState, Error, MISSING_FOR, MOST_ANSWERS, PRESENT_FOR, Question, RATE_PATIENCE,
    REVIEWS_AT_ONCE, REVIEWS_PER_SECOND, Read, Readable, Reading,
};

/// Beyond this many, what is too old is thrown out; not more often than once in a second.
const SWEEP_ABOVE: usize = 1_024;

/// A question on its way.
pub(super) type Asking = Shared<BoxFuture<'static, Result<bool, Error>>>;

/// What was asked about one account.
pub(super) struct Asked {
    rate: TokenBucket,
    answers: Mutex<Answers>,
    readings: Mutex<HashMap<Reading, Read>>,
    account: Mutex<Option<(Instant, AccountState)>>,
}

/// An answer, or the asking for it.
#[derive(Clone)]
pub(super) struct Kept {
    /// When it goes out, or went out.
    pub(super) asked: Instant,
    denied_for: Duration,
    pub(super) answer: Asking,
}

struct Answers {
    kept: HashMap<Question, Kept>,
    swept: Instant,
}

// === impl Asked ===

impl Default for Asked {
    fn default() -> Self {
        Self {
            rate: TokenBucket::per_second(REVIEWS_PER_SECOND, REVIEWS_AT_ONCE),
            answers: Mutex::new(Answers { kept: HashMap::new(), swept: Instant::now() }),
            readings: Mutex::default(),
            account: Mutex::default(),
        }
    }
}

impl Asked {
    /// Returns the answer that is kept, or asks when the account's rate allows it.
    pub(super) fn answer(
        &self,
        question: Question,
        denied_for: Duration,
        ask: impl FnOnce(Question, Duration) -> Asking,
    ) -> Result<Kept, Error> {
        let mut answers = self.answers.lock();
        if let Some(kept) = answers.kept.get(&question).filter(|kept| kept.is_fresh()) {
            return Ok(kept.clone());
        }
        answers.sweep();
        let too_many = || Error::TooMany { account: question.account.clone() };
        if answers.kept.len() >= MOST_ANSWERS && !answers.kept.contains_key(&question) {
            return Err(too_many());
        }
        let wait = self.rate.reserve(RATE_PATIENCE).map_err(|_| too_many())?;
        let kept = Kept { asked: Instant::now() + wait, denied_for, answer: ask(question.clone(), wait) };
        answers.kept.insert(question, kept.clone());
        Ok(kept)
    }

    /// Returns what is remembered of where something may be read.
    pub(super) fn reading(&self, reading: &Reading) -> Option<Readable> {
        let readings = self.readings.lock();
        readings.get(reading).filter(|read| read.is_fresh()).map(|read| read.readable.clone())
    }

    /// Returns whether a namespace is among those of a reading that is remembered.
    pub(super) fn may_read_in(&self, reading: &Reading, namespace: &str) -> Option<bool> {
        let readings = self.readings.lock();
        readings.get(reading).filter(|read| read.is_fresh()).map(|read| read.readable.contains(namespace))
    }

    pub(super) fn remember(&self, reading: Reading, read: Read) {
        let mut readings = self.readings.lock();
        if readings.len() > SWEEP_ABOVE {
            readings.retain(|_, read| read.is_fresh());
        }
        if readings.len() < MOST_ANSWERS {
            readings.insert(reading, read);
        }
    }

    /// Returns whether the account exists, if that was asked not long ago.
    pub(super) fn account(&self) -> Option<AccountState> {
        let account = self.account.lock();
        let (at, state) = account.as_ref()?;
        let keep = match state {
            AccountState::Present { .. } => PRESENT_FOR,
            AccountState::Missing => MISSING_FOR,
        };
        (at.elapsed() < keep).then(|| state.clone())
    }

    pub(super) fn note_account(&self, at: Instant, state: AccountState) {
        *self.account.lock() = Some((at, state));
    }

    /// Whether nothing that is kept can be used any more.
    pub(super) fn is_idle(&self) -> bool {
        !self.answers.lock().kept.values().any(Kept::is_fresh)
    }

    #[cfg(test)]
    pub(super) fn n_readings(&self) -> usize {
        self.readings.lock().len()
    }
}

// === impl Answers ===

impl Answers {
    fn sweep(&mut self) {
        if self.kept.len() > SWEEP_ABOVE && self.swept.elapsed() >= Duration::from_secs(1) {
            self.kept.retain(|_, kept| kept.is_fresh());
            self.swept = Instant::now();
        }
    }
}

// === impl Kept ===

impl Kept {
    /// Whether it may still be used. What is being asked for is fresh for as long as the answer could be, a
    /// failure is not: the next asker tries again.
    fn is_fresh(&self) -> bool {
        let age = self.asked.elapsed();
        match self.answer.peek() {
            None | Some(Ok(true)) => age < ALLOWED_FOR,
            Some(Ok(false)) => age < self.denied_for,
            Some(Err(_)) => false,
        }
    }
}
