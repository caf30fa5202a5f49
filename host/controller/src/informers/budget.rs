//! The budget of all informers together.
//!
//! The budget limits what is started. When it is used up, no new informer starts, and no informer changes
//! from metadata to full objects; a first list that does not fit is aborted before any plugin reads it. A
//! cache that already exists is never dropped: plugins read it, a cache with gaps would deliver deletes of
//! existing objects, and a fresh list would be as large. So growth beyond the budget is only reported, as an
//! error, and the operator has to act.
//!
//! One plugin may use three quarters of the budget for informers that no other plugin shares.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

/// The limits of all informers together. The host's own informers count, but are never refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// The number of informers.
    pub informers: usize,
    /// The number of objects in all caches.
    pub objects: usize,
    /// The memory of all caches, in bytes.
    pub bytes: usize,
}

/// The usage of informers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// The number of informers.
    pub informers: usize,
    /// The number of objects in all caches.
    pub objects: usize,
    /// The memory of all caches, in bytes.
    pub bytes: usize,
}

/// A limited resource.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Resource {
    /// The number of informers.
    Informers,
    /// Objects in caches.
    Objects,
    /// Memory of caches.
    Bytes,
}

/// The budget has no room for another informer or for full objects. Existing informers continue.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the budget has no room for {wanted}: {excess}")]
pub struct Refused {
    /// What was requested, such as `full objects of v1/pods`.
    pub wanted: String,
    /// The limit that is reached or exceeded.
    pub excess: Excess,
}

/// A limit that is reached or exceeded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Excess {
    /// The limited resource.
    pub of: Resource,
    /// The usage, present or requested.
    pub used: usize,
    /// The limit.
    pub limit: usize,
    /// Whether this is the limit of one plugin, not of all together.
    pub is_share: bool,
}

/// The budget and its usage, for status and metrics.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BudgetView {
    /// The number of informers.
    pub informers: usize,
    /// Its limit.
    pub max_informers: usize,
    /// The number of objects in all caches.
    pub objects: usize,
    /// Its limit.
    pub max_objects: usize,
    /// The memory of all caches, in bytes.
    pub bytes: usize,
    /// Its limit.
    pub max_bytes: usize,
    /// Whether objects or bytes exceed their limit.
    pub over: bool,
    /// How many handles were refused and lists aborted.
    pub refusals: usize,
}

/// Counts objects of lists that are not in a cache yet, and refusals.
#[derive(Default)]
pub(super) struct Ledger {
    arriving_objects: AtomicUsize,
    arriving_bytes: AtomicUsize,
    refusals: AtomicUsize,
}

// === impl Limits ===

impl Limits {
    /// Returns the limit that a new informer would exceed.
    pub(super) fn no_room_for_informer(&self, usage: &Usage) -> Option<Excess> {
        let (used, limit) = (usage.informers + 1, self.informers);
        let informers = Excess { of: Resource::Informers, used, limit, is_share: false };
        (usage.informers >= self.informers).then_some(informers).or_else(|| self.no_room_for_more(usage))
    }

    /// Returns the limit that is reached, so that no more objects may be loaded.
    pub(super) fn no_room_for_more(&self, usage: &Usage) -> Option<Excess> {
        let Self { informers: _, objects, bytes } = *self;
        let full = |of, used, limit| (used >= limit).then_some(Excess { of, used, limit, is_share: false });
        full(Resource::Objects, usage.objects, objects).or_else(|| full(Resource::Bytes, usage.bytes, bytes))
    }

    /// Returns the limit of one plugin that another informer for it alone would exceed.
    pub(super) fn no_share_left(&self, of_plugin: &Usage) -> Option<Excess> {
        let Self { informers, objects, bytes } = *self;
        let quarters = |n: usize| n - n / 4;
        let share =
            Self { informers: quarters(informers), objects: quarters(objects), bytes: quarters(bytes) };
        let excess = share.no_room_for_informer(of_plugin)?;
        Some(Excess { is_share: true, ..excess })
    }

    /// Returns the limit that is exceeded.
    pub(super) fn exceeded_by(&self, usage: &Usage) -> Option<Excess> {
        let Self { informers: _, objects, bytes } = *self;
        let over = |of, used, limit| (used > limit).then_some(Excess { of, used, limit, is_share: false });
        over(Resource::Objects, usage.objects, objects).or_else(|| over(Resource::Bytes, usage.bytes, bytes))
    }
}

/// 256 informers, two million objects and 1 GiB. 200,000 Pods or a million small objects need well below 1
/// GiB. An operator who knows the memory of the host can choose better limits.
impl Default for Limits {
    fn default() -> Self {
        Self { informers: 256, objects: 2_000_000, bytes: 1 << 30 }
    }
}

// === impl Usage ===

impl Usage {
    /// Adds objects and bytes.
    pub(super) fn and(self, objects: usize, bytes: usize) -> Self {
        Self { objects: self.objects + objects, bytes: self.bytes + bytes, ..self }
    }
}

// === impl Excess ===

impl Excess {
    /// Returns what the operator can do, as an imperative.
    #[must_use]
    pub fn hint(&self) -> String {
        let flag = match self.of {
            Resource::Informers => "--max-informers",
            Resource::Objects => "--max-objects",
            Resource::Bytes => "--max-cache-bytes",
        };
        if self.is_share {
            return format!(
                "declare fewer resources in this plugin, or raise {flag}, of which one plugin gets three quarters"
            );
        }
        format!("raise {flag} if the host has the memory, declare metadata only, or remove other plugins")
    }
}

impl fmt::Display for Excess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of, used, limit, is_share } = self;
        if *is_share {
            f.write_str("the limit of one plugin is reached: ")?;
        }
        match of {
            Resource::Informers => write!(f, "it would be informer {used} of at most {limit}"),
            Resource::Objects => write!(f, "{used} objects are cached, the limit is {limit}"),
            Resource::Bytes => {
                write!(f, "the caches take {}, the limit is {}", Mebibytes(*used), Mebibytes(*limit))
            }
        }
    }
}

/// Displays bytes for people.
struct Mebibytes(usize);

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        if bytes < 1 << 20 { write!(f, "{bytes} B") } else { write!(f, "{} MiB", bytes >> 20) }
    }
}

// === impl Ledger ===

impl Ledger {
    /// Adds objects of a list that are not in the cache yet.
    pub(super) fn add_arriving(&self, objects: usize, bytes: usize) {
        self.arriving_objects.fetch_add(objects, Ordering::Relaxed);
        self.arriving_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Removes objects of a list, because the cache counts them now, or because the list was aborted.
    pub(super) fn remove_arriving(&self, objects: usize, bytes: usize) {
        self.arriving_objects.fetch_sub(objects, Ordering::Relaxed);
        self.arriving_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn count_refusal(&self) {
        self.refusals.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn refusals(&self) -> usize {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Returns a usage with the objects of lists that are not in a cache yet.
    pub(super) fn add_to(&self, usage: Usage) -> Usage {
        let arriving = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        usage.and(arriving(&self.arriving_objects), arriving(&self.arriving_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_limit_and_the_flag() {
        let limits = Limits { informers: 2, objects: 10, bytes: 3 << 20 };
        let refusal =
            |usage| limits.no_room_for_informer(&usage).map(|excess| format!("{excess}; {}", excess.hint()));
        assert_eq!(refusal(Usage { informers: 1, objects: 9, bytes: 5 }), None);
        insta::assert_snapshot!(refusal(Usage { informers: 2, objects: 0, bytes: 0 }).unwrap(), @"it would be informer 3 of at most 2; raise --max-informers if the host has the memory, declare metadata only, or remove other plugins");
        insta::assert_snapshot!(refusal(Usage { informers: 1, objects: 10, bytes: 0 }).unwrap(), @"10 objects are cached, the limit is 10; raise --max-objects if the host has the memory, declare metadata only, or remove other plugins");
        insta::assert_snapshot!(refusal(Usage { informers: 1, objects: 1, bytes: 4 << 20 }).unwrap(), @"the caches take 4 MiB, the limit is 3 MiB; raise --max-cache-bytes if the host has the memory, declare metadata only, or remove other plugins");
    }

    #[test]
    fn one_plugin_alone_gets_three_quarters_of_the_budget() {
        let limits = Limits { informers: 4, objects: 100, bytes: 4 << 20 };
        let refusal =
            |usage| limits.no_share_left(&usage).map(|excess| format!("{excess}; {}", excess.hint()));
        assert_eq!(refusal(Usage { informers: 1, objects: 74, bytes: 3 << 10 }), None);
        insta::assert_snapshot!(refusal(Usage { informers: 3, objects: 0, bytes: 0 }).unwrap(), @"the limit of one plugin is reached: it would be informer 4 of at most 3; declare fewer resources in this plugin, or raise --max-informers, of which one plugin gets three quarters");
        insta::assert_snapshot!(refusal(Usage { informers: 1, objects: 75, bytes: 0 }).unwrap(), @"the limit of one plugin is reached: 75 objects are cached, the limit is 75; declare fewer resources in this plugin, or raise --max-objects, of which one plugin gets three quarters");
        insta::assert_snapshot!(refusal(Usage { informers: 1, objects: 0, bytes: 3 << 20 }).unwrap(), @"the limit of one plugin is reached: the caches take 3 MiB, the limit is 3 MiB; declare fewer resources in this plugin, or raise --max-cache-bytes, of which one plugin gets three quarters");
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
