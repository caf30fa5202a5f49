//! Checks one change for all listeners, in slices of work.
//!
//! The unit of work is the time that a walk takes over one byte of text; the constants below are in this
//! unit.

use oarlock_json::{PointerSet, Walk};

use super::{Condition, Interest, MatchPlan};
use crate::listener::change::Change;
use crate::listener::decision::{Decision, decide};
use crate::object::{Json, LabelView, Object};

/// A slice in which many labels were parsed does at least this much work besides.
const MIN_AFTER_LABELS: usize = 1 << 16;

/// The work for one interest, without the texts that are compared.
const PER_INTEREST: usize = 32;
/// The work for one requirement of a label selector.
const PER_REQUIREMENT: usize = 64;
/// The work for one value of a condition.
const PER_CONDITION: usize = 128;
/// How many bytes are compared in one unit of work.
const COMPARED_PER_UNIT: usize = 8;

/// The check of one change against a [`MatchPlan`], and then the decision for each listener. Reused for the
/// next change, so that no memory is allocated.
#[derive(Debug, Default)]
pub(crate) struct ChangeCheck {
    stage: Stage,
    /// By interest.
    results: Vec<InterestResult>,
    /// The new state, or the deleted one; then, for an update, the old state.
    sides: [Side; 2],
    /// By node of the plan's pointers: whether old and new have the same value there.
    same: Vec<Option<bool>>,
    needs: Needs,
    ignores_declared_fields: bool,
    /// How many texts were ever walked.
    pub(crate) n_walks: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    /// Checks selectors, next that of this interest.
    Selecting(usize),
    /// Walks over texts, next that of this side.
    Walking(usize),
    /// Checks conditions and declared fields and decides, next for this interest.
    Deciding(usize),
    #[default]
    Done,
}

/// Which values must be found in the texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Needs {
    #[default]
    Nothing,
    Conditions,
    All,
}

#[derive(Clone, Copy, Debug, Default)]
struct InterestResult {
    /// Whether any of its listeners may see the object.
    is_needed: bool,
    /// Whether its selector selects each side.
    selected: [bool; 2],
    decision: Decision,
}

/// One state of the object.
#[derive(Debug, Default)]
struct Side {
    object: Option<Object>,
    /// None until the walk has begun.
    text: Option<Json>,
    walk: Walk,
    /// By selector of the plan: whether it selects the object, once that is known.
    selected: Vec<Option<bool>>,
    /// By condition of the plan: whether it holds, once that is known.
    holds: Vec<Option<bool>>,
}

/// The labels of one state, while selectors are checked.
struct Selecting<'s> {
    labels: LabelView<'s>,
    selected: &'s mut Vec<Option<bool>>,
}

// === impl ChangeCheck ===

impl ChangeCheck {
    /// Begins to check a change. `is_needed` returns for a listener of the plan whether it may see the
    /// object.
    pub(crate) fn begin(&mut self, plan: &MatchPlan, change: &Change, is_needed: impl Fn(usize) -> bool) {
        let (new, old) = match change {
            Change::Added { new, .. } => (new, None),
            Change::Updated { old, new, .. } => (new, Some(old).filter(|old| !old.is_same(new))),
            Change::Deleted { old, .. } => (old, None),
        };
        for (side, object) in self.sides.iter_mut().zip([Some(new), old]) {
            side.begin(plan, object);
        }
        self.results.clear();
        self.results.resize(plan.interests.len(), InterestResult::default());
        for (listener, interest) in plan.listeners.iter().enumerate() {
            let result = &mut self.results[*interest as usize];
            result.is_needed = result.is_needed || is_needed(listener);
        }
        self.needs = Needs::Nothing;
        self.ignores_declared_fields = change.ignores_declared_fields();
        self.stage = Stage::Selecting(0);
    }

    /// Continues the check and subtracts the work from `n_left`; returns whether all decisions are made. Plan
    /// and change must be those of [`begin`](Self::begin).
    pub(crate) fn advance(&mut self, plan: &MatchPlan, change: &Change, n_left: &mut usize) -> bool {
        loop {
            match self.stage {
                Stage::Selecting(first) => self.select(plan, change, first, n_left),
                Stage::Walking(side) => self.walk(plan, side, n_left),
                Stage::Deciding(first) => self.decide(plan, change, first, n_left),
                Stage::Done => {
                    self.sides.iter_mut().for_each(Side::end);
                    return true;
                }
            }
            if *n_left == 0 && !matches!(self.stage, Stage::Done) {
                return false;
            }
        }
    }

    /// Returns the decision for a listener of the plan.
    pub(crate) fn decision(&self, plan: &MatchPlan, listener_idx: usize) -> Decision {
        self.results[plan.listeners[listener_idx] as usize].decision
    }

    fn select(&mut self, plan: &MatchPlan, change: &Change, first: usize, n_left: &mut usize) {
        let Self { results, sides: [new, old], needs, ignores_declared_fields, stage, .. } = self;
        let is_update = matches!(change, Change::Updated { .. }) && old.object.is_some();
        let has_fields_to_compare = is_update && !*ignores_declared_fields;
        let (mut new, mut old) = (Selecting::of(new), Selecting::of(old));
        if [&new, &old].into_iter().flatten().any(|side| side.labels.is_long()) {
            // Long labels were parsed, which may take a whole slice. Each slice must still make progress.
            *n_left = (*n_left).max(MIN_AFTER_LABELS);
        }
        for (number, (interest, result)) in plan.interests.iter().zip(results).enumerate().skip(first) {
            if *n_left == 0 {
                *stage = Stage::Selecting(number);
                return;
            }
            *n_left = n_left.saturating_sub(PER_INTEREST);
            if !result.is_needed {
                continue;
            }
            let selects = |side: &mut Option<Selecting<'_>>, n_left: &mut usize| {
                side.as_mut().map(|side| side.selects(plan, interest, n_left))
            };
            let new_matches = selects(&mut new, n_left).unwrap_or_default();
            result.selected = [new_matches, selects(&mut old, n_left).unwrap_or(new_matches)];
            if has_fields_to_compare && result.selected == [true, true] && !interest.fields.is_empty() {
                *needs = Needs::All;
            } else if *needs == Needs::Nothing
                && result.selected != [false, false]
                && !interest.conditions.is_empty()
            {
                *needs = Needs::Conditions;
            }
        }
        *stage = if *needs == Needs::Nothing { Stage::Deciding(0) } else { Stage::Walking(0) };
    }

    fn walk(&mut self, plan: &MatchPlan, number: usize, n_left: &mut usize) {
        let set = self.needs.pointers(plan);
        if self.sides[number].walk(set, n_left, &mut self.n_walks) {
            self.stage = if number == 0 { Stage::Walking(1) } else { Stage::Deciding(0) };
            if number == 1 && self.needs == Needs::All {
                self.same.clear();
                self.same.resize(set.n_nodes(), None);
            }
        }
    }

    fn decide(&mut self, plan: &MatchPlan, change: &Change, first: usize, n_left: &mut usize) {
        for (number, interest) in plan.interests.iter().enumerate().skip(first) {
            if *n_left == 0 {
                self.stage = Stage::Deciding(number);
                return;
            }
            *n_left = n_left.saturating_sub(PER_INTEREST);
            if self.results[number].is_needed {
                self.results[number].decision = self.decide_for(plan, change, number, interest, n_left);
            }
        }
        self.stage = Stage::Done;
    }

    fn decide_for(
        &mut self,
        plan: &MatchPlan,
        change: &Change,
        number: usize,
        interest: &Interest,
        n_left: &mut usize,
    ) -> Decision {
        let selected = self.results[number].selected;
        let place_idx = usize::from(self.needs == Needs::All);
        let [new, old] = &mut self.sides;
        let mut matches = |side: &mut Side, is_selected: bool| {
            is_selected
                && interest.conditions.iter().all(|condition| side.holds(plan, *condition, place_idx, n_left))
        };
        let new_matches = matches(new, selected[0]);
        let old_matches = if old.object.is_some() { matches(old, selected[1]) } else { new_matches };
        decide(change, old_matches, new_matches, || {
            self.ignores_declared_fields
                || interest.fields.is_empty()
                || self.has_changed(plan, interest, n_left)
        })
    }

    /// Returns whether an update changed a declared field.
    fn has_changed(&mut self, plan: &MatchPlan, interest: &Interest, n_left: &mut usize) -> bool {
        let Self { sides: [new, old], same, .. } = self;
        let (Some(new_text), Some(old_text)) = (&new.text, &old.text) else {
            // The object was replaced by itself.
            return false;
        };
        interest.fields.iter().any(|node| {
            let is_same = same[*node as usize].unwrap_or_else(|| {
                let (new, old) = (new.walk.span(*node).of(new_text), old.walk.span(*node).of(old_text));
                *n_left = n_left.saturating_sub(new.map_or(0, str::len) / COMPARED_PER_UNIT);
                let is_same = new == old;
                if is_same {
                    // So are all values within it.
                    let below = *node as usize..plan.pointers.end(*node) as usize;
                    *n_left = n_left.saturating_sub(below.len() / COMPARED_PER_UNIT);
                    same[below].fill(Some(true));
                } else {
                    same[*node as usize] = Some(false);
                }
                is_same
            });
            !is_same
        })
    }
}

// === impl Needs ===

impl Needs {
    fn pointers(self, plan: &MatchPlan) -> &PointerSet {
        match self {
            Self::Nothing | Self::Conditions => &plan.condition_pointers,
            Self::All => &plan.pointers,
        }
    }
}

// === impl Side ===

impl Side {
    fn begin(&mut self, plan: &MatchPlan, object: Option<&Object>) {
        self.object = object.cloned();
        self.text = None;
        let n_results = if object.is_some() { [plan.selectors.len(), plan.conditions.len()] } else { [0, 0] };
        for (results, n_results) in [&mut self.selected, &mut self.holds].into_iter().zip(n_results) {
            results.clear();
            results.resize(n_results, None);
        }
    }

    /// Releases object and text.
    fn end(&mut self) {
        self.object = None;
        self.text = None;
    }

    /// Continues the walk; returns whether it has ended.
    fn walk(&mut self, set: &PointerSet, n_left: &mut usize, n_walks: &mut u64) -> bool {
        let Some(object) = &self.object else { return true };
        let text = match &mut self.text {
            Some(text) => text,
            none => {
                self.walk.begin(set);
                *n_walks += 1;
                none.insert(object.json())
            }
        };
        self.walk.advance(set, text, n_left)
    }

    fn holds(&mut self, plan: &MatchPlan, number: u32, place_idx: usize, n_left: &mut usize) -> bool {
        let Self { text, walk, holds, .. } = self;
        *holds[number as usize].get_or_insert_with(|| {
            let Condition { condition, places } = &plan.conditions[number as usize];
            *n_left = n_left.saturating_sub(PER_CONDITION * condition.n_values().max(1));
            let value = text.as_ref().and_then(|text| walk.span(places[place_idx]).of(text));
            condition.matches_value(value)
        })
    }
}

// === impl Selecting ===

impl<'s> Selecting<'s> {
    fn of(side: &'s mut Side) -> Option<Self> {
        let labels = side.object.as_ref()?.label_set().view();
        Some(Self { labels, selected: &mut side.selected })
    }

    fn selects(&mut self, plan: &MatchPlan, interest: &Interest, n_left: &mut usize) -> bool {
        let Some(number) = interest.selector else { return true };
        let Self { labels, selected } = self;
        *selected[number as usize].get_or_insert_with(|| {
            let selector = &plan.selectors[number as usize];
            *n_left = n_left.saturating_sub(selector.n_requirements() * PER_REQUIREMENT);
            selector.matches(labels)
        })
    }
}
