//! Compares two objects by their type.

use super::{FieldSet, Path, Step, Treatment, child, items, list_of, map_of, treatment};
use crate::schema::Node;
use serde_json::{Map, Value};

/// The differences between two objects.
#[derive(Debug, Default)]
pub(in super::super) struct Comparison {
    pub added: FieldSet,
    pub modified: FieldSet,
    pub removed: FieldSet,
}

/// Returns the changes from `left` to `right` (`Compare`).
pub(in super::super) fn compare(root: &Node, left: &Value, right: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    comparison.visit(root, Some(left), Some(right), &mut Vec::new());
    comparison
}

// === impl Comparison ===

impl Comparison {
    #[must_use]
    pub(in super::super) fn without(&self, prefixes: &[Path]) -> Self {
        Self {
            added: self.added.without(prefixes),
            modified: self.modified.without(prefixes),
            removed: self.removed.without(prefixes),
        }
    }

    fn visit(&mut self, node: &Node, left: Option<&Value>, right: Option<&Value>, path: &mut Path) {
        let of_left = left.map(|value| treatment(node, value));
        let of_right = right.map(|value| treatment(node, value));
        let is_leaf = match (of_left, of_right) {
            (Some(one), None) | (None, Some(one)) => self.descend(one, node, left, right, path),
            (Some(a), Some(b)) if a == b => self.descend(a, node, left, right, path),
            // The kind of an untyped value changed.
            (Some(a), Some(b)) => {
                self.descend(a, node, left, right, path);
                self.descend(b, node, left, right, path)
            }
            (None, None) => return,
        };
        if !is_leaf {
            match (left, right) {
                (None, Some(_)) => self.added.insert(path),
                (Some(_), None) => self.removed.insert(path),
                _ => {}
            }
        }
    }

    /// Compares the children; returns true if the place was compared as a whole.
    fn descend(
        &mut self,
        treatment: Treatment,
        node: &Node,
        left: Option<&Value>,
        right: Option<&Value>,
        path: &mut Path,
    ) -> bool {
        match treatment {
            Treatment::Whole => {}
            Treatment::List => {
                let lists = (list_of(left).unwrap_or_default(), list_of(right).unwrap_or_default());
                if let (Ok(l), Ok(r)) = (items(node, lists.0), items(node, lists.1))
                    && !(l.is_empty() && r.is_empty())
                {
                    self.visit_items(node, &l, &r, path);
                    return false;
                }
            }
            Treatment::Map => {
                let empty = Map::new();
                let maps = (map_of(left).unwrap_or(&empty), map_of(right).unwrap_or(&empty));
                if !(maps.0.is_empty() && maps.1.is_empty()) {
                    let names = maps.0.keys().chain(maps.1.keys().filter(|key| !maps.0.contains_key(*key)));
                    for name in names {
                        path.push(Step::field(name));
                        self.visit(child(node, name), maps.0.get(name), maps.1.get(name), path);
                        path.pop();
                    }
                    return false;
                }
            }
        }
        match (left, right) {
            (None, _) => self.added.insert(path),
            (_, None) => self.removed.insert(path),
            (Some(l), Some(r)) if l != r => self.modified.insert(path),
            _ => {}
        }
        true
    }

    fn visit_items(
        &mut self,
        node: &Node,
        left: &[(Step, &Value)],
        right: &[(Step, &Value)],
        path: &mut Path,
    ) {
        let with = |list: &[(Step, &Value)], step: &Step| -> usize {
            list.iter().filter(|(s, _)| s == step).count()
        };
        let mut seen: Vec<&Step> = Vec::new();
        for (step, _) in left.iter().chain(right) {
            if seen.contains(&step) {
                continue;
            }
            seen.push(step);
            let find = |list: &[(Step, &'_ Value)]| list.iter().position(|(s, _)| s == step);
            let l = find(left).map(|index| left[index].1);
            let r = find(right).map(|index| right[index].1);
            path.push(step.clone());
            match (with(left, step), with(right, step)) {
                (0 | 1, 0 | 1) => self.visit(node.item(), l, r, path),
                (0 | 1, _) => {
                    if l.is_some() {
                        self.visit(node.item(), l, None, path);
                    }
                    self.added.insert(path);
                }
                (_, 0 | 1) => {
                    if r.is_some() {
                        self.visit(node.item(), None, r, path);
                    }
                    self.removed.insert(path);
                }
                _ => {
                    let all = |list: &[(Step, &Value)]| -> Vec<Value> {
                        list.iter().filter(|(s, _)| s == step).map(|(_, v)| (*v).clone()).collect()
                    };
                    if all(left) != all(right) {
                        self.modified.insert(path);
                    }
                }
            }
            path.pop();
        }
    }
}
