//! What can be asked for in a list and in a watch.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::selector::LabelSelector;

/// What to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Empty: the newest there is, read from etcd. `0`: whatever the server has at hand. Else: see `version_match`.
    /// Must be empty together with a continue token.
    pub resource_version: String,
    /// How the answer's version stands to `resource_version`. None: not older. Must be none without a version.
    pub version_match: Option<VersionMatch>,
    /// The most objects that one page may hold; none for all of them.
    pub limit: Option<NonZeroU32>,
    /// What the page before gave, to get the next.
    pub continue_token: Option<String>,
    /// Only what this selects, chosen by the server, beside what the source itself is restricted to.
    pub label_selector: LabelSelector,
    /// Only what this field selector selects, in the API's syntax; empty for all. Chosen by the server as well.
    pub field_selector: String,
}

/// How the version of an answer stands to the one that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// It is that one.
    Exact,
    /// It is that one or a newer one.
    NotOlderThan,
}

/// What to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// Changes after this version are sent.
    pub resource_version: String,
    /// The server ends the watch after this long, in whole seconds.
    pub timeout: Duration,
    /// Whether the server may send bookmarks.
    pub allow_bookmarks: bool,
    /// Whether the watch begins with what there is, at a version not older than `resource_version`: each object as if it
    /// had just been added, then a bookmark that says that this was all (WL-01).
    pub send_initial_events: bool,
    /// As in [`ListOptions`].
    pub label_selector: LabelSelector,
    /// As in [`ListOptions`].
    pub field_selector: String,
}

// === impl ListOptions ===

impl ListOptions {
    /// Returns the watch that begins with what this list would answer, for those who would rather have a stream; none where
    /// no watch can say the same (WL-11).
    pub fn to_watch_list(&self, timeout: Duration) -> Option<WatchOptions> {
        let Self { resource_version, version_match, limit, continue_token, label_selector, field_selector } =
            self;
        // A list at version 0 ignores its limit where the watch cache answers, and a watch has no pages.
        let is_whole = continue_token.is_none() && (limit.is_none() || resource_version == "0");
        let is_match_possible = match version_match {
            None => true,
            Some(VersionMatch::NotOlderThan) => !resource_version.is_empty(),
            Some(VersionMatch::Exact) => false,
        };
        (is_whole && is_match_possible).then(|| WatchOptions {
            resource_version: resource_version.clone(),
            timeout,
            allow_bookmarks: true,
            send_initial_events: true,
            label_selector: label_selector.clone(),
            field_selector: field_selector.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(resource_version: &str) -> ListOptions {
        ListOptions { resource_version: resource_version.into(), ..ListOptions::default() }
    }

    #[test]
    fn a_list_becomes_a_stream_where_that_says_the_same_wl_11() {
        let timeout = Duration::from_secs(300);
        let limit = NonZeroU32::new(500);
        let able = [
            at(""),
            at("0"),
            at("7"),
            ListOptions { limit, ..at("0") },
            ListOptions { version_match: Some(VersionMatch::NotOlderThan), ..at("7") },
        ];
        for options in able {
            let expected = WatchOptions {
                resource_version: options.resource_version.clone(),
                timeout,
                allow_bookmarks: true,
                send_initial_events: true,
                ..WatchOptions::default()
            };
            assert_eq!(options.to_watch_list(timeout), Some(expected), "{options:?}");
        }
        let unable = [
            ListOptions { limit, ..at("") },
            ListOptions { limit, ..at("7") },
            ListOptions { continue_token: Some("c".into()), ..at("") },
            ListOptions { version_match: Some(VersionMatch::Exact), ..at("7") },
            ListOptions { version_match: Some(VersionMatch::NotOlderThan), ..at("") },
        ];
        for options in unable {
            assert_eq!(options.to_watch_list(timeout), None, "{options:?}");
        }
    }
}
