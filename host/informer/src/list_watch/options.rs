//! The options of lists and watches.

use std::num::NonZeroU32;
use std::time::Duration;

use oarlock_label_selector::LabelSelector;

use crate::object::SharedPointers;

/// The options of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListOptions {
    /// Empty: the newest version, read from etcd. `0`: any version, from the server's watch cache. Else: see
    /// `version_match`. Must be empty if there is a continue token.
    pub resource_version: String,
    /// How the list's version relates to `resource_version`. None: not older. Must be none without a version.
    pub version_match: Option<VersionMatch>,
    /// The most objects per page; none for all in one page.
    pub limit: Option<NonZeroU32>,
    /// The token of the page before.
    pub continue_token: Option<String>,
    /// Only objects that this selects, in addition to the selector of the source. The server selects.
    pub label_selector: LabelSelector,
    /// Only objects that this field selector, in the syntax of the API, selects; empty for all. The server
    /// selects.
    pub field_selector: String,
}

/// How the version of a list relates to the requested one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// The list has exactly this version.
    Exact,
    /// The list has this version or a newer one.
    NotOlderThan,
}

/// The options of a watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchOptions {
    /// The watch sends the changes after this version.
    pub resource_version: String,
    /// The server ends the watch after this long, in whole seconds.
    pub timeout: Duration,
    /// Whether the server may send bookmarks.
    pub allow_bookmarks: bool,
    /// Whether the watch begins with all objects at a version not older than `resource_version`: one `ADDED`
    /// event for each, then the bookmark that ends the initial events (WL-01).
    pub send_initial_events: bool,
    /// As in [`ListOptions`].
    pub label_selector: LabelSelector,
    /// As in [`ListOptions`].
    pub field_selector: String,
    /// The pointers whose values a source may copy while it decodes an object, for the informer. No source
    /// has to.
    pub copied: Option<SharedPointers>,
}

// === impl ListOptions ===

impl ListOptions {
    /// Returns the watch whose initial events are the objects of this list; none if no watch has the same
    /// meaning (WL-11).
    pub fn to_watch_list(&self, timeout: Duration) -> Option<WatchOptions> {
        let Self { resource_version, version_match, limit, continue_token, label_selector, field_selector } =
            self;
        // A watch has no pages. A list at version 0 ignores its limit if the watch cache answers.
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
            copied: None,
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
    fn a_list_converts_to_a_watch_list_if_both_mean_the_same_wl_11() {
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
