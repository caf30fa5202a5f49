//! The series that are computed at each scrape, from the state of their owners.

mod calls;
mod informers;
mod reconcilers;
mod statuses;

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::{Calls, Guests, Objects, catalog, guests, process};
use crate::informers::Informers;
use crate::report::Reporter;
use crate::runtime::ClientMetrics;
use crate::status::StatusRegistry;
use crate::traces::Traces;

/// Reads the value of one series.
type Reads<T> = fn(&T) -> f64;

/// Collects the series from the parts of the host.
pub(super) struct Scrape {
    pub(super) statuses: StatusRegistry,
    pub(super) informers: Informers,
    pub(super) reporter: Reporter,
    pub(super) requests: ClientMetrics,
    pub(super) traces: Traces,
    pub(super) calls: Calls,
    pub(super) guests: Guests,
    pub(super) objects: Objects,
}

// === impl Scrape ===

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let encoder = &mut encoder;
        process::encode(encoder)?;
        self.requests.encode(encoder)?;
        informers::informers(encoder, &self.informers.views())?;
        informers::budget(encoder, &self.informers.budget())?;
        let statuses = self.statuses.snapshot();
        statuses::plugins(encoder, &statuses)?;
        // A copy: a task that notes an object must not wait until this is written.
        let objects = self.objects.lock().clone();
        statuses::objects(encoder, &objects)?;
        let of_plugins: Vec<_> =
            self.calls.lock().iter().map(|(name, it)| (name.clone(), it.clone())).collect();
        reconcilers::queues(encoder, &statuses, &of_plugins)?;
        reconcilers::reconciles(encoder, &statuses, &of_plugins)?;
        calls::calls(encoder, &of_plugins)?;
        calls::usage(encoder, &of_plugins)?;
        calls::writes(encoder, &of_plugins)?;
        let guests = self.guests.lock().clone();
        guests::encode(encoder, &guests)?;
        catalog::TRACE_SPANS_DROPPED.encode(encoder, [([], self.traces.n_dropped() as f64)])?;
        catalog::REPORTS_DROPPED.encode(encoder, [([], self.reporter.dropped() as f64)])?;
        catalog::REPORTS_WAITING.encode(encoder, [([], self.reporter.waiting_bytes() as f64)])
    }
}

impl fmt::Debug for Scrape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scrape")
    }
}
