//! What the controller remembers of each object between two looks at it.

use std::sync::Arc;
use std::time::Duration;

use oarlock_component_source::{Fetched, Source};
use oarlock_informer::Object;
use tokio::time::Instant;

use super::referenced::ObjectVersion;
use super::resolve::{Problem, Resolved};
use super::shadows::ShadowRecord;
use super::types::PluginStatus;
use crate::config::PluginFile;

/// What the controller knows about one object.
pub(super) struct Record {
    pub(super) uid: String,
    /// `metadata.generation` when it was resolved.
    pub(super) generation: Option<i64>,
    pub(super) resolution: Result<Resolved, Problem>,
    /// How often in sequence it could not be resolved.
    pub(super) n_failures: u32,
    /// The component of the spec, if it was fetched.
    pub(super) fetched: Option<FetchedAt>,
    /// The shadow of the spec, if it has one.
    pub(super) shadow: Option<ShadowRecord>,
    /// The status that the object has, as far as the host knows.
    pub(super) written: PluginStatus,
    /// The changes of the host's status that the written status knows; none after another resolution.
    pub(super) seen_changes: Option<u64>,
    /// The definition of the newest good version that the written status names, as far as this host knows.
    pub(super) seen_good: Option<Arc<PluginFile>>,
    pub(super) writes: Writes,
}

/// A component, and when it was fetched.
#[derive(Clone)]
pub(super) struct FetchedAt {
    pub(super) fetched: Fetched,
    /// When the source was asked last.
    pub(super) at: Instant,
    /// The object of the source, as it was then.
    pub(super) object: Option<ObjectVersion>,
}

/// The attempts to write a status.
#[derive(Clone, Copy, Default)]
pub(super) struct Writes {
    /// How many failed in sequence.
    n_failures: u32,
    /// One of these failures was reported.
    is_reported: bool,
    /// When the last one ended.
    pub(super) last: Option<Instant>,
}

/// How an attempt to write a status ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Attempt {
    Written,
    /// The API server has no such object, or no status of it.
    NotFound,
    Failed,
}

/// The delays after failures: doubling from the first to the last.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// Returns the delay after so many failures in sequence, from 1.
pub(super) fn delay_after(n_failures: u32) -> Duration {
    RETRY.0.saturating_mul(1 << n_failures.clamp(1, 8) >> 1).min(RETRY.1)
}

// === impl Record ===

impl Record {
    /// Returns the component, if the spec is the same.
    pub(super) fn fetched_before(&self, object: &Object) -> Option<FetchedAt> {
        let is_same = *object.uid() == *self.uid && object.generation() == self.generation;
        self.fetched.clone().filter(|_| is_same)
    }
}

// === impl FetchedAt ===

impl FetchedAt {
    /// Returns whether the source need not be asked again. What a digest names never changes.
    pub(super) fn is_fresh(&self, source: &Source) -> bool {
        let is_young = source.poll_interval().is_none_or(|interval| self.at.elapsed() < interval);
        is_young && self.fetched.stale.is_none()
    }
}

// === impl Writes ===

impl Writes {
    /// Returns whether the status may be written now.
    pub(super) fn may_begin(&self) -> bool {
        let due = |last: Instant| self.n_failures == 0 || last.elapsed() >= delay_after(self.n_failures);
        self.last.is_none_or(due)
    }

    /// Notes the end of an attempt. Returns whether to report its error: one of the failures in sequence is
    /// reported. An object that is not found once was deleted or created again, which the watch says soon.
    pub(super) fn ended(&mut self, attempt: Attempt) -> bool {
        let last = Some(Instant::now());
        if attempt == Attempt::Written {
            *self = Self { last, ..Self::default() };
            return false;
        }
        let is_expected = attempt == Attempt::NotFound && self.n_failures == 0;
        let reports = !self.is_reported && !is_expected;
        let n_failures = self.n_failures.saturating_add(1);
        *self = Self { n_failures, is_reported: self.is_reported || reports, last };
        reports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_from_one_second_to_a_minute() {
        let seconds: Vec<_> = (1..10).map(|n| delay_after(n).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_status_that_could_not_be_written_is_tried_again_after_a_growing_delay() {
        let mut writes = Writes::default();
        assert!(writes.may_begin());
        writes.ended(Attempt::Written);
        assert!(writes.may_begin());
        writes.ended(Attempt::NotFound);
        writes.ended(Attempt::Failed);
        assert!(!writes.may_begin());
        tokio::time::advance(Duration::from_millis(1_999)).await;
        assert!(!writes.may_begin());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(writes.may_begin());
    }

    #[test]
    fn one_of_the_failures_in_sequence_is_reported_and_never_that_of_an_object_that_is_gone() {
        use Attempt::{Failed, NotFound, Written};
        let reported = |attempts: &[Attempt]| {
            let mut writes = Writes::default();
            attempts.iter().map(|attempt| writes.ended(*attempt)).collect::<Vec<_>>()
        };
        assert_eq!(reported(&[Failed, Failed, Written, Failed]), [true, false, false, true]);
        assert_eq!(reported(&[NotFound, Written, NotFound]), [false; 3]);
        assert_eq!(reported(&[NotFound, NotFound, NotFound]), [false, true, false], "it lasts");
        assert_eq!(reported(&[NotFound, Failed, NotFound]), [false, true, false]);
        assert_eq!(reported(&[Failed, NotFound, NotFound]), [true, false, false]);
    }
}
