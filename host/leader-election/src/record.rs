//! What stands in the lease.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::LeaseSpec, apimachinery::pkg::apis::meta::v1::MicroTime, jiff::Timestamp,
};
use serde::{Deserialize, Serialize};

/// The election's record. Only the holder and how long it lasts decide anything; the rest is for people.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Record {
    /// Who holds it; empty: nobody.
    pub holder_identity: String,
    /// How long others wait after they saw it change.
    pub lease_duration_seconds: i32,
    /// Since when this holder has it.
    pub acquire_time: Option<MicroTime>,
    /// When it was last renewed.
    pub renew_time: Option<MicroTime>,
    /// How often the holder changed.
    pub leader_transitions: i32,
    /// Who should have it instead; empty: nobody in particular.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub preferred_holder: String,
    /// How that was chosen; empty: nobody chose.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub strategy: String,
}

// === impl Record ===

impl Record {
    /// Of a holder that has it from now on.
    pub(crate) fn held(identity: &str, lasts: Duration, now: Timestamp) -> Self {
        Self {
            holder_identity: identity.to_owned(),
            lease_duration_seconds: i32::try_from(lasts.as_secs()).unwrap_or(i32::MAX),
            acquire_time: Some(MicroTime(now)),
            renew_time: Some(MicroTime(now)),
            ..Self::default()
        }
    }

    /// Of nobody, and to be taken at once.
    pub(crate) fn released(leader_transitions: i32, now: Timestamp) -> Self {
        Self { leader_transitions, ..Self::held("", Duration::from_secs(1), now) }
    }

    /// The holder stays the same (LE-10).
    pub(crate) fn carry_on(&mut self, before: &Self) {
        self.acquire_time.clone_from(&before.acquire_time);
        self.leader_transitions = before.leader_transitions;
    }

    /// As it stands in a Lease. What is missing there is empty here.
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

    /// As it is to stand in a Lease: holder and transitions always, the rest if there is any (LL-04).
    #[must_use]
    pub fn to_spec(&self) -> LeaseSpec {
        let unless_empty = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        LeaseSpec {
            holder_identity: Some(self.holder_identity.clone()),
            // The API server takes no duration of 0.
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
    fn holder_and_transitions_are_always_written_the_choice_only_if_there_is_one_ll_04() {
        let spec = Record::default().to_spec();
        assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some(""), Some(0)));
        assert_eq!((spec.preferred_holder, spec.strategy), (None, None));
        assert_eq!(Record::from_spec(&LeaseSpec::default()), Record::default(), "nothing is missed");
    }

    #[test]
    fn a_duration_is_cut_to_whole_seconds_le_11() {
        let lasts = |millis| {
            Record::held("me", Duration::from_millis(millis), Timestamp::UNIX_EPOCH).lease_duration_seconds
        };
        assert_eq!([15_900, 1_000, 999].map(lasts), [15, 1, 0]);
        assert_eq!(lasts(u64::MAX), i32::MAX);
    }
}
