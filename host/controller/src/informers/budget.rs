//! How much all informers together may take up.
//!
//! The budget is a promise about what is *begun*: beyond it nobody gets a new informer, nor one that holds more of each object than before, and
//! a first list that turns out not to fit is given up while nobody reads of it yet. What is held already is never dropped:
//! others read it, a cache with holes would tell them that objects are gone, and dropping it all for a fresh list that is as large
//! would be told to every plugin as the end of the world and gain nothing. So growth beyond the budget is said as loudly as can be, and left to the operator.
//!
//! No plugin gets all of it: three quarters are the most that one may begin of what it alone wants.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

/// What all informers together may take up. The host's own come out of it but are never refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Informers.
    pub informers: usize,
    /// Objects in all caches.
    pub objects: usize,
    /// Bytes that the caches take.
    pub bytes: usize,
}

/// What they take up.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// Informers.
    pub informers: usize,
    /// Objects in all caches.
    pub objects: usize,
    /// Bytes that the caches take.
    pub bytes: usize,
}

/// Of what there is too much.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Resource {
    /// Informers.
    Informers,
    /// Cached objects.
    Objects,
    /// Bytes of cached objects.
    Bytes,
}

/// The host's budget has no room for another subscription. Those that there are go on.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the host has no room for {what}: {excess}")]
pub struct Refused {
    /// What was wanted, in words.
    pub what: String,
    /// What there is too much of.
    pub excess: Excess,
}

/// What there is too much of, and how much.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Excess {
    /// What.
    pub of: Resource,
    /// How much there is, or would be.
    pub used: usize,
    /// How much there may be.
    pub limit: usize,
    /// Whether that is one plugin's share, not the whole.
    pub is_share: bool,
}

/// The budget as status and metrics show it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BudgetView {
    /// Informers that there are.
    pub informers: usize,
    /// And may be.
    pub max_informers: usize,
    /// Cached objects that there are.
    pub objects: usize,
    /// And may be.
    pub max_objects: usize,
    /// Bytes that the caches take.
    pub bytes: usize,
    /// And may take.
    pub max_bytes: usize,
    /// Whether objects or bytes have grown beyond.
    pub over: bool,
    /// How often something was refused or given up for want of room.
    pub refusals: usize,
}

/// What is on its way into the caches, and what was refused.
#[derive(Default)]
pub(super) struct Ledger {
    arriving_objects: AtomicUsize,
    arriving_bytes: AtomicUsize,
    refusals: AtomicUsize,
}

// === impl Limits ===

impl Limits {
    /// Returns what has no room left for a new informer.
    pub(super) fn no_room_for_informer(&self, usage: &Usage) -> Option<Excess> {
        let (used, limit) = (usage.informers + 1, self.informers);
        let informers = Excess { of: Resource::Informers, used, limit, is_share: false };
        (usage.informers >= self.informers).then_some(informers).or_else(|| self.no_room_for_more(usage))
    }

    /// Returns what has no room left for more objects.
    pub(super) fn no_room_for_more(&self, usage: &Usage) -> Option<Excess> {
        let Self { informers: _, objects, bytes } = *self;
        let full = |of, used, limit| (used >= limit).then_some(Excess { of, used, limit, is_share: false });
        full(Resource::Objects, usage.objects, objects).or_else(|| full(Resource::Bytes, usage.bytes, bytes))
    }

    /// Returns what one plugin has no room left for, of what it may begin alone.
    pub(super) fn no_share_left(&self, of_plugin: &Usage) -> Option<Excess> {
        let Self { informers, objects, bytes } = *self;
        let quarters = |n: usize| n - n / 4;
        let share =
            Self { informers: quarters(informers), objects: quarters(objects), bytes: quarters(bytes) };
        let excess = share.no_room_for_informer(of_plugin)?;
        Some(Excess { is_share: true, ..excess })
    }

    /// Returns what is beyond its limit.
    pub(super) fn exceeded_by(&self, usage: &Usage) -> Option<Excess> {
        let Self { informers: _, objects, bytes } = *self;
        let over = |of, used, limit| (used > limit).then_some(Excess { of, used, limit, is_share: false });
        over(Resource::Objects, usage.objects, objects).or_else(|| over(Resource::Bytes, usage.bytes, bytes))
    }
}

/// Room for 256 resources, two million objects and 1 GiB, with 200,000 Pods or a million small objects well below it: as plain as
/// numbers can be, so that an operator who knows the host's memory can do better.
impl Default for Limits {
    fn default() -> Self {
        Self { informers: 256, objects: 2_000_000, bytes: 1 << 30 }
    }
}

// === impl Usage ===

impl Usage {
    /// Returns what they take up together with as many objects and bytes more.
    pub(super) fn and(self, objects: usize, bytes: usize) -> Self {
        Self { objects: self.objects + objects, bytes: self.bytes + bytes, ..self }
    }
}

// === impl Excess ===

impl Excess {
    /// Returns what an operator can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        let flag = match self.of {
            Resource::Informers => "--max-informers",
            Resource::Objects => "--max-objects",
            Resource::Bytes => "--max-cache-bytes",
        };
        if self.is_share {
            return format!("declare less in this plugin, or raise {flag}, of which no plugin gets all");
        }
        format!("raise {flag} if the host has the memory, ask for metadata only, or take other plugins out")
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, used, limit, is_share } = self;
        if *is_share {
            f.write_str("one plugin alone may take no more: ")?;
        }
        match of {
            Resource::Informers => write!(f, "it would be informer {used} of {limit}"),
            Resource::Objects => write!(f, "{used} objects of {limit} are cached"),
            Resource::Bytes => write!(f, "the caches take {} of {}", Mebibytes(*used), Mebibytes(*limit)),
        }
    }
}

/// Bytes, for people.
struct Mebibytes(usize);

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        if bytes < 1 << 20 { write!(f, "{bytes} B") } else { write!(f, "{} MiB", bytes >> 20) }
    }
}

// === impl Ledger ===

impl Ledger {
    pub(super) fn arrive(&self, objects: usize, bytes: usize) {
        self.arriving_objects.fetch_add(objects, Ordering::Relaxed);
        self.arriving_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What arrived is in a cache, where it is counted, or was given up.
    pub(super) fn settle(&self, objects: usize, bytes: usize) {
        self.arriving_objects.fetch_sub(objects, Ordering::Relaxed);
        self.arriving_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn refuse(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refusals(&self) -> usize {
        self.refusals.load(Ordering::Relaxed)
    }

    /// What is on its way, on top of what is there.
    pub(super) fn add_to(&self, usage: Usage) -> Usage {
        let arriving = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        usage.and(arriving(&self.arriving_objects), arriving(&self.arriving_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_and_what_to_do() {
        let limits = Limits { informers: 2, objects: 10, bytes: 3 << 20 };
        let told =
            |usage| limits.no_room_for_informer(&usage).map(|excess| format!("{excess}; {}", excess.hint()));
        assert_eq!(told(Usage { informers: 1, objects: 9, bytes: 5 }), None);
        insta::assert_snapshot!(told(Usage { informers: 2, objects: 0, bytes: 0 }).unwrap(), @"it would be informer 3 of 2; raise --max-informers if the host has the memory, ask for metadata only, or take other plugins out");
        insta::assert_snapshot!(told(Usage { informers: 1, objects: 10, bytes: 0 }).unwrap(), @"10 objects of 10 are cached; raise --max-objects if the host has the memory, ask for metadata only, or take other plugins out");
        insta::assert_snapshot!(told(Usage { informers: 1, objects: 1, bytes: 4 << 20 }).unwrap(), @"the caches take 4 MiB of 3 MiB; raise --max-cache-bytes if the host has the memory, ask for metadata only, or take other plugins out");
    }

    #[test]
    fn one_plugin_does_not_get_all() {
        let limits = Limits { informers: 4, objects: 100, bytes: 4 << 20 };
        let told = |usage| limits.no_share_left(&usage).map(|excess| format!("{excess}; {}", excess.hint()));
        assert_eq!(told(Usage { informers: 1, objects: 74, bytes: 3 << 10 }), None);
        insta::assert_snapshot!(told(Usage { informers: 3, objects: 0, bytes: 0 }).unwrap(), @"one plugin alone may take no more: it would be informer 4 of 3; declare less in this plugin, or raise --max-informers, of which no plugin gets all");
        insta::assert_snapshot!(told(Usage { informers: 1, objects: 75, bytes: 0 }).unwrap(), @"one plugin alone may take no more: 75 objects of 75 are cached; declare less in this plugin, or raise --max-objects, of which no plugin gets all");
        insta::assert_snapshot!(told(Usage { informers: 1, objects: 0, bytes: 3 << 20 }).unwrap(), @"one plugin alone may take no more: the caches take 3 MiB of 3 MiB; declare less in this plugin, or raise --max-cache-bytes, of which no plugin gets all");
    }

    #[test]
    fn a_limit_that_is_reached_is_not_exceeded() {
        let limits = Limits { informers: 1, objects: 10, bytes: 10 };
        let full = Usage { informers: 5, objects: 10, bytes: 10 };
        assert_eq!(limits.exceeded_by(&full), None);
        assert_eq!(limits.exceeded_by(&full.and(1, 0)).unwrap().of, Resource::Objects);
        assert_eq!(limits.exceeded_by(&full.and(0, 1)).unwrap().of, Resource::Bytes);
    }
}
