//! The lanes of one generation: each has one instance at most, and makes one call at a time.
//!
//! A due call gets the lane that was used last among those with an instance, else one whose instance is made
//! first. So under little load few instances exist. An instance that was not called for a while is dropped
//! (of a stateless plugin only). A lost instance costs its lane alone. While no call was answered since the
//! last loss, fresh instances are made for two lanes only: a plugin that always traps gets few, and a call
//! that loops does not delay those of other objects.

use std::time::Duration;

use tokio::time::Instant;

use super::call::Instance;
use super::retry::Restarts;
use crate::config::PluginFile;

/// While no call was answered since the last loss, an instance is made only if fewer lanes than this are
/// busy.
const LANES_AFTER_LOSS: usize = 2;

/// How many instances a generation has, and when they are dropped and replaced.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct LaneConfig {
    /// The most instances. 1 for a plugin with state.
    pub(crate) concurrency: usize,
    /// An instance that was not called for this long is dropped; `None` for never.
    pub(crate) idle_after: Option<Duration>,
    /// An instance is dropped after so many calls; `None` for never.
    pub(crate) recycle_after_calls: Option<u64>,
    /// An instance is dropped after a call that leaves it with more bytes; `None` for never.
    pub(crate) recycle_above_memory: Option<u64>,
}

pub(super) struct Lanes {
    config: LaneConfig,
    lanes: Vec<Lane>,
    /// The free lanes with an instance. The last one was used last.
    idle: Vec<usize>,
    /// The free lanes without an instance.
    empty: Vec<usize>,
    n_busy: usize,
    /// No instance is made before this time, since one was lost.
    restart_at: Option<Instant>,
    /// When an instance was lost, the first one if several were lost. The next fresh instance replaces them
    /// all; those that follow it are made because there is work.
    lost_at: Option<Instant>,
}

#[derive(Default)]
struct Lane {
    instance: Option<Box<dyn Instance>>,
    n_calls: u64,
    idle_since: Option<Instant>,
    /// The instance in the call is dropped when the call ends.
    is_outdated: bool,
    /// When the first of those instances was lost that the instance replaces which is being made.
    replaces: Option<Instant>,
}

/// A lane that was taken for a call, and its instance if it has one.
pub(super) struct Taken {
    pub(super) lane: usize,
    pub(super) instance: Option<Box<dyn Instance>>,
}

// === impl LaneConfig ===

impl LaneConfig {
    /// Returns what a plugin's file says. Only the instances of a stateless plugin are dropped.
    pub(crate) fn of(file: &PluginFile, is_stateless: bool) -> Self {
        if !is_stateless {
            return Self::single();
        }
        let instances = &file.instances;
        Self {
            concurrency: file.concurrency as usize,
            idle_after: Some(instances.idle_after).filter(|after| !after.is_zero()),
            recycle_after_calls: Some(instances.recycle_after_calls).filter(|calls| *calls > 0),
            recycle_above_memory: Some(instances.recycle_above_memory).filter(|bytes| *bytes > 0),
        }
    }

    /// Returns one lane whose instance stays.
    pub(crate) fn single() -> Self {
        Self { concurrency: 1, idle_after: None, recycle_after_calls: None, recycle_above_memory: None }
    }
}

// === impl Lanes ===

impl Lanes {
    /// Returns the lanes of a generation, the first one with this instance.
    pub(super) fn new(config: LaneConfig, first: Box<dyn Instance>) -> Self {
        let mut lanes: Vec<_> =
            std::iter::repeat_with(Lane::default).take(config.concurrency.max(1)).collect();
        lanes[0].instance = Some(first);
        lanes[0].idle_since = Some(Instant::now());
        let empty = (1..lanes.len()).rev().collect();
        Self { config, lanes, idle: vec![0], empty, n_busy: 0, restart_at: None, lost_at: None }
    }

    /// Returns whether more than one call may be in progress.
    pub(super) fn are_several(&self) -> bool {
        self.lanes.len() > 1
    }

    /// Returns how many lanes there are.
    pub(super) fn len(&self) -> usize {
        self.lanes.len()
    }

    pub(super) fn n_busy(&self) -> usize {
        self.n_busy
    }

    /// Returns whether there is no instance.
    pub(super) fn are_empty(&self) -> bool {
        self.empty.len() == self.lanes.len()
    }

    /// Returns whether calls can be made: now, or when a call in progress ends.
    pub(super) fn serve(&self) -> bool {
        self.restart_at.is_none() || !self.idle.is_empty() || self.n_busy > 0
    }

    /// Returns whether [`Lanes::take`] returns a lane.
    pub(super) fn can_call(&self, restarts: &Restarts) -> bool {
        !self.idle.is_empty() || (!self.empty.is_empty() && self.may_make(restarts))
    }

    fn may_make(&self, restarts: &Restarts) -> bool {
        self.restart_at.is_none() && (restarts.in_a_row() == 0 || self.n_busy < LANES_AFTER_LOSS)
    }

    /// Takes a lane for a call.
    pub(super) fn take(&mut self, restarts: &Restarts) -> Option<Taken> {
        if let Some(lane) = self.idle.pop() {
            self.n_busy += 1;
            return Some(Taken { lane, instance: self.lanes[lane].instance.take() });
        }
        if !self.may_make(restarts) {
            return None;
        }
        self.take_empty()
    }

    /// Takes a lane without an instance, to make one.
    pub(super) fn take_empty(&mut self) -> Option<Taken> {
        self.restart_at = None;
        let lane = self.empty.pop()?;
        self.lanes[lane].replaces = self.lost_at.take();
        self.n_busy += 1;
        Some(Taken { lane, instance: None })
    }

    /// Notes that a lane has a fresh instance. If it replaces lost ones, returns when the first of them was
    /// lost.
    pub(super) fn made(&mut self, lane: usize) -> Option<Instant> {
        self.lanes[lane].n_calls = 0;
        self.lanes[lane].replaces.take()
    }

    /// Frees a lane whose call ended at the given time. Its instance is kept, or dropped if it is to be
    /// recycled.
    pub(super) fn put_back(&mut self, lane: usize, instance: Box<dyn Instance>, ended_at: Instant) {
        self.n_busy -= 1;
        let LaneConfig { recycle_after_calls, recycle_above_memory, .. } = self.config;
        let state = &mut self.lanes[lane];
        state.n_calls += 1;
        let is_worn = std::mem::take(&mut state.is_outdated)
            || recycle_after_calls.is_some_and(|most| state.n_calls >= most)
            || recycle_above_memory.is_some_and(|most| instance.memory_bytes() > most);
        if is_worn {
            self.empty.push(lane);
            return;
        }
        state.instance = Some(instance);
        state.idle_since = Some(ended_at);
        self.idle.push(lane);
    }

    /// Frees a lane whose instance was lost, or could not be made. No instance is made before `restart_at`.
    pub(super) fn lost(&mut self, lane: usize, restart_at: Instant) {
        self.n_busy -= 1;
        self.lanes[lane].is_outdated = false;
        let lost_at = self.lanes[lane].replaces.take().unwrap_or_else(Instant::now);
        self.lost_at = Some(self.lost_at.map_or(lost_at, |before| before.min(lost_at)));
        self.empty.push(lane);
        self.restart_at = Some(self.restart_at.map_or(restart_at, |before| before.max(restart_at)));
    }

    /// Drops all instances, those in a call when it ends. Fresh ones are made when there is work.
    pub(super) fn replace_instances(&mut self) {
        for lane in std::mem::take(&mut self.idle) {
            self.lanes[lane].instance = None;
            self.empty.push(lane);
        }
        for (lane, state) in self.lanes.iter_mut().enumerate() {
            state.is_outdated = !self.empty.contains(&lane);
        }
    }

    /// Returns when the next instance is made, if one was lost.
    pub(super) fn restart_at(&self) -> Option<Instant> {
        self.restart_at
    }

    /// Notes that the plugin may be called again after its calls were stopped: the wait for a fresh instance
    /// counts from now.
    pub(super) fn resumed(&mut self) {
        if let Some(lost_at) = &mut self.lost_at {
            *lost_at = Instant::now();
        }
    }

    /// Returns when the next instance is dropped because it is idle.
    pub(super) fn idle_due(&self) -> Option<Instant> {
        let after = self.config.idle_after?;
        let oldest = *self.idle.first()?;
        self.lanes[oldest].idle_since.map(|since| since + after)
    }

    /// Drops the instances that have been idle for too long.
    pub(super) fn drop_idle(&mut self, now: Instant) {
        while self.idle_due().is_some_and(|due| due <= now) {
            let lane = self.idle.remove(0);
            self.lanes[lane].instance = None;
            self.empty.push(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(more: &str, is_stateless: bool) -> LaneConfig {
        let text = format!(
            "{{name: p, component: p.wasm, serviceAccount: {{namespace: ns, name: p}}, concurrency: 4, {more}}}"
        );
        LaneConfig::of(&PluginFile::parse(Path::new("plugins/p.yaml"), &text).unwrap(), is_stateless)
    }

    #[test]
    fn a_plugin_with_state_has_one_lane_whose_instance_stays() {
        let all = "instances: {idleAfter: 30s, recycleAfterCalls: 9, recycleAboveMemory: 1Mi}";
        let config = config(all, false);
        assert_eq!((config.concurrency, config.idle_after), (1, None));
        assert_eq!((config.recycle_after_calls, config.recycle_above_memory), (None, None));
    }

    #[test]
    fn a_stateless_plugin_has_the_lanes_of_its_file_and_zero_keeps_its_instances() {
        let set = config("instances: {idleAfter: 30s, recycleAfterCalls: 9, recycleAboveMemory: 1Mi}", true);
        assert_eq!((set.concurrency, set.idle_after), (4, Some(Duration::from_secs(30))));
        assert_eq!((set.recycle_after_calls, set.recycle_above_memory), (Some(9), Some(1 << 20)));
        let zero = config("instances: {idleAfter: 0s, recycleAfterCalls: 0, recycleAboveMemory: 0}", true);
        assert_eq!((zero.concurrency, zero.idle_after), (4, None));
        assert_eq!((zero.recycle_after_calls, zero.recycle_above_memory), (None, None));
    }
}
