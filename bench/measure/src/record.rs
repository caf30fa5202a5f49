//! The readings of a subject, from which `cargo xtask bench` computes the figures in the same way for all
//! subjects.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::process::{cpu, peak_resident, reset_peak, resident, settle};

/// The readings of one run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Record {
    /// The number of cached objects.
    pub objects: u64,
    /// The number of events.
    pub events: u64,
    /// Resident bytes before the first list, with all but the informer.
    pub resident_before: u64,
    /// The peak of resident bytes until the process was at rest after the sync.
    pub resident_peak: u64,
    /// Resident bytes at rest after the sync.
    pub resident_synced: u64,
    /// Resident bytes at rest after the events; without events, as after the sync.
    pub resident_after: u64,
    /// CPU seconds until every handler had received every object, and the process was at rest again.
    pub sync_cpu_seconds: f64,
    /// CPU seconds until every handler had received the last event, and the process was at rest again.
    pub events_cpu_seconds: f64,
    /// The part of these after the last handler had received the last event.
    pub catching_up_cpu_seconds: f64,
    /// The duration of the events.
    pub events_seconds: f64,
    /// Further readings, by the name of the metric.
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
    /// Starts the measurement. Must be called before the informer is created.
    ///
    /// # Errors
    ///
    /// When `/proc` cannot be read.
    pub fn begin() -> Result<Self> {
        settle();
        reset_peak()?;
        let record = Record { resident_before: resident()?, ..Record::default() };
        Ok(Self { record, cpu: cpu(), begun: Instant::now() })
    }

    /// Records the sync. Must be called when every handler has received every object. Waits until the process
    /// is at rest.
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

    /// Records the start of the events.
    pub fn begin_events(&mut self) {
        self.cpu = cpu();
        self.begun = Instant::now();
    }

    /// Records the end of the events. Must be called when every handler has received the last event. Waits
    /// until the process is at rest.
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

    /// Records a further reading.
    pub fn note(&mut self, metric: &str, value: f64) {
        self.record.more.insert(metric.to_owned(), value);
    }

    /// Returns the readings.
    #[must_use]
    pub fn record(self) -> Record {
        self.record
    }
}
