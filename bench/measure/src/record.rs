//! What a subject says in the end: plain readings, of which `cargo xtask bench` makes figures, for all subjects in one way.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::process::{cpu, peak_resident, reset_peak, resident, settle};

/// The readings of one run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Record {
    /// How many objects were cached.
    pub objects: u64,
    /// How many events came.
    pub events: u64,
    /// Resident bytes before the first list; everything but the informer is there already.
    pub resident_before: u64,
    /// The most that was resident until the process was at rest after the sync.
    pub resident_peak: u64,
    /// Resident bytes at rest after the sync.
    pub resident_synced: u64,
    /// Resident bytes at rest after the events; the same as before them if there were none.
    pub resident_after: u64,
    /// CPU seconds until every handler had heard of every object, and the process was at rest again.
    pub sync_cpu_seconds: f64,
    /// CPU seconds until every handler had heard of the last event, and the process was at rest again.
    pub events_cpu_seconds: f64,
    /// What of these was spent after the last handler had heard of the last event.
    pub catching_up_cpu_seconds: f64,
    /// How long the events took.
    pub events_seconds: f64,
    /// Whatever else the subject has to say, by the name of the metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub more: BTreeMap<String, f64>,
}

/// Takes the readings.
#[derive(Debug)]
pub struct Meter {
    record: Record,
    cpu: Duration,
    begun: Instant,
}

// === impl Meter ===

impl Meter {
    /// To be called when all is there but the informer.
    ///
    /// # Errors
    ///
    /// When the kernel does not say how much memory there is.
    pub fn begin() -> Result<Self> {
        settle();
        reset_peak()?;
        let record = Record { resident_before: resident()?, ..Record::default() };
        Ok(Self { record, cpu: cpu(), begun: Instant::now() })
    }

    /// To be called when every handler has heard of every object. Waits until the process is at rest.
    ///
    /// # Errors
    ///
    /// As [`Meter::begin`].
    pub fn synced(&mut self, objects: u64) -> Result<()> {
        settle();
        self.record.objects = objects;
        self.record.sync_cpu_seconds = (cpu() - self.cpu).as_secs_f64();
        self.record.resident_peak = peak_resident()?;
        self.record.resident_synced = resident()?;
        self.record.resident_after = self.record.resident_synced;
        Ok(())
    }

    /// To be called before the events are let flow.
    pub fn begin_events(&mut self) {
        self.cpu = cpu();
        self.begun = Instant::now();
    }

    /// To be called when every handler has heard of the last event. Waits until the process is at rest.
    ///
    /// # Errors
    ///
    /// As [`Meter::begin`].
    pub fn events_ended(&mut self, events: u64) -> Result<()> {
        self.record.events = events;
        self.record.events_seconds = self.begun.elapsed().as_secs_f64();
        let heard = cpu();
        settle();
        let settled = cpu();
        self.record.events_cpu_seconds = (settled - self.cpu).as_secs_f64();
        self.record.catching_up_cpu_seconds = (settled - heard).as_secs_f64();
        self.record.resident_after = resident()?;
        Ok(())
    }

    /// Notes something else.
    pub fn note(&mut self, metric: &str, value: f64) {
        self.record.more.insert(metric.to_owned(), value);
    }

    /// Returns the readings.
    #[must_use]
    pub fn record(self) -> Record {
        self.record
    }
}
