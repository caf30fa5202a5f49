//! Checks one change for all listeners, in slices of work.
//!
//! The unit of work is the time that a walk takes over one byte of text; the constants below are in this
//! unit.

use oarlock_json::Walk;

use super::{Condition, Interest, MatchPlan, Planned};
use crate::listener::change::Change;
use crate::listener::decision::{Decision, decide};
use crate::listener::values::{FieldValues, NotificationFields};
use crate::object::{Json, LabelView, Object, StateValues};

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
    /// By pointer of the plan: whether old and new have the same value there.
    same: Vec<Option<bool>>,
    needs_values: bool,
    /// The values are copied for the notifications and the next change. Not those of an initial list, for
    /// which they would take memory for all objects at once, nor those of a delete event, which has a state
    /// of its own.
    copies_values: bool,
    ignores_declared_fields: bool,
    /// Copies of the values of each side, if they are short.
    copies: [Option<StateValues>; 2],
    buffer: String,
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
    /// Copies the values.
    Copying,
    #[default]
    Done,
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
    /// The values, if they were kept from an earlier change, or copied by the decoder. No walk is necessary
    /// then.
    kept: Option<StateValues>,
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
    /// Begins to check a change. `kept` are the values of the state in the cache before the change, if they
    /// were kept. `is_needed` returns for a listener of the plan whether it may see the object.
    pub(crate) fn begin(
        &mut self,
        plan: &MatchPlan,
        change: &Change,
        kept: Option<StateValues>,
        is_needed: impl Fn(usize) -> bool,
    ) {
        let (new, old) = match change {
            Change::Added { new, .. } => (new, None),
            Change::Updated { old, new, .. } => (new, Some(old).filter(|old| !old.is_same(new))),
            Change::Deleted { old, .. } => (old, None),
        };
        let is_of_new = old.is_none();
        let [new_side, old_side] = &mut self.sides;
        let copied = || new.copied_values(plan.copied.number());
        new_side.begin(plan, Some(new), kept.clone().filter(|_| is_of_new).or_else(copied));
        old_side.begin(plan, old, kept.filter(|_| !is_of_new));
        self.results.clear();
        self.results.resize(plan.interests.len(), InterestResult::default());
        for (listener, Planned { interest, .. }) in plan.listeners.iter().enumerate() {
            let result = &mut self.results[*interest as usize];
            result.is_needed = result.is_needed || is_needed(listener);
        }
        self.needs_values = false;
        self.copies_values = plan.copies_values()
            && !matches!(change, Change::Added { is_in_initial_list: true, .. } | Change::Deleted { .. });
        self.ignores_declared_fields = change.ignores_declared_fields();
        self.copies = [None, None];
        self.stage = Stage::Selecting(0);
    }

    /// Continues the check and subtracts the work from `n_left`; returns whether all decisions are made. Plan
    /// and change must be those of [`begin`](Self::begin).
    pub(crate) fn advance(&mut self, plan: &MatchPlan, change: &Change, n_left: &mut usize) -> bool {
        loop {
            match self.stage {
                Stage::Selecting(first) => self.select(plan, first, n_left),
                Stage::Walking(side) => self.walk(plan, side, n_left),
                Stage::Deciding(first) => self.decide(plan, change, first, n_left),
                Stage::Copying => self.copy(plan, n_left),
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
        self.results[plan.listeners[listener_idx].interest as usize].decision
    }

    /// Returns the values of the fields that a listener of the plan declares, for its notification of the
    /// change.
    pub(crate) fn fields(
        &self,
        plan: &MatchPlan,
        change: &Change,
        listener_idx: usize,
    ) -> NotificationFields {
        let Planned { interest, selection: Some(selection) } = &plan.listeners[listener_idx] else {
            return NotificationFields::default();
        };
        let decision = self.results[*interest as usize].decision;
        let [new, old] = &self.copies;
        let of = |copy: &Option<StateValues>| Some(FieldValues::new(copy.clone()?, selection.clone()));
        match (change, decision) {
            (Change::Added { .. } | Change::Updated { .. }, Decision::Added) => {
                NotificationFields { old: None, new: of(new) }
            }
            (Change::Updated { .. }, Decision::Updated) => NotificationFields { old: of(old), new: of(new) },
            (Change::Updated { .. }, Decision::Deleted) => NotificationFields { old: of(old), new: None },
            _ => NotificationFields::default(),
        }
    }

    /// Returns the values of the new state, to keep them for the next change.
    pub(crate) fn new_values(&self) -> Option<StateValues> {
        self.copies[0].clone()
    }

    fn select(&mut self, plan: &MatchPlan, first: usize, n_left: &mut usize) {
        let Self {
            results,
            sides: [new, old],
            needs_values,
            copies_values,
            ignores_declared_fields,
            stage,
            ..
        } = self;
        let needs_fields = *copies_values || old.object.is_some() && !*ignores_declared_fields;
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
            *needs_values |= result.selected != [false, false]
                && (!interest.conditions.is_empty() || needs_fields && !interest.fields.is_empty());
        }
        *stage = if *needs_values { Stage::Walking(0) } else { Stage::Deciding(0) };
    }

    fn walk(&mut self, plan: &MatchPlan, number: usize, n_left: &mut usize) {
        if self.sides[number].walk(plan, n_left, &mut self.n_walks) {
            self.stage = if number == 0 { Stage::Walking(1) } else { Stage::Deciding(0) };
            if number == 1 {
                self.same.clear();
                self.same.resize(plan.pointers.len(), None);
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
        self.stage = if self.needs_values && self.copies_values { Stage::Copying } else { Stage::Done };
    }

    /// Copies the values of both sides, unless they are long. Sides with equal values share the copy.
    fn copy(&mut self, plan: &MatchPlan, n_left: &mut usize) {
        let Self { sides: [new, old], same, copies, buffer, stage, .. } = self;
        *stage = Stage::Done;
        *n_left = n_left.saturating_sub(plan.pointers.len());
        let mut copy = |side: &Side| match &side.kept {
            Some(kept) => Some(kept.clone()),
            None => {
                let values = (0..plan.pointers.len()).map(|pointer| side.value(plan, pointer));
                StateValues::copy(plan.copied.number(), values, buffer)
            }
        };
        let old_copy = if old.object.is_some() { copy(old) } else { None };
        let is_same = old_copy.as_ref().is_some_and(|old| {
            (0..plan.pointers.len()).all(|pointer| {
                same[pointer].unwrap_or_else(|| new.bytes(plan, pointer) == old.bytes(pointer))
            })
        });
        *copies = match old_copy {
            Some(old) if is_same => [Some(old.clone()), Some(old)],
            // The object was replaced by itself, or was not there before.
            None if old.object.is_none() => {
                let new = copy(new);
                [new.clone(), new]
            }
            old => [copy(new), old],
        };
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
        let [new, old] = &mut self.sides;
        let mut matches = |side: &mut Side, is_selected: bool| {
            is_selected && interest.conditions.iter().all(|condition| side.holds(plan, *condition, n_left))
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
        if old.object.is_none() {
            // The object was replaced by itself.
            return false;
        }
        interest.fields.iter().any(|pointer| {
            let is_same = same[*pointer as usize].unwrap_or_else(|| {
                let pointer = *pointer as usize;
                let (new, old) = (new.bytes(plan, pointer), old.bytes(plan, pointer));
                *n_left = n_left.saturating_sub(new.len() / COMPARED_PER_UNIT);
                let is_same = new == old;
                if is_same {
                    // So are all values within it.
                    let below = pointer..plan.ends[pointer] as usize;
                    *n_left = n_left.saturating_sub(below.len() / COMPARED_PER_UNIT);
                    same[below].fill(Some(true));
                } else {
                    same[pointer] = Some(false);
                }
                is_same
            });
            !is_same
        })
    }
}

// === impl Side ===

impl Side {
    fn begin(&mut self, plan: &MatchPlan, object: Option<&Object>, kept: Option<StateValues>) {
        self.object = object.cloned();
        self.kept = kept;
        self.text = None;
        let n_results = if object.is_some() { [plan.selectors.len(), plan.conditions.len()] } else { [0, 0] };
        for (results, n_results) in [&mut self.selected, &mut self.holds].into_iter().zip(n_results) {
            results.clear();
            results.resize(n_results, None);
        }
    }

    /// Releases object, values and text.
    fn end(&mut self) {
        self.object = None;
        self.kept = None;
        self.text = None;
    }

    /// Continues the walk; returns whether it has ended.
    fn walk(&mut self, plan: &MatchPlan, n_left: &mut usize, n_walks: &mut u64) -> bool {
        if self.kept.is_some() {
            return true;
        }
        let Some(object) = &self.object else { return true };
        let text = match &mut self.text {
            Some(text) => text,
            none => {
                self.walk.begin(plan.copied.set());
                *n_walks += 1;
                none.insert(object.json())
            }
        };
        self.walk.advance(plan.copied.set(), text, n_left)
    }

    /// Returns the value at a pointer of the plan, after the walk.
    fn value(&self, plan: &MatchPlan, pointer: usize) -> Option<&str> {
        match (&self.kept, &self.text) {
            (Some(kept), _) => kept.get(pointer),
            (None, Some(text)) => self.walk.span(plan.copied.set().place(pointer)).of(text),
            (None, None) => None,
        }
    }

    /// Returns the value at a pointer of the plan as bytes, after the walk; empty if it does not exist.
    fn bytes(&self, plan: &MatchPlan, pointer: usize) -> &[u8] {
        match &self.kept {
            Some(kept) => kept.bytes(pointer),
            None => self.value(plan, pointer).unwrap_or_default().as_bytes(),
        }
    }

    fn holds(&mut self, plan: &MatchPlan, number: u32, n_left: &mut usize) -> bool {
        if let Some(holds) = self.holds[number as usize] {
            return holds;
        }
        let Condition { condition, pointer } = &plan.conditions[number as usize];
        *n_left = n_left.saturating_sub(PER_CONDITION * condition.n_values().max(1));
        let holds = condition.matches_value(self.value(plan, *pointer as usize));
        self.holds[number as usize] = Some(holds);
        holds
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
