//! The series that are computed at each scrape, from the state of their owners.

mod calls;
mod families;
mod informers;
mod statuses;

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

pub(super) use self::families::{Labels, counter, gauge, gauges, labels};
use super::{Calls, Guests, guests, process};
use crate::informers::Informers;
use crate::report::Reporter;
use crate::status::StatusRegistry;

/// Collects the series from the parts of the host.
pub(super) struct Scrape {
    pub(super) statuses: StatusRegistry,
    pub(super) informers: Informers,
    pub(super) reporter: Reporter,
    pub(super) calls: Calls,
    pub(super) guests: Guests,
}

// === impl Scrape ===

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        process::encode(&mut encoder)?;
        informers::informers(&mut encoder, &self.informers.views())?;
        informers::budget(&mut encoder, &self.informers.budget())?;
        statuses::plugins(&mut encoder, &self.statuses.snapshot())?;
        let of_plugins: Vec<_> =
            self.calls.lock().iter().map(|(name, it)| (name.clone(), it.clone())).collect();
        calls::calls(&mut encoder, &of_plugins)?;
        calls::usage(&mut encoder, &of_plugins)?;
        calls::writes(&mut encoder, &of_plugins)?;
        let guests = self.guests.lock().clone();
        let series = guests.iter().map(|(plugin, metrics)| (&**plugin, metrics.snapshot()));
        guests::encode(&mut encoder, series)?;
        let help = "Lines of output that were dropped because standard output was read too slowly or closed.";
        counter(&mut encoder, "oarlock_reports_dropped", help, self.reporter.dropped() as f64)?;
        let help = "Bytes of the lines that wait to be printed.";
        gauge(&mut encoder, "oarlock_reports_waiting_bytes", help, self.reporter.waiting_bytes() as f64)
    }
}

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrape")
    }
}
