//! One change, looked at for all listeners, a slice of work at a time.

use super::{Change, Condition, Interest, Plan, Verdict};
use crate::object::{Json, LabelView, Object};
use oarlock_json::{PointerSet, Walk};

/// The least that one slice is good for, in bytes passed over.
const LEAST: usize = 1 << 16;

/// What looking at one interest counts as, beside the texts that are compared.
const INTEREST: usize = 32;
/// What a requirement of a label selector and what a condition count as.
const REQUIREMENT: usize = 64;
const CONDITION: usize = 128;
/// So many bytes are compared in the time of one unit.
const COMPARED: usize = 8;

/// One change on its way through a [`Plan`]; afterwards, what it is to each listener. Used again for the next one without new memory.
#[derive(Debug, Default)]
pub(crate) struct Matching {
    stage: Stage,
    /// By interest.
    judged: Vec<Judged>,
    /// The state that counts (the new one, or the deleted one); then, for an update, the one before.
    sides: [Side; 2],
    /// By node of the plan's pointers: whether old and new are the same there.
    same: Vec<Option<bool>>,
    needs: Needs,
    never_skipped: bool,
    /// How many texts were walked, ever.
    pub(crate) n_walks: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum Stage {
    /// The selectors of the interest with this number are next.
    Selecting(usize),
    /// The text of this side is next.
    Walking(usize),
    /// Conditions and fields of the interest with this number are next.
    Judging(usize),
    #[default]
    Done,
}

/// What has to be found in the texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Needs {
    #[default]
    Nothing,
    Conditions,
    All,
}

#[derive(Clone, Copy, Debug, Default)]
struct Judged {
    /// Whether any of its listeners may see the object.
    is_asked: bool,
    /// Whether its selector selects each side.
    selected: [bool; 2],
    verdict: Verdict,
}

/// One state of the object.
#[derive(Debug, Default)]
struct Side {
    object: Option<Object>,
    /// There once its walk has begun.
    text: Option<Json>,
    walk: Walk,
    /// By selector and by condition of the plan, as far as they were asked.
    selected: Vec<Option<bool>>,
    holds: Vec<Option<bool>>,
}

/// The labels of one state, while they are looked at.
struct Selecting<'s> {
    labels: LabelView<'s>,
    answers: &'s mut Vec<Option<bool>>,
}

// === impl Matching ===

impl Matching {
    /// Begins with a change. `is_asked` says, by listener of the plan, whether it may see the object.
    pub(crate) fn begin(&mut self, plan: &Plan, change: &Change, is_asked: impl Fn(usize) -> bool) {
        let (new, old) = match change {
            Change::Added { new, .. } => (new, None),
            Change::Updated { old, new, .. } => (new, Some(old).filter(|old| !old.is_same(new))),
            Change::Deleted { old, .. } => (old, None),
        };
        for (side, object) in self.sides.iter_mut().zip([Some(new), old]) {
            side.begin(plan, object);
        }
        self.judged.clear();
        self.judged.resize(plan.interests.len(), Judged::default());
        for (listener, interest) in plan.listeners.iter().enumerate() {
            let judged = &mut self.judged[*interest as usize];
            judged.is_asked = judged.is_asked || is_asked(listener);
        }
        self.needs = Needs::Nothing;
        self.never_skipped = change.is_never_skipped();
        self.stage = Stage::Selecting(0);
    }

    /// Goes on for about so much work, and takes off what it did; answers whether all is known. Plan and change are those that it began with.
    pub(crate) fn advance(&mut self, plan: &Plan, change: &Change, n_left: &mut usize) -> bool {
        loop {
            match self.stage {
                Stage::Selecting(first) => self.select(plan, change, first, n_left),
                Stage::Walking(side) => self.walk(plan, side, n_left),
                Stage::Judging(first) => self.judge(plan, change, first, n_left),
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

    /// Returns what the change is to a listener of the plan.
    pub(crate) fn verdict(&self, plan: &Plan, listener: usize) -> Verdict {
        self.judged[plan.listeners[listener] as usize].verdict
    }

    fn select(&mut self, plan: &Plan, change: &Change, first: usize, n_left: &mut usize) {
        let Self { judged, sides: [new, old], needs, never_skipped, stage, .. } = self;
        let is_update = matches!(change, Change::Updated { .. }) && old.object.is_some();
        let has_fields_to_compare = is_update && !*never_skipped;
        let (mut new, mut old) = (Selecting::of(new), Selecting::of(old));
        if [&new, &old].into_iter().flatten().any(|side| side.labels.is_long()) {
            // They were looked through, which must not be all that a slice is good for.
            *n_left = (*n_left).max(LEAST);
        }
        for (number, (interest, judged)) in plan.interests.iter().zip(judged).enumerate().skip(first) {
            if *n_left == 0 {
                *stage = Stage::Selecting(number);
                return;
            }
            *n_left = n_left.saturating_sub(INTEREST);
            if !judged.is_asked {
                continue;
            }
            let selects = |side: &mut Option<Selecting<'_>>, n_left: &mut usize| {
                side.as_mut().map(|side| side.selects(plan, interest, n_left))
            };
            let of_new = selects(&mut new, n_left).unwrap_or_default();
            judged.selected = [of_new, selects(&mut old, n_left).unwrap_or(of_new)];
            if has_fields_to_compare && judged.selected == [true, true] && !interest.fields.is_empty() {
                *needs = Needs::All;
            } else if *needs == Needs::Nothing
                && judged.selected != [false, false]
                && !interest.conditions.is_empty()
            {
                *needs = Needs::Conditions;
            }
        }
        *stage = if *needs == Needs::Nothing { Stage::Judging(0) } else { Stage::Walking(0) };
    }

    fn walk(&mut self, plan: &Plan, number: usize, n_left: &mut usize) {
        let set = self.needs.pointers(plan);
        if self.sides[number].walk(set, n_left, &mut self.n_walks) {
            self.stage = if number == 0 { Stage::Walking(1) } else { Stage::Judging(0) };
            if number == 1 && self.needs == Needs::All {
                self.same.clear();
                self.same.resize(set.n_nodes(), None);
            }
        }
    }

    fn judge(&mut self, plan: &Plan, change: &Change, first: usize, n_left: &mut usize) {
        for (number, interest) in plan.interests.iter().enumerate().skip(first) {
            if *n_left == 0 {
                self.stage = Stage::Judging(number);
                return;
            }
            *n_left = n_left.saturating_sub(INTEREST);
            if self.judged[number].is_asked {
                self.judged[number].verdict = self.verdict_of(plan, change, number, interest, n_left);
            }
        }
        self.stage = Stage::Done;
    }

    fn verdict_of(
        &mut self,
        plan: &Plan,
        change: &Change,
        number: usize,
        interest: &Interest,
        n_left: &mut usize,
    ) -> Verdict {
        let selected = self.judged[number].selected;
        let place = usize::from(self.needs == Needs::All);
        let [new, old] = &mut self.sides;
        let mut matches = |side: &mut Side, is_selected: bool| {
            is_selected
                && interest.conditions.iter().all(|condition| side.holds(plan, *condition, place, n_left))
        };
        let of_new = matches(new, selected[0]);
        let of_old = if old.object.is_some() { matches(old, selected[1]) } else { of_new };
        match (change, of_old, of_new) {
            (Change::Added { .. }, _, true) => Verdict::Added,
            (Change::Deleted { .. }, _, true) => Verdict::Deleted,
            (Change::Updated { .. }, false, true) => Verdict::Added,
            (Change::Updated { .. }, true, false) => Verdict::Deleted,
            (Change::Updated { .. }, true, true) => {
                let is_news = self.never_skipped
                    || interest.fields.is_empty()
                    || self.has_changed(plan, interest, n_left);
                if is_news { Verdict::Updated } else { Verdict::Unchanged }
            }
            (_, _, false) => Verdict::Nothing,
        }
    }

    /// Whether an update changed a declared field.
    fn has_changed(&mut self, plan: &Plan, interest: &Interest, n_left: &mut usize) -> bool {
        let Self { sides: [new, old], same, .. } = self;
        let (Some(new_text), Some(old_text)) = (&new.text, &old.text) else {
            // It was replaced by itself.
            return false;
        };
        interest.fields.iter().any(|node| {
            let is_same = same[*node as usize].unwrap_or_else(|| {
                let (new, old) = (new.walk.span(*node).of(new_text), old.walk.span(*node).of(old_text));
                *n_left = n_left.saturating_sub(new.map_or(0, str::len) / COMPARED);
                let is_same = new == old;
                if is_same {
                    // So is everything below.
                    let below = *node as usize..plan.pointers.end(*node) as usize;
                    *n_left = n_left.saturating_sub(below.len() / COMPARED);
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
    fn pointers(self, plan: &Plan) -> &PointerSet {
        match self {
            Self::Nothing | Self::Conditions => &plan.condition_pointers,
            Self::All => &plan.pointers,
        }
    }
}

// === impl Side ===

impl Side {
    fn begin(&mut self, plan: &Plan, object: Option<&Object>) {
        self.object = object.cloned();
        self.text = None;
        let n_asked = if object.is_some() { [plan.selectors.len(), plan.conditions.len()] } else { [0, 0] };
        for (answers, n_asked) in [&mut self.selected, &mut self.holds].into_iter().zip(n_asked) {
            answers.clear();
            answers.resize(n_asked, None);
        }
    }

    /// Lets go of what it looked at.
    fn end(&mut self) {
        self.object = None;
        self.text = None;
    }

    /// Goes on with the walk; answers whether it has ended.
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

    fn holds(&mut self, plan: &Plan, number: u32, place: usize, n_left: &mut usize) -> bool {
        let Self { text, walk, holds, .. } = self;
        *holds[number as usize].get_or_insert_with(|| {
            let Condition { condition, places } = &plan.conditions[number as usize];
            *n_left = n_left.saturating_sub(CONDITION);
            let value = text.as_ref().and_then(|text| walk.span(places[place]).of(text));
            condition.matches_value(value)
        })
    }
}

// === impl Selecting ===

impl<'s> Selecting<'s> {
    fn of(side: &'s mut Side) -> Option<Self> {
        let labels = side.object.as_ref()?.label_set().view();
        Some(Self { labels, answers: &mut side.selected })
    }

    fn selects(&mut self, plan: &Plan, interest: &Interest, n_left: &mut usize) -> bool {
        let Some(number) = interest.selector else { return true };
        let Self { labels, answers } = self;
        *answers[number as usize].get_or_insert_with(|| {
            let selector = &plan.selectors[number as usize];
            *n_left = n_left.saturating_sub(selector.n_requirements() * REQUIREMENT);
            selector.selects_labels(labels)
        })
    }
}
