//! The filter of one listener: selector, conditions and declared fields.

use oarlock_json::{JsonPointer, PointerSet};
use oarlock_label_selector::LabelSelector;

use crate::object::Object;
use crate::selector::FieldCondition;

use super::change::Change;
use super::decision::Decision;
use super::matching::{ChangeCheck, MatchPlan};

/// The filter of one listener, without its namespaces. It never changes.
#[derive(Debug)]
pub(super) struct Filter {
    pub(super) selector: LabelSelector,
    pub(super) conditions: Vec<FieldCondition>,
    /// The pointers of the conditions, in their order.
    condition_pointers: PointerSet,
    /// Updates that change none of these are skipped. If there are none, no update is skipped.
    pub(super) fields: Vec<JsonPointer>,
}

// === impl Filter ===

impl Filter {
    pub(super) fn new(
        selector: LabelSelector,
        conditions: Vec<FieldCondition>,
        fields: Vec<JsonPointer>,
    ) -> Self {
        let condition_pointers = PointerSet::new(conditions.iter().map(FieldCondition::pointer));
        Self { selector, conditions, condition_pointers, fields }
    }

    /// Decides on a change for this filter alone.
    pub(super) fn check(&self, change: &Change) -> Decision {
        let plan = MatchPlan::new([self]);
        let mut check = ChangeCheck::default();
        check.begin(&plan, change, None, |_| true);
        while !check.advance(&plan, change, &mut { usize::MAX }) {}
        check.decision(&plan, 0)
    }

    /// Returns whether every object matches.
    pub(super) fn matches_everything(&self) -> bool {
        self.selector.is_everything() && self.conditions.is_empty()
    }

    /// Returns whether the object matches selector and conditions.
    pub(super) fn matches(&self, object: &Object) -> bool {
        if !self.selector.is_everything() && !object.is_selected_by(&self.selector) {
            return false;
        }
        if self.conditions.is_empty() {
            return true;
        }
        let found = object.find(&self.condition_pointers);
        self.conditions.iter().zip(found.iter()).all(|(condition, value)| condition.matches_value(value))
    }
}
