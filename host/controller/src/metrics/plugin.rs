//! The counters of one plugin's calls: prepared once, so that a call looks up no label and takes no lock.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use oarlock_informer::toolkit::workqueue::WorkQueueMetrics;
use oarlock_plugin::guest::{Usage, UsageView};
use once_cell::race::OnceBox;
use serde::Serialize;

use super::Writes;
use super::histogram::{Histogram, HistogramView};
use super::reconciles::{KeyMetrics, ReconcileCounts, ReconcileMetrics};
use super::writes::WriteCount;
use crate::dispatch::LOSS_REASONS;

/// The functions that the dispatcher calls: the values of the label `function`.
pub(super) const FUNCTIONS: [&str; 5] = ["on-add", "on-update", "on-delete", "on-synced", "reconcile"];

/// How calls end: the values of the label `outcome`.
pub(super) const OUTCOMES: [&str; 3] = ["done", "retry", "parked"];

/// The outcome that is no failure.
const DONE: usize = 0;

/// The function of the reconciler, the last of [`FUNCTIONS`].
const RECONCILE: usize = FUNCTIONS.len() - 1;

/// Counts what the dispatcher does for one plugin, over all its generations.
#[derive(Debug, Default)]
pub(crate) struct PluginMetrics {
    functions: [Function; FUNCTIONS.len()],
    notifications_waited: OnceBox<Histogram>,
    keys: KeyMetrics,
    reconciles: ReconcileMetrics,
    lost: [AtomicU64; LOSS_REASONS.len()],
    restarts: AtomicU64,
    usage: Usage,
    writes: Writes,
}

/// What one plugin has used of the host since it was first loaded.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PluginUsage {
    #[serde(flatten)]
    usage: UsageView,
    /// Calls that failed, those that lost the instance included.
    failures: u64,
    /// Fresh instances that replaced lost ones.
    restarts: u64,
    /// Durations of the calls that returned.
    call_duration: HistogramView,
    /// How long notifications and keys waited for their first call.
    queue_duration: HistogramView,
    writes: Vec<WriteCount>,
}

/// Most plugins use some functions only, and have no histogram for the others.
#[derive(Debug, Default)]
struct Function {
    outcomes: [AtomicU64; OUTCOMES.len()],
    duration: OnceBox<Histogram>,
}

// === impl PluginMetrics ===

impl PluginMetrics {
    /// Counts one call that returned, with its outcome and duration.
    pub(crate) fn called(&self, function: &str, outcome: &str, took: Duration) {
        let position = |names: &[&str], name: &str| names.iter().position(|it| *it == name);
        let function = position(&FUNCTIONS, function).map(|idx| &self.functions[idx]);
        let (Some(function), Some(outcome)) = (function, position(&OUTCOMES, outcome)) else {
            debug_assert!(false, "{function:?} {outcome} has no counter");
            return;
        };
        function.outcomes[outcome].fetch_add(1, Relaxed);
        function.duration.get_or_init(Box::default).observe(took);
    }

    /// Observes how long a notification waited for its first call.
    pub(crate) fn waited(&self, waited: Duration) {
        self.notifications_waited.get_or_init(Box::default).observe(waited);
    }

    /// Counts one call of `reconcile` that asked for another one, in addition to [`PluginMetrics::called`].
    pub(crate) fn requeued(&self) {
        self.reconciles.requeued();
    }

    /// Counts one call of `reconcile` whose failure is terminal, in addition to [`PluginMetrics::called`].
    pub(crate) fn terminal(&self) {
        self.reconciles.terminal();
    }

    /// Counts one instance that was lost in a function. The reason is one of [`LOSS_REASONS`].
    pub(crate) fn lost(&self, function: &str, reason: &str) {
        if function == FUNCTIONS[RECONCILE] {
            self.reconciles.lost(reason);
        }
        if let Some(idx) = LOSS_REASONS.iter().position(|it| *it == reason) {
            self.lost[idx].fetch_add(1, Relaxed);
        }
    }

    /// Counts one fresh instance that replaced a lost one.
    pub(crate) fn restarted(&self) {
        self.restarts.fetch_add(1, Relaxed);
    }

    /// Counts what the plugin's instances use.
    pub(crate) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Counts the plugin's writes.
    pub(crate) fn writes(&self) -> &Writes {
        &self.writes
    }

    pub(crate) fn view(&self) -> PluginUsage {
        PluginUsage {
            usage: self.usage.view(),
            failures: self.failures(),
            restarts: self.restarts(),
            call_duration: self.call_duration(),
            queue_duration: self.queue_duration(),
            writes: self.writes.view(),
        }
    }

    /// Returns function, outcome and number of the calls that were made.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        let of = |(name, function): (&'static str, &Function)| {
            let counts: Vec<_> = OUTCOMES.iter().zip(&function.outcomes).collect();
            let counts = counts.into_iter().map(|(outcome, n)| (*outcome, n.load(Relaxed)));
            counts.map(|(outcome, n)| (name, outcome, n)).collect::<Vec<_>>()
        };
        let all = FUNCTIONS.into_iter().zip(&self.functions).flat_map(of);
        all.filter(|(_, _, n)| *n > 0)
    }

    /// Returns the duration of calls, by function.
    pub(super) fn durations(&self) -> impl Iterator<Item = (&'static str, HistogramView)> {
        let functions = FUNCTIONS.into_iter().zip(&self.functions);
        functions.filter_map(|(name, function)| Some((name, function.duration.get()?.view())))
    }

    /// Returns how long notifications waited for their first call, if there was one.
    pub(super) fn notifications_waited(&self) -> Option<HistogramView> {
        self.notifications_waited.get().map(|it| it.view())
    }

    /// Returns the counters of the work queue.
    pub(super) fn keys(&self) -> &KeyMetrics {
        &self.keys
    }

    /// Returns how the calls of `reconcile` ended.
    pub(super) fn reconciles(&self) -> ReconcileCounts {
        let outcomes = &self.functions[RECONCILE].outcomes;
        let failed = outcomes[DONE + 1..].iter().map(|n| n.load(Relaxed)).sum();
        self.reconciles.counts(outcomes[DONE].load(Relaxed), failed)
    }

    /// Returns the duration of the calls of `reconcile`.
    pub(super) fn reconcile_duration(&self) -> HistogramView {
        self.functions[RECONCILE].duration.get().map(|it| it.view()).unwrap_or_default()
    }

    /// Returns the number of lost instances, by reason.
    pub(super) fn losses(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let losses = LOSS_REASONS.into_iter().zip(&self.lost).map(|(reason, n)| (reason, n.load(Relaxed)));
        losses.filter(|(_, n)| *n > 0)
    }

    pub(super) fn restarts(&self) -> u64 {
        self.restarts.load(Relaxed)
    }

    /// Returns how many calls failed: those with any outcome but done, and those that lost the instance.
    fn failures(&self) -> u64 {
        let not_done = self.functions.iter().flat_map(|function| &function.outcomes[DONE + 1..]);
        not_done.chain(&self.lost).map(|n| n.load(Relaxed)).sum()
    }

    /// Returns the duration of all calls that returned.
    fn call_duration(&self) -> HistogramView {
        let mut all = HistogramView::default();
        self.durations().for_each(|(_, function)| all.add(&function));
        all
    }

    /// Returns how long notifications and keys waited.
    fn queue_duration(&self) -> HistogramView {
        let mut all = self.keys.waited_view();
        if let Some(notifications) = self.notifications_waited() {
            all.add(&notifications);
        }
        all
    }
}

impl WorkQueueMetrics for PluginMetrics {
    fn added(&self) {
        self.keys.add();
    }

    fn waited(&self, duration: Duration) {
        self.keys.waited(duration);
    }

    fn worked(&self, duration: Duration) {
        self.keys.worked(duration);
    }

    fn retried(&self) {
        self.keys.retry();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_waits_are_counted_by_their_labels() {
        let metrics = PluginMetrics::default();
        for function in FUNCTIONS {
            for outcome in OUTCOMES {
                metrics.called(function, outcome, Duration::from_millis(1));
            }
        }
        metrics.called("on-add", "done", Duration::from_millis(2));
        for reason in LOSS_REASONS {
            metrics.lost("on-add", reason);
        }
        assert_eq!(metrics.calls().next(), Some(("on-add", "done", 2)));
        assert_eq!(metrics.calls().count(), FUNCTIONS.len() * OUTCOMES.len());
        assert_eq!(metrics.call_duration().count(), 16);
        assert_eq!(metrics.failures(), 5 * 2 + LOSS_REASONS.len() as u64);
        assert_eq!(metrics.losses().count(), LOSS_REASONS.len());
        metrics.waited(Duration::from_secs(1));
        WorkQueueMetrics::waited(&metrics, Duration::from_secs(2));
        WorkQueueMetrics::waited(&metrics, Duration::from_secs(2));
        let notifications = metrics.notifications_waited().map(|it| it.count());
        assert_eq!((notifications, metrics.keys().waited_view().count()), (Some(1), 2));
        assert_eq!(metrics.queue_duration().count(), 3);
    }
    #[test]
    fn the_calls_of_reconcile_are_counted_by_result() {
        let metrics = PluginMetrics::default();
        for outcome in ["done", "done", "done", "retry", "parked"] {
            metrics.called("reconcile", outcome, Duration::from_millis(1));
        }
        metrics.called("on-add", "retry", Duration::from_millis(1));
        metrics.requeued();
        metrics.terminal();
        for reason in ["trap", "deadline", "memory"] {
            metrics.lost("reconcile", reason);
            metrics.lost("on-add", reason);
        }
        let expected =
            ReconcileCounts { succeeded: 2, requeued: 1, failed: 5, terminal: 1, trapped: 1, timed_out: 1 };
        assert_eq!(metrics.reconciles(), expected);
        assert_eq!(metrics.reconcile_duration().count(), 5);
    }
}
