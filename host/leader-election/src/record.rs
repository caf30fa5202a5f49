//! The record of the election, and its form in a Lease.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime, jiff::Timestamp,
};
use serde::{Deserialize, Serialize};

/// The record of the election. Only the holder and the duration matter to candidates; the rest is for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// The identity of the holder; empty after a release.
    pub holder_identity: String,
    /// The time that other candidates wait after a change of the record.
    pub lease_duration_seconds: i32,
    /// The time at which this holder acquired it.
    pub acquire_time: Option<MicroTime>,
    /// The time of the last renewal.
    pub renew_time: Option<MicroTime>,
    /// The number of changes of the holder.
    pub leader_transitions: i32,
    /// The preferred holder; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub preferred_holder: String,
    /// The strategy that chose the preferred holder; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub strategy: String,
}

// === impl Record ===

impl Record {
    /// Returns the record of a holder that acquires it now.
    pub(crate) fn held(identity: &str, lasts: Duration, now: Timestamp) -> Self {
        Self {
            holder_identity: identity.to_owned(),
            lease_duration_seconds: i32::try_from(lasts.as_secs()).unwrap_or(i32::MAX),
            acquire_time: Some(MicroTime(now)),
            renew_time: Some(MicroTime(now)),
            ..Self::default()
        }
    }

    /// Returns the record after a release. Any candidate may take it at once.
    pub(crate) fn released(leader_transitions: i32, now: Timestamp) -> Self {
        Self { leader_transitions, ..Self::held("", Duration::from_secs(1), now) }
    }

    /// Takes the fields that stay with the same holder (LE-10).
    pub(crate) fn carry_on(&mut self, before: &Self) {
        self.acquire_time.clone_from(&before.acquire_time);
        self.leader_transitions = before.leader_transitions;
    }

    /// Reads a Lease. Missing fields are empty.
    #[must_use]
    pub fn from_spec(spec: &LeaseSpec) -> Self {
        Self {
            holder_identity: spec.holder_identity.clone().unwrap_or_default(),
            lease_duration_seconds: spec.lease_duration_seconds.unwrap_or_default(),
            acquire_time: spec.acquire_time.clone(),
            renew_time: spec.renew_time.clone(),
            leader_transitions: spec.lease_transitions.unwrap_or_default(),
            preferred_holder: spec.preferred_holder.clone().unwrap_or_default(),
            strategy: spec.strategy.clone().unwrap_or_default(),
        }
    }

    /// Returns the form in a Lease: always with holder and transitions, the rest if it is not empty (LL-04).
    #[must_use]
    pub fn to_spec(&self) -> LeaseSpec {
        let unless_empty = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        LeaseSpec {
            holder_identity: Some(self.holder_identity.clone()),
            // The API server rejects a duration of 0.
            lease_duration_seconds: Some(self.lease_duration_seconds).filter(|&it| it > 0),
            acquire_time: self.acquire_time.clone(),
            renew_time: self.renew_time.clone(),
            lease_transitions: Some(self.leader_transitions),
            preferred_holder: unless_empty(&self.preferred_holder),
            strategy: unless_empty(&self.strategy),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> LeaseSpec {
        let time = |text: &str| Some(MicroTime(text.parse().unwrap()));
        LeaseSpec {
            holder_identity: Some("me".to_owned()),
            lease_duration_seconds: Some(15),
            acquire_time: time("2026-01-02T03:04:05.678901Z"),
            renew_time: time("2026-01-02T03:05:06.789012Z"),
            lease_transitions: Some(7),
            preferred_holder: Some("you".to_owned()),
            strategy: Some("OldestEmulationVersion".to_owned()),
        }
    }

    // Conformance: 38.3, 40.8
    #[test]
    fn lease_spec_to_record_round_trip() {
        let record = Record::from_spec(&spec());
        assert_eq!(record.holder_identity, "me");
        assert_eq!(record.lease_duration_seconds, 15);
        assert_eq!((&record.acquire_time, &record.renew_time), (&spec().acquire_time, &spec().renew_time));
        assert_eq!(record.leader_transitions, 7);
        assert_eq!(
            (record.preferred_holder.as_str(), record.strategy.as_str()),
            ("you", "OldestEmulationVersion")
        );
        assert_eq!(record.to_spec(), spec());
        assert_eq!(Record::from_spec(&record.to_spec()), record);
    }

    #[test]
    fn a_lease_always_has_holder_and_transitions_ll_04() {
        let spec = Record::default().to_spec();
        assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some(""), Some(0)));
        assert_eq!((spec.preferred_holder, spec.strategy), (None, None));
        assert_eq!(Record::from_spec(&LeaseSpec::default()), Record::default(), "nothing is missed");
    }

    #[test]
    fn a_duration_is_truncated_to_whole_seconds_le_11() {
        let lasts = |millis| {
            Record::held("me", Duration::from_millis(millis), Timestamp::UNIX_EPOCH).lease_duration_seconds
        };
        assert_eq!([15_900, 1_000, 999].map(lasts), [15, 1, 0]);
        assert_eq!(lasts(u64::MAX), i32::MAX);
    }
}
