//! The users of a resource's informer, and its problems.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_informer::object::Content;
use tokio::time::Instant;

use super::Purpose;
use crate::tasks::Task;

/// The users, the task and the problems of one resource.
#[derive(Default)]
pub(super) struct ResourceState {
    next_id: u64,
    users: BTreeMap<u64, (Purpose, Content)>,
    /// The task that runs the informer; none before the first user.
    pub(super) task: Option<Task>,
    pub(super) problem: Option<Problem>,
    /// Why the budget has no room for the wanted content, if it has none.
    pub(super) over_budget: Option<String>,
    /// When the last user of full objects left.
    pub(super) full_left_at: Option<Instant>,
}

/// A problem, and since when it exists.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    pub(super) since: Instant,
    pub(super) kind: ProblemKind,
    pub(super) message: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ProblemKind {
    /// The API server does not serve the resource.
    Absent {
        /// What the operator can do.
        hint: &'static str,
    },
    /// The host's account may not list or watch it.
    Forbidden,
    /// Requests fail for another reason.
    Unreachable,
}

// === impl ProblemKind ===

impl ProblemKind {
    pub(super) fn is_absent(self) -> bool {
        matches!(self, Self::Absent { .. })
    }
}

// === impl ResourceState ===

impl ResourceState {
    pub(super) fn add_user(&mut self, purpose: Purpose, content: Content) -> u64 {
        self.next_id += 1;
        self.users.insert(self.next_id, (purpose, content));
        self.next_id
    }

    /// Removes a user, and returns whether it was the last.
    pub(super) fn remove_user(&mut self, id: u64) -> bool {
        let left = self.users.remove(&id);
        if left.is_some_and(|(_, content)| content == Content::Full) && self.wanted() == Content::Metadata {
            self.full_left_at = Some(Instant::now());
        }
        self.users.is_empty()
    }

    /// Returns the users.
    pub(super) fn users(&self) -> BTreeSet<Purpose> {
        self.users.values().map(|(purpose, _)| purpose.clone()).collect()
    }

    /// Returns the largest content that a user wants.
    pub(super) fn wanted(&self) -> Content {
        self.users.values().map(|(_, content)| *content).max().unwrap_or(Content::Metadata)
    }

    pub(super) fn n_users(&self) -> usize {
        self.users.len()
    }

    pub(super) fn is_needed_by_host(&self) -> bool {
        self.users.values().any(|(purpose, _)| *purpose == Purpose::Host)
    }

    /// Returns the plugins among the users, each once.
    pub(super) fn wanted_by(&self) -> Vec<String> {
        let plugins: BTreeSet<_> = self
            .users
            .values()
            .filter_map(|(purpose, _)| match purpose {
                Purpose::Host => None,
                Purpose::Plugin(name) => Some(name.to_string()),
            })
            .collect();
        plugins.into_iter().collect()
    }
}
