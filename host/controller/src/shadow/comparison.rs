//! Compares the writes of a plugin with those that its shadow would have made.
//!
//! The two run at different speeds. So writes are compared per verb, object and part: the last one of each
//! side within 30 seconds. As soon as both sides have one, the pair is compared and both are forgotten. A
//! write that has no counterpart after 30 seconds counts as written by one side only.
//!
//! A guest chooses the names and bodies. So waiting writes are bounded in number and in bytes: the identity
//! is kept as a hash, the name for people is cut, and of the body only hashes and a few paths are kept.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use tokio::time::Instant;

use super::{Side, leaves::Leaves};

/// How long a write waits for its counterpart.
pub(super) const WINDOW: Duration = Duration::from_secs(30);

/// The maximum number of writes that wait for a counterpart.
const MOST_WAITING: usize = 4_096;

/// The maximum number of bytes of waiting writes, with the order in which they expire.
pub(super) const MOST_BYTES: usize = 16 << 20;

/// The maximum length of an object's name for people, in bytes.
const MAX_OBJECT: usize = 1 << 10;

/// What a waiting write takes beside its name and leaves, about: the entry of the map.
const WAITING_BYTES: usize = 128;

/// What one entry of the order takes.
const ORDER_BYTES: usize = size_of::<(Instant, u64, u64)>();

/// The number of differences that the status shows.
const MOST_SHOWN: usize = 16;

/// The writes of one plugin and of its shadow.
#[derive(Default)]
pub(crate) struct Comparison {
    hashes: RandomState,
    /// Whether the shadow runs. Beside the state, so that the writes of a plugin without a shadow take no
    /// lock.
    runs: AtomicBool,
    state: Mutex<State>,
}

/// The state of a comparison, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ShadowView {
    /// The digest of the shadow's component.
    pub(crate) digest: String,
    /// Writes of both sides that were compared.
    pub(crate) compared: u64,
    /// The part of them that were equal.
    pub(crate) equal: u64,
    /// The part of them that differed.
    pub(crate) different: u64,
    /// Writes that only the serving side made.
    pub(crate) only_serving: u64,
    /// Writes that only the shadow would have made.
    pub(crate) only_shadow: u64,
    /// Writes that wait for their counterpart.
    pub(crate) waiting: u64,
    /// Writes that were not compared, since too many waited, or too many bytes of them.
    pub(crate) left_out: u64,
    /// The newest differences, the newest first.
    pub(crate) differences: VecDeque<WriteDifference>,
}

/// A place where two writes differ. It has no values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct WriteDifference {
    /// The verb.
    pub(crate) verb: &'static str,
    /// The object.
    pub(crate) object: String,
    /// The JSON pointer in the body; empty for the whole body, `…` if only its hash was kept.
    pub(crate) path: String,
    /// A keyed hash of the serving side's value; `None` if it has none.
    pub(crate) serving: Option<String>,
    /// A keyed hash of the shadow's value; `None` if it has none.
    pub(crate) shadow: Option<String>,
}

/// The identity of a write.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Target {
    pub(super) verb: &'static str,
    /// The resource, namespace, name and part, for people.
    pub(super) object: String,
}

#[derive(Default)]
struct State {
    /// By the hash of the verb and the object's full name.
    waiting: HashMap<u64, Waiting>,
    /// The bytes of `waiting`.
    bytes: usize,
    /// The times, numbers and hashes of writes in their order, with some that are gone.
    order: VecDeque<(Instant, u64, u64)>,
    n_writes: u64,
    view: ShadowView,
}

struct Waiting {
    side: Side,
    leaves: Leaves,
    number: u64,
    bytes: usize,
}

// === impl Comparison ===

impl Comparison {
    /// A generation of the shadow begins. Without one, writes are not compared.
    pub(super) fn begin(&self, digest: &str) {
        let mut state = self.state.lock();
        if state.view.digest != digest {
            *state = State {
                view: ShadowView { digest: digest.to_owned(), ..ShadowView::default() },
                ..State::default()
            };
        }
        self.runs.store(true, Ordering::Release);
    }

    /// The shadow is gone.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        self.runs.store(false, Ordering::Release);
        *state = State::default();
    }

    /// Returns whether writes are compared.
    pub(super) fn runs(&self) -> bool {
        self.runs.load(Ordering::Acquire)
    }

    /// Returns its state, or `None` while no shadow runs.
    pub(crate) fn view(&self) -> Option<ShadowView> {
        let mut state = self.state.lock();
        state.expire(Instant::now());
        let waiting = state.waiting.len() as u64;
        self.runs().then(|| ShadowView { waiting, ..state.view.clone() })
    }

    /// Notes a write, and compares it if the other side has made it.
    pub(super) fn wrote(&self, side: Side, mut target: Target, body: &str) {
        if !self.runs() {
            return;
        }
        // Outside of the lock.
        let mut leaves = Leaves::of(body, &self.hashes);
        // Of the full name, so that two long names stay two objects.
        let key = self.hashes.hash_one(&target);
        target.object.truncate(target.object.floor_char_boundary(MAX_OBJECT));
        let now = Instant::now();
        let mut state = self.state.lock();
        state.expire(now);
        // An earlier write of the same side is replaced.
        if let Some(other) = state.remove(key)
            && other.side != side
        {
            match side {
                Side::Shadow => state.compare(&target, &other.leaves, &leaves),
                Side::Serving => state.compare(&target, &leaves, &other.leaves),
            }
            return;
        }
        leaves.keep_few_paths();
        let bytes = WAITING_BYTES + leaves.bytes();
        if state.waiting.len() >= MOST_WAITING || state.bytes() + bytes + ORDER_BYTES > MOST_BYTES {
            state.view.left_out += 1;
            return;
        }
        state.n_writes += 1;
        let number = state.n_writes;
        state.order.push_back((now, number, key));
        state.bytes += bytes;
        state.waiting.insert(key, Waiting { side, leaves, number, bytes });
    }

    /// Returns the bytes of waiting writes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.state.lock().bytes()
    }
}

// === impl State ===

impl State {
    /// Returns the bytes of the writes that wait, and of their order.
    fn bytes(&self) -> usize {
        self.bytes + self.order.len() * ORDER_BYTES
    }

    fn remove(&mut self, key: u64) -> Option<Waiting> {
        let removed = self.waiting.remove(&key)?;
        self.bytes -= removed.bytes;
        Some(removed)
    }

    fn compare(&mut self, target: &Target, serving: &Leaves, shadow: &Leaves) {
        let view = &mut self.view;
        view.compared += 1;
        let differences = serving.differences(shadow, MOST_SHOWN);
        if differences.is_empty() {
            view.equal += 1;
            return;
        }
        view.different += 1;
        let hash = |hash: Option<u64>| hash.map(|it| format!("{it:016x}"));
        for (path, serving, shadow) in differences {
            view.differences.push_front(WriteDifference {
                verb: target.verb,
                object: target.object.clone(),
                path: path.unwrap_or("…").to_owned(),
                serving: hash(serving),
                shadow: hash(shadow),
            });
        }
        view.differences.truncate(MOST_SHOWN);
    }

    /// Counts the writes whose counterpart did not come in time.
    fn expire(&mut self, now: Instant) {
        // A write that was made again waits from then on.
        let is_current = |waiting: &HashMap<u64, Waiting>, key: u64, number: u64| {
            waiting.get(&key).is_some_and(|it| it.number == number)
        };
        if self.order.len() > 2 * MOST_WAITING {
            let Self { waiting, order, .. } = self;
            order.retain(|(_, number, key)| is_current(waiting, *key, *number));
        }
        while let Some((_, number, key)) =
            self.order.pop_front_if(|(at, ..)| now.duration_since(*at) > WINDOW)
        {
            if is_current(&self.waiting, key, number)
                && let Some(Waiting { side, .. }) = self.remove(key)
            {
                match side {
                    Side::Serving => self.view.only_serving += 1,
                    Side::Shadow => self.view.only_shadow += 1,
                }
            }
        }
    }
}
