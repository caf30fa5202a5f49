//! What one plugin has used of the host: CPU time, calls, bytes, memory.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use serde::Serialize;

use crate::engine::nanos;

/// The use of one plugin, for all its generations and instances. Cheap to clone; clones share the counts.
///
/// A call is counted when it ends; the CPU time of a call in progress is counted after each time slice.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    counts: Arc<Counts>,
}

/// The state of a [`Usage`]. Counters never decrease; `instances` and `linear_memory_bytes` are gauges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct UsageView {
    /// CPU time of the guest, in nanoseconds: the time in which its calls were polled, without
    /// `host_cpu_ns`.
    pub guest_cpu_ns: u64,
    /// CPU time that the host spent for it in imports that may take long, in nanoseconds.
    pub host_cpu_ns: u64,
    /// Time from the begin of calls, and of starts of instances, to their end, in nanoseconds.
    pub call_wall_ns: u64,
    /// The part of it in which calls waited for an import, in nanoseconds.
    pub import_wait_ns: u64,
    /// Calls that ended, with an answer or without.
    pub calls: u64,
    /// Bytes that were copied into its memory: arguments of calls, answers of imports.
    pub bytes_to_guest: u64,
    /// Bytes that were copied from its memory: arguments of imports, answers of calls.
    pub bytes_from_guest: u64,
    /// Reads of the cache.
    pub cache_reads: u64,
    /// Requests to the API server (`client`).
    pub requests: u64,
    /// Instances that exist now.
    pub instances: u64,
    /// Instances that were created.
    pub instances_made: u64,
    /// Linear memory of the instances that exist now, in bytes.
    pub linear_memory_bytes: u64,
    /// The largest linear memory of all its instances together so far, in bytes.
    pub linear_memory_peak_bytes: u64,
}

/// One instance, for as long as it exists.
#[derive(Debug)]
pub(crate) struct InstanceUse {
    usage: Usage,
    linear_memory_bytes: u64,
}

#[derive(Debug, Default)]
struct Counts {
    /// Of polls of calls, imports included.
    cpu_ns: AtomicU64,
    host_cpu_ns: AtomicU64,
    call_wall_ns: AtomicU64,
    import_wait_ns: AtomicU64,
    calls: AtomicU64,
    bytes_to_guest: AtomicU64,
    bytes_from_guest: AtomicU64,
    cache_reads: AtomicU64,
    requests: AtomicU64,
    instances: AtomicU64,
    instances_made: AtomicU64,
    linear_memory_bytes: AtomicU64,
    linear_memory_peak_bytes: AtomicU64,
}

// === impl Usage ===

impl Usage {
    /// Returns what was used until now.
    #[must_use]
    pub fn view(&self) -> UsageView {
        let Counts {
            cpu_ns,
            host_cpu_ns,
            call_wall_ns,
            import_wait_ns,
            calls,
            bytes_to_guest,
            bytes_from_guest,
            cache_reads,
            requests,
            instances,
            instances_made,
            linear_memory_bytes,
            linear_memory_peak_bytes,
        } = &*self.counts;
        let host_cpu_ns = host_cpu_ns.load(Relaxed);
        UsageView {
            guest_cpu_ns: cpu_ns.load(Relaxed).saturating_sub(host_cpu_ns),
            host_cpu_ns,
            call_wall_ns: call_wall_ns.load(Relaxed),
            import_wait_ns: import_wait_ns.load(Relaxed),
            calls: calls.load(Relaxed),
            bytes_to_guest: bytes_to_guest.load(Relaxed),
            bytes_from_guest: bytes_from_guest.load(Relaxed),
            cache_reads: cache_reads.load(Relaxed),
            requests: requests.load(Relaxed),
            instances: instances.load(Relaxed),
            instances_made: instances_made.load(Relaxed),
            linear_memory_bytes: linear_memory_bytes.load(Relaxed),
            linear_memory_peak_bytes: linear_memory_peak_bytes.load(Relaxed),
        }
    }

    /// Adds the CPU time of one poll of a call.
    pub(crate) fn polled(&self, time: Duration) {
        add(&self.counts.cpu_ns, nanos(time));
    }

    /// Adds the part of such a time that the host computed in an import.
    pub(crate) fn hosted(&self, time: Duration) {
        add(&self.counts.host_cpu_ns, nanos(time));
    }

    /// Counts a call that ended. The start of an instance is none.
    pub(crate) fn called(&self) {
        add(&self.counts.calls, 1);
    }

    /// Adds the time of a call, or of the start of an instance, that ended.
    pub(crate) fn ended(&self, wall: Duration) {
        add(&self.counts.call_wall_ns, nanos(wall));
    }

    pub(crate) fn waited(&self, wait: Duration) {
        add(&self.counts.import_wait_ns, nanos(wait));
    }

    /// Counts bytes that crossed the border.
    pub(crate) fn crossed(&self, to_guest: u64, from_guest: u64) {
        add(&self.counts.bytes_to_guest, to_guest);
        add(&self.counts.bytes_from_guest, from_guest);
    }

    pub(crate) fn read_cache(&self) {
        add(&self.counts.cache_reads, 1);
    }

    pub(crate) fn requested(&self) {
        add(&self.counts.requests, 1);
    }
}

// === impl InstanceUse ===

impl InstanceUse {
    pub(crate) fn begin(usage: Usage) -> Self {
        add(&usage.counts.instances, 1);
        add(&usage.counts.instances_made, 1);
        Self { usage, linear_memory_bytes: 0 }
    }

    /// Sets the size of the instance's linear memories.
    pub(crate) fn set_linear_memory(&mut self, bytes: u64) {
        let Counts { linear_memory_bytes: total, linear_memory_peak_bytes: peak, .. } = &*self.usage.counts;
        // Wraps for a smaller size, which subtracts.
        let more = bytes.wrapping_sub(self.linear_memory_bytes);
        let total = total.fetch_add(more, Relaxed).wrapping_add(more);
        peak.fetch_max(total, Relaxed);
        self.linear_memory_bytes = bytes;
    }
}

impl Drop for InstanceUse {
    fn drop(&mut self) {
        self.set_linear_memory(0);
        self.usage.counts.instances.fetch_sub(1, Relaxed);
    }
}

fn add(to: &AtomicU64, n: u64) {
    to.fetch_add(n, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_counts_while_it_exists() {
        let usage = Usage::default();
        let (mut one, mut two) = (InstanceUse::begin(usage.clone()), InstanceUse::begin(usage.clone()));
        one.set_linear_memory(100);
        two.set_linear_memory(10);
        one.set_linear_memory(70);
        let view = usage.view();
        assert_eq!((view.instances, view.instances_made, view.linear_memory_bytes), (2, 2, 80));
        drop(one);
        let view = usage.view();
        assert_eq!((view.instances, view.instances_made, view.linear_memory_bytes), (1, 2, 10));
        assert_eq!(view.linear_memory_peak_bytes, 110);
    }

    #[test]
    fn the_hosts_part_of_a_poll_is_not_the_guests() {
        let usage = Usage::default();
        usage.hosted(Duration::from_nanos(30));
        usage.polled(Duration::from_nanos(100));
        usage.polled(Duration::from_nanos(10));
        let view = usage.view();
        assert_eq!((view.guest_cpu_ns, view.host_cpu_ns), (80, 30));
    }
}
