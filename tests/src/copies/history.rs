//! Compares the recorded versions of copies with those of their sources: the last version of each source
//! reached its copies, and no copy went back to an older version.
//!
//! Each change of a source must give it data that it did not have before: the data identify the version.

use std::fmt;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::recorder::{History, Version};

/// What a comparison without a violation saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// How often sources were created, changed and deleted.
    pub n_changes: usize,
    /// The longest time from a change of a source until its copies had it, or a later one.
    pub longest: Duration,
}

/// One difference between a copy and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// `namespace/name` of the copy.
    pub copy: String,
    /// The difference.
    pub kind: ViolationKind,
}

/// How a copy differs from its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViolationKind {
    /// It has no source.
    NoSource,
    /// A version of it was never one of the source.
    Unknown,
    /// An older version of the source came after a newer one.
    WentBack,
    /// The last version of the source did not reach it.
    Behind,
}

/// Compares the copies in a history of all namespaces with their sources.
///
/// # Errors
///
/// Every violation.
pub fn check(history: &History) -> Result<Checked, Vec<Violation>> {
    let (mut checked, mut violations) = (Checked::default(), Vec::new());
    for (key, versions) in history {
        if let Some(targets) = versions.iter().find_map(targets) {
            checked.n_changes += versions.len();
            let name = key.rsplit('/').next().unwrap_or_default();
            for copy in targets.split(',').map(|namespace| format!("{namespace}/{name}")) {
                let copies = history.get(&copy).map(Vec::as_slice).unwrap_or_default();
                match follow(versions, copies) {
                    Ok(longest) => checked.longest = checked.longest.max(longest),
                    Err(kind) => violations.push(Violation { copy, kind }),
                }
            }
        }
        let mut sources = versions.iter().filter_map(source);
        if sources
            .any(|source| !history.get(source).is_some_and(|of| of.iter().any(|it| targets(it).is_some())))
        {
            violations.push(Violation { copy: key.clone(), kind: ViolationKind::NoSource });
        }
    }
    if violations.is_empty() { Ok(checked) } else { Err(violations) }
}

/// Returns the namespaces of the copies, if the object is a source.
fn targets(version: &Version) -> Option<&str> {
    version.object["metadata"]["annotations"]["oarlock.dev/mirror-to"].as_str()
}

/// Returns `namespace/name` of the source, if the object is a copy.
fn source(version: &Version) -> Option<&str> {
    version.object["metadata"]["annotations"]["oarlock.dev/mirrored-from"].as_str()
}

/// Follows the versions of one copy. Returns the longest time until a version of the source reached it.
fn follow(sources: &[Version], copies: &[Version]) -> Result<Duration, ViolationKind> {
    // Which version of the source the copy reached, and when.
    let mut reached: Vec<(usize, Instant)> = Vec::new();
    for copy in copies {
        let is_it = |of: &Version| of.seen_at <= copy.seen_at && data(of) == data(copy);
        let index = sources.iter().rposition(is_it).ok_or(ViolationKind::Unknown)?;
        if reached.last().is_some_and(|(newest, _)| index < *newest) {
            return Err(ViolationKind::WentBack);
        }
        reached.push((index, copy.seen_at));
    }
    let end = |versions: &[Version]| versions.last().and_then(data).cloned();
    if end(sources) != end(copies) {
        return Err(ViolationKind::Behind);
    }
    // A source that was deleted before it was copied has no copy to wait for.
    let delays = sources.iter().enumerate().filter_map(|(n, source)| {
        let (_, seen_at) = reached.iter().find(|(index, _)| *index >= n)?;
        Some(seen_at.saturating_duration_since(source.seen_at))
    });
    Ok(delays.max().unwrap_or_default())
}

/// Returns the data, if the object exists.
fn data(version: &Version) -> Option<&Value> {
    (!version.deleted).then(|| &version.object["data"])
}

// === impl Violation ===

impl Violation {
    /// Returns whether a write that is still under way may resolve it.
    #[must_use]
    pub fn may_resolve(&self) -> bool {
        self.kind == ViolationKind::Behind
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.kind {
            ViolationKind::NoSource => "has no source",
            ViolationKind::Unknown => "had a version that its source did not have then",
            ViolationKind::WentBack => "went back to an older version of its source",
            ViolationKind::Behind => "did not get the last version of its source",
        };
        write!(f, "{} {how}", self.copy)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DELETED: &str = "";

    /// The versions of the source and of its copy, each with the time in seconds and the data.
    fn history(sources: &[(u64, &str)], copies: &[(u64, &str)]) -> History {
        let begun_at = Instant::now();
        let versions = |of: &[(u64, &str)], annotation: &str, value: &str| -> Vec<Version> {
            let version = |(at, text): &(u64, &str)| {
                let object =
                    json!({"metadata": {"annotations": {annotation: value}}, "data": {"value": text}});
                let seen_at = begun_at + Duration::from_secs(*at);
                Version { deleted: *text == DELETED, seen_at, object: object.into() }
            };
            of.iter().map(version).collect()
        };
        let mut history = History::new();
        history.insert("default/a".to_owned(), versions(sources, "oarlock.dev/mirror-to", "team-a"));
        history.insert("team-a/a".to_owned(), versions(copies, "oarlock.dev/mirrored-from", "default/a"));
        history.retain(|_, versions| !versions.is_empty());
        history
    }

    fn kinds(history: &History) -> Vec<ViolationKind> {
        check(history).err().unwrap_or_default().into_iter().map(|violation| violation.kind).collect()
    }

    #[test]
    fn the_longest_delay_is_that_of_a_create_an_update_or_a_delete() {
        let sources = [(0, "1"), (10, "2"), (20, DELETED)];
        for (copies, longest) in [
            ([(3, "1"), (11, "2"), (21, DELETED)], 3),
            ([(1, "1"), (14, "2"), (21, DELETED)], 4),
            ([(1, "1"), (11, "2"), (25, DELETED)], 5),
        ] {
            let checked = check(&history(&sources, &copies));
            assert_eq!(checked, Ok(Checked { n_changes: 3, longest: Duration::from_secs(longest) }));
        }
    }

    #[test]
    fn a_later_version_counts_as_an_earlier_one() {
        let checked = check(&history(&[(0, "1"), (1, "2"), (2, "3")], &[(4, "3")]));
        assert_eq!(checked, Ok(Checked { n_changes: 3, longest: Duration::from_secs(4) }));
        let never_copied = history(&[(0, "1"), (1, DELETED)], &[]);
        assert_eq!(check(&never_copied), Ok(Checked { n_changes: 2, longest: Duration::ZERO }));
    }

    #[test]
    fn a_copy_that_is_behind_may_still_get_there() {
        let (changed, deleted) = ([(0, "1"), (3, "2")], [(0, "1"), (3, DELETED)]);
        let early = (1, "1");
        for history in [history(&changed, &[]), history(&changed, &[early]), history(&deleted, &[early])] {
            let violations = check(&history).unwrap_err();
            assert!(violations.iter().all(Violation::may_resolve), "{violations:?}");
        }
    }

    #[test]
    fn a_copy_does_not_go_back() {
        let back = history(&[(0, "1"), (1, "2")], &[(2, "1"), (3, "2"), (4, "1"), (5, "2")]);
        assert_eq!(kinds(&back), [ViolationKind::WentBack]);
    }

    #[test]
    fn a_copy_has_only_what_its_source_had_before() {
        let (unknown, early) =
            (history(&[(0, "1")], &[(1, "7"), (2, "1")]), history(&[(3, "1")], &[(1, "1")]));
        let deleted = history(&[(0, "1")], &[(1, "1"), (2, DELETED), (3, "1")]);
        for history in [unknown, early, deleted] {
            assert_eq!(kinds(&history), [ViolationKind::Unknown]);
        }
        assert_eq!(kinds(&history(&[], &[(1, "1")])), [ViolationKind::NoSource]);
    }
}
