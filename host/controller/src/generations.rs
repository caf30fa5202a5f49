//! The states of a plugin's generations: what each version is doing, since when, and why.
//!
//! The task that prepares a version writes its first states, the dispatcher the last ones, both through one
//! [`GenerationHandle`]. Each transition is checked against [`GenerationState::may_become`], reported and
//! counted. The newest generations are kept for the status.

mod handle;
mod state;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;

pub(crate) use self::handle::GenerationHandle;
pub use self::state::GenerationState;
use crate::report::{HostEvent, Reporter, Timestamp};

/// How many generations of a plugin the status shows. Older ones that have ended are forgotten.
const KEPT: usize = 8;

/// The generations of one plugin, the newest last. Cheap to clone: clones share the list.
#[derive(Clone)]
pub(crate) struct Generations {
    plugin: Arc<str>,
    reporter: Reporter,
    list: Arc<Mutex<List>>,
}

/// One generation, as the status shows it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct GenerationView {
    /// Its number, from 1.
    pub(crate) number: u64,
    /// The version that the component states, once it was asked.
    pub(crate) version: Option<String>,
    /// The digest of the component, once it was read.
    pub(crate) digest: Option<String>,
    /// What it is doing, or how it ended.
    pub(crate) state: GenerationState,
    /// Why it is in this state.
    pub(crate) reason: String,
    /// When it entered the state.
    pub(crate) since: Timestamp,
    /// Whether the host watches its losses, and may switch back.
    pub(crate) on_probation: bool,
    /// Whether it passed its probation.
    #[serde(skip)]
    pub(crate) passed_probation: bool,
    /// Instances that it lost.
    pub(crate) instances_lost: u64,
}

struct List {
    generations: VecDeque<Record>,
    /// The transitions into each state, in the order of [`GenerationState::ALL`].
    transitions: [u64; GenerationState::ALL.len()],
}

struct Record {
    view: GenerationView,
    has_served: bool,
}

/// Why a version is loaded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    /// It is the newest one.
    Newest,
    /// The host goes back to it.
    Before,
    /// It is the last good one, and no other one serves.
    LastGood,
}

// === impl Generations ===

impl Generations {
    /// Creates the empty list of a plugin.
    pub(crate) fn new(plugin: Arc<str>, reporter: Reporter) -> Self {
        // Most plugins have one generation.
        let list = List { generations: VecDeque::with_capacity(1), transitions: Default::default() };
        Self { plugin, reporter, list: Arc::new(Mutex::new(list)) }
    }

    /// Returns the number of the generation that is prepared now or next.
    pub(crate) fn next_number(&self) -> u64 {
        self.list.lock().next_number()
    }

    /// Adds the next generation, whose component was read.
    #[must_use]
    pub(crate) fn begin(&self, purpose: Purpose) -> GenerationHandle {
        let mut list = self.list.lock();
        let number = list.next_number();
        let record = Record::new(number, GenerationState::Fetched, "its component was read".to_owned());
        list.add(record);
        drop(list);
        self.report(number, GenerationState::Fetched, "its component was read");
        GenerationHandle::new(self.clone(), number, purpose)
    }

    /// Notes that the generation that is prepared, or the next one if none is, never serves.
    pub(crate) fn fail(&self, state: GenerationState, reason: &str) {
        let number = self.next_number();
        {
            let mut list = self.list.lock();
            if !list.generations.iter().any(|it| it.view.number == number) {
                list.add(Record::new(number, state, reason.to_owned()));
                drop(list);
                return self.report(number, state, reason);
            }
        }
        self.enter(number, state, reason);
    }

    /// Notes that the account of the generation that serves may do nothing, for a reason, or that it may
    /// again.
    pub(crate) fn account_changed(&self, forbidden: Option<&str>) {
        let of = match forbidden {
            Some(_) => GenerationState::Serving,
            None => GenerationState::Forbidden,
        };
        let is_it = |it: &&Record| it.has_served && it.view.state == of;
        let number = self.list.lock().generations.iter().rev().find(is_it).map(|it| it.view.number);
        let Some(number) = number else { return };
        match forbidden {
            Some(reason) => self.enter(number, GenerationState::Forbidden, reason),
            None => self.enter(number, GenerationState::Serving, "its account exists again"),
        }
    }

    /// Shows that the probation of a generation has begun.
    pub(crate) fn began_probation(&self, number: u64) {
        self.change(number, |record| record.view.on_probation = true);
    }

    /// Shows that a generation has passed its probation, or needs none.
    pub(crate) fn passed_probation(&self, number: u64) {
        self.change(number, |record| {
            record.view.on_probation = false;
            record.view.passed_probation = true;
        });
    }

    /// Returns the newest generations, the newest last.
    pub(crate) fn views(&self) -> Vec<GenerationView> {
        self.list.lock().generations.iter().map(|it| it.view.clone()).collect()
    }

    /// Returns how often a generation entered each state, in the order of [`GenerationState::ALL`].
    pub(crate) fn transitions(&self) -> [u64; GenerationState::ALL.len()] {
        self.list.lock().transitions
    }

    /// Makes a generation enter a state. A transition that does not exist is a bug of the host, and changes
    /// nothing.
    fn enter(&self, number: u64, state: GenerationState, reason: &str) {
        {
            let mut list = self.list.lock();
            let Some(record) = list.generations.iter_mut().find(|it| it.view.number == number) else {
                return;
            };
            let before = record.view.state;
            if before == state {
                // The same state for another reason, such as another missing right.
                reason.clone_into(&mut record.view.reason);
                return;
            }
            if !before.may_become(state, record.has_served) {
                drop(list);
                tracing::error!(plugin = %self.plugin, number, %before, %state, reason, "a generation cannot change so");
                debug_assert!(
                    false,
                    "generation {number} of {} changes from {before} to {state}",
                    self.plugin
                );
                return;
            }
            record.view.state = state;
            record.view.since = Timestamp::now();
            reason.clone_into(&mut record.view.reason);
            record.has_served |= state == GenerationState::Serving;
            record.view.on_probation &= !state.is_final() && state != GenerationState::Draining;
            list.count(state);
        }
        self.report(number, state, reason);
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Record)) {
        let mut list = self.list.lock();
        if let Some(record) = list.generations.iter_mut().find(|it| it.view.number == number) {
            change(record);
        }
    }

    fn report(&self, number: u64, state: GenerationState, reason: &str) {
        let event = HostEvent::GenerationState { state, reason: reason.to_owned() };
        self.reporter.about(&self.plugin, number).report(event);
    }
}

impl fmt::Debug for Generations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.views()).finish()
    }
}

// === impl List ===

impl List {
    /// A generation that is still prepared keeps its number; the next one gets another.
    fn next_number(&self) -> u64 {
        match self.generations.back() {
            None => 1,
            Some(newest) if newest.has_served || newest.view.state.is_final() => newest.view.number + 1,
            Some(newest) => newest.view.number,
        }
    }

    fn add(&mut self, record: Record) {
        self.generations.retain(|it| it.view.number != record.view.number);
        self.count(record.view.state);
        self.generations.push_back(record);
        while self.generations.len() > KEPT {
            // One that still serves is kept, however many versions failed after it.
            let Some(oldest) = self.generations.iter().position(|it| it.view.state.is_final()) else {
                return;
            };
            self.generations.remove(oldest);
        }
    }

    fn count(&mut self, state: GenerationState) {
        self.transitions[state as usize] += 1;
    }
}

// === impl Record ===

impl Record {
    fn new(number: u64, state: GenerationState, reason: String) -> Self {
        let view = GenerationView {
            number,
            version: None,
            digest: None,
            state,
            reason,
            since: Timestamp::now(),
            on_probation: false,
            passed_probation: false,
            instances_lost: 0,
        };
        Self { view, has_served: false }
    }
}

#[cfg(test)]
mod tests;
