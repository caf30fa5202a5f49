//! A backlog whose consumer, or whose view, is exchanged.

use std::collections::VecDeque;

use hashbrown::hash_map::Entry;
use tokio::time::Instant;

use super::{Backlog, Line, LineState, Pending, Superseded, n_superseded, n_superseded_in};
use crate::listener::merge;
use crate::listener::notification::Notification;
use crate::names::ObjectKey;

// === impl Backlog ===

impl Backlog {
    /// Drops everything but the deletes of objects for which `is_visible` answers false. Those become ready, as if never tried.
    ///
    /// What is in flight stays so, but is retried only if it is such a delete.
    pub(in crate::listener) fn reset_for_replay(&mut self, is_visible: impl Fn(&ObjectKey) -> bool) {
        self.ready.clear();
        self.backing_off.clear();
        self.deferred.clear();
        self.n_waiting = 0;
        self.n_parked = 0;
        self.n_initial = 0;
        self.release(self.held);
        let mut kept = Vec::new();
        for (key, mut line) in std::mem::take(&mut self.lines) {
            line.outdated = 0;
            let line_folded = merge::fold(std::mem::take(&mut line.waiting));
            line.waiting = line_folded
                .into_iter()
                .filter(|pending| {
                    !is_visible(&key) && matches!(pending.notification, Notification::Deleted { .. })
                })
                .map(|pending| Pending { attempts: 0, counts_for_sync: false, ..pending })
                .collect();
            self.hold(n_superseded_in(&line.waiting));
            if let LineState::InFlight(in_flight) = &mut line.state {
                let held = n_superseded(&in_flight.pending.notification);
                self.hold(held);
                in_flight.pending.counts_for_sync = false;
                if in_flight.superseded == Superseded::No {
                    in_flight.superseded = Superseded::ByReplay;
                }
            } else if line.waiting.is_empty() {
                continue;
            } else {
                line.state = LineState::Ready;
            }
            kept.push((key, line));
        }
        for (key, line) in kept {
            self.n_waiting += line.waiting.len();
            let is_ready = matches!(line.state, LineState::Ready);
            self.lines.insert(key.clone(), line);
            if is_ready {
                self.become_ready(key);
            }
        }
    }

    /// Drops all that waits for objects for which `is_visible` answers false.
    pub(in crate::listener) fn drop_invisible(&mut self, is_visible: impl Fn(&ObjectKey) -> bool) {
        let keys: Vec<_> = self.lines.keys().filter(|key| !is_visible(key)).cloned().collect();
        let mut released = 0;
        for key in keys {
            self.leave_ready(&key);
            let Some(line) = self.lines.get_mut(&key) else { continue };
            let dropped = std::mem::take(&mut line.waiting);
            self.n_waiting -= dropped.len();
            released += n_superseded_in(&dropped);
            self.n_initial -= dropped.iter().filter(|pending| pending.counts_for_sync).count();
            match &mut line.state {
                LineState::InFlight(in_flight) => {
                    in_flight.superseded = Superseded::ByNarrowing;
                    continue;
                }
                LineState::BackingOff { until } => {
                    let until = *until;
                    let ticket = dropped.front().map_or(0, |pending| pending.ticket);
                    self.backing_off.remove(&(until, ticket));
                }
                LineState::Deferred => {
                    self.deferred.remove(&key);
                }
                LineState::Parked => self.n_parked -= 1,
                LineState::Ready => {}
            }
            released += line.outdated;
            self.lines.remove(&key);
        }
        self.release(released);
        self.shrink();
    }

    /// Takes out what waits, in the order in which it came. Nothing of it was ever taken.
    pub(in crate::listener) fn into_notifications(mut self) -> Vec<(ObjectKey, Notification, Instant)> {
        let lines = std::mem::take(&mut self.lines).into_iter();
        let mut waiting: Vec<_> =
            lines.flat_map(|(key, line)| line.waiting.into_iter().map(move |it| (key.clone(), it))).collect();
        waiting.sort_by_key(|(_, pending)| pending.ticket);
        waiting.into_iter().map(|(key, it)| (key, it.notification, it.arrived)).collect()
    }

    /// Takes out the deletes that wait or are in flight, leaving nothing behind.
    pub(in crate::listener) fn into_deletes(mut self) -> Vec<(ObjectKey, Notification)> {
        self.abandon_in_flight();
        let mut deletes: Vec<_> = std::mem::take(&mut self.lines)
            .into_iter()
            .filter_map(|(key, line)| Some((key, merge::fold(line.waiting).pop()?)))
            .filter(|(_, last)| matches!(last.notification, Notification::Deleted { .. }))
            .collect();
        deletes.sort_by_key(|(_, pending)| pending.ticket);
        deletes.into_iter().map(|(key, pending)| (key, pending.notification)).collect()
    }

    /// Puts notifications in front of all others, in their order. Those of objects for which something waits already are dropped.
    pub(in crate::listener) fn push_to_front(
        &mut self,
        notifications: Vec<(ObjectKey, Notification)>,
        now: Instant,
    ) {
        self.first_ticket -= notifications.len() as u64;
        let mut held = 0;
        for (ticket, (key, notification)) in (self.first_ticket..).zip(notifications) {
            if let Entry::Vacant(vacant) = self.lines.entry(key) {
                let pending = Pending {
                    notification,
                    ticket,
                    arrived: now,
                    attempts: 0,
                    tried: false,
                    counts_for_sync: false,
                };
                held += n_superseded(&pending.notification);
                self.ready.insert(ticket, vacant.key().clone());
                vacant.insert(Line {
                    state: LineState::Ready,
                    waiting: VecDeque::from([pending]),
                    outdated: 0,
                });
                self.n_waiting += 1;
            }
        }
        self.hold(held);
    }
}
