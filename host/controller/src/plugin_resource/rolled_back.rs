//! The versions that were rolled back, in the statuses of objects.
//!
//! The host that leads writes them there. The others read them: they try these versions as little as the one
//! that rolled them back, also after they have taken over the lead.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff;
use serde::Deserialize;

use super::conditions::shortened;
use super::types::RolledBackVersion;
use crate::state_folder::Entry;

/// The most versions that a status names.
const MAX_VERSIONS: usize = 8;

/// How a status writes a digest: as registries do.
const ALGORITHM: &str = "sha256:";

#[derive(Deserialize)]
struct Read {
    #[serde(default)]
    status: ReadStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadStatus {
    #[serde(default)]
    rolled_back: Option<Vec<RolledBackVersion>>,
}

/// Returns the versions that the status of an object names; none if no host has written which.
pub(super) fn read(json: &str) -> Option<Vec<Entry>> {
    let entry = |RolledBackVersion { id, version, digest, reason, time }: RolledBackVersion| {
        let digest = digest.strip_prefix(ALGORITHM).unwrap_or(&digest).to_owned();
        Entry { id, version, digest, reason, since: time.0.to_string() }
    };
    let versions = serde_json::from_str::<Read>(json).ok()?.status.rolled_back?;
    Some(versions.into_iter().map(entry).collect())
}

/// Returns what the status says. Nothing, if the host has read no list of the plugin yet, or if it is empty
/// and always was.
pub(super) fn written(
    entries: Option<&[Entry]>,
    before: Option<&Vec<RolledBackVersion>>,
) -> Option<Vec<RolledBackVersion>> {
    let Some(entries) = entries.filter(|it| !it.is_empty() || before.is_some()) else {
        return before.cloned();
    };
    let version = |entry: &Entry| {
        let Entry { id, version, digest, reason, since } = entry;
        // A status has times in seconds.
        let time = since.parse::<jiff::Timestamp>().unwrap_or_default().as_second();
        RolledBackVersion {
            id: id.clone(),
            version: shortened(version),
            digest: format!("{ALGORITHM}{digest}"),
            reason: shortened(reason),
            time: Time(jiff::Timestamp::from_second(time).unwrap_or_default()),
        }
    };
    let surplus = entries.len().saturating_sub(MAX_VERSIONS);
    Some(entries[surplus..].iter().map(version).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(id: &str) -> Entry {
        Entry {
            id: id.to_owned(),
            version: "1.2.0".to_owned(),
            digest: "ab".repeat(32),
            reason: "it lost 3 instances within 60 s".to_owned(),
            since: "2026-01-02T03:04:05.678Z".to_owned(),
        }
    }

    #[test]
    fn another_host_reads_what_the_leader_has_written() {
        let versions = written(Some(&[entry("one"), entry("two")]), None).unwrap();
        assert_eq!(versions[0].digest, format!("sha256:{}", "ab".repeat(32)));
        let read = read(&json!({"status": {"rolledBack": versions}}).to_string()).unwrap();
        let in_seconds = |id| Entry { since: "2026-01-02T03:04:05Z".to_owned(), ..entry(id) };
        assert_eq!(read, ["one", "two"].map(in_seconds));
        assert_eq!(written(Some(&read), Some(&versions)), Some(versions));
    }

    #[test]
    fn a_release_leaves_an_empty_list_and_a_plugin_without_roll_backs_has_none() {
        assert_eq!(written(None, None), None);
        assert_eq!(written(Some(&[]), None), None);
        let before = written(Some(&[entry("one")]), None);
        assert_eq!(written(None, before.as_ref()), before, "the host has not read its list yet");
        let released = written(Some(&[]), before.as_ref());
        assert_eq!(released, Some(Vec::new()));
        assert_eq!(read(&json!({"status": {"rolledBack": released}}).to_string()), Some(Vec::new()));
        assert_eq!(read(r#"{"status": {"phase": "Serving"}}"#), None);
        assert_eq!(read("{}"), None);
    }

    #[test]
    fn a_status_names_the_newest_versions() {
        let entries: Vec<_> = (0..20).map(|n| entry(&n.to_string())).collect();
        let ids: Vec<_> = written(Some(&entries), None).unwrap().into_iter().map(|it| it.id).collect();
        assert_eq!(ids, ["12", "13", "14", "15", "16", "17", "18", "19"]);
    }
}
