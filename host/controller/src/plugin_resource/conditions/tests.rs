use std::sync::Arc;

use async_trait::async_trait;
use oarlock_component_source::{Config, Fetcher, FileSource, Policy, ReadError, ReadReferenced, Source};
use oarlock_plugin::component::Digest;

use super::*;
use crate::report::Timestamp;
use crate::status::{BacklogStats, RecordedError, SubscriptionStatus};

/// The least that looks like a component.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

struct NoObjects;

#[async_trait]
impl ReadReferenced for NoObjects {
    async fn config_map_key(&self, _name: &str, _key: &str) -> Result<Vec<u8>, ReadError> {
        Err(ReadError::NotFound)
    }

    async fn secret_key(&self, _name: &str, _key: &str) -> Result<Vec<u8>, ReadError> {
        Err(ReadError::NotFound)
    }

    async fn pull_secret(&self, _name: &str) -> Result<Vec<u8>, ReadError> {
        Err(ReadError::NotFound)
    }
}

fn problem_at(stage: Stage, reason: &'static str) -> Result<Resolved, Problem> {
    Err(Problem { stage, reason, message: format!("{reason}!"), is_unknown: false })
}

/// Returns a spec that was resolved, to a component of a cache that is gone.
pub(crate) async fn resolved() -> Result<Resolved, Problem> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.wasm"), COMPONENT).unwrap();
    let cache = dir.path().join("cache");
    let policy = Policy::default();
    let config = Config { cache, cache_bytes: 1 << 20, files: Some(dir.path().to_owned()), policy };
    let source = Source { file: Some(FileSource { path: "a.wasm".to_owned() }), ..Source::default() };
    let component = Fetcher::new(config).unwrap().fetch(&source, &NoObjects).await.unwrap().component;
    let text = "name: a\ncomponent: a.wasm\nserviceAccount: {namespace: a, name: a}\n";
    let file = crate::config::PluginFile::parse(std::path::Path::new("a.yaml"), text).unwrap();
    Ok(Resolved {
        file,
        component,
        resolved: None,
        verified: "the digest is as stated".to_owned(),
        stale: None,
    })
}

/// Returns the conditions of the newest spec, which the host has accepted or refused.
fn find(resolution: &Result<Resolved, Problem>, status: Option<&PluginStatus>) -> Vec<Finding> {
    super::find(resolution, status, false)
}

fn generation(number: u64, state: GenerationState) -> GenerationView {
    GenerationView {
        number,
        version: Some("1.0.0".to_owned()),
        digest: Some(Digest::of(COMPONENT).to_string()),
        state,
        reason: format!("generation {number} is {}", state.name()),
        since: Timestamp::now(),
        on_probation: false,
        passed_probation: true,
        instances_lost: 0,
    }
}

fn loading() -> PluginStatus {
    PluginStatus::loading(Arc::from("a"), "f".to_owned(), "c".to_owned(), "s".to_owned())
}

fn serving(generations: Vec<GenerationView>) -> PluginStatus {
    PluginStatus { phase: Phase::Serving, generation: 1, generations, ..loading() }
}

/// Returns the conditions as one line each: type, status and reason.
fn lines(resolution: &Result<Resolved, Problem>, status: Option<&PluginStatus>) -> String {
    let line = |it: Finding| format!("{}={} {}", it.kind, it.status, it.reason);
    find(resolution, status).into_iter().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_plugin_that_serves_is_ready_and_not_degraded() {
    let status = serving(vec![generation(1, GenerationState::Serving)]);
    insta::assert_snapshot!(lines(&resolved().await, Some(&status)), @r"
    Authorized=True NamespaceOptedIn
    Fetched=True Fetched
    Verified=True Verified
    Compiled=True Compiled
    Ready=True Serving
    Degraded=False AsExpected
    ");
}

#[tokio::test]
async fn a_plugin_whose_tag_names_something_that_is_refused_is_degraded() {
    let status = serving(vec![generation(1, GenerationState::Serving)]);
    let stale = |stage, reason, is_unknown| Problem { stage, reason, message: "why".to_owned(), is_unknown };
    let with = async |problem| {
        let resolved = resolved().await.map(|it| Resolved { stale: Some(problem), ..it });
        lines(&resolved, Some(&status))
    };
    insta::assert_snapshot!(with(stale(Stage::Verified, "NotSigned", false)).await, @r"
    Authorized=True NamespaceOptedIn
    Fetched=True FetchedBefore
    Verified=True Verified
    Compiled=True Compiled
    Ready=True Serving
    Degraded=True NotSigned
    ");
    // The registry is down.
    insta::assert_snapshot!(with(stale(Stage::Fetched, "Unavailable", true)).await, @r"
    Authorized=True NamespaceOptedIn
    Fetched=True SourceUnavailable
    Verified=True Verified
    Compiled=True Compiled
    Ready=True Serving
    Degraded=False AsExpected
    ");
}

#[test]
fn a_namespace_that_has_not_opted_in_is_the_reason_of_all() {
    insta::assert_snapshot!(lines(&problem_at(Stage::Authorized, "NamespaceNotOptedIn"), None), @r"
    Authorized=False NamespaceNotOptedIn
    Fetched=Unknown NotAuthorized
    Verified=Unknown NotAuthorized
    Compiled=Unknown NotAuthorized
    Ready=False NamespaceNotOptedIn
    Degraded=True NamespaceNotOptedIn
    ");
}

#[test]
fn an_older_version_serves_while_the_new_one_cannot_be_verified() {
    let status = serving(vec![generation(1, GenerationState::Serving)]);
    insta::assert_snapshot!(lines(&problem_at(Stage::Verified, "DigestDiffers"), Some(&status)), @r"
    Authorized=True NamespaceOptedIn
    Fetched=True Fetched
    Verified=False DigestDiffers
    Compiled=Unknown NotVerified
    Ready=True Serving
    Degraded=True DigestDiffers
    ");
}

#[test]
fn a_spec_that_cannot_be_read_says_nothing_about_what_follows() {
    insta::assert_snapshot!(lines(&problem_at(Stage::Read, "InvalidName"), None), @r"
    Authorized=Unknown InvalidName
    Fetched=Unknown InvalidName
    Verified=Unknown InvalidName
    Compiled=Unknown InvalidName
    Ready=False InvalidName
    Degraded=True InvalidName
    ");
}

#[test]
fn a_configuration_that_cannot_be_used_leaves_the_component_verified_and_not_compiled() {
    insta::assert_snapshot!(lines(&problem_at(Stage::Ready, "ConfigNotFound"), None), @r"
    Authorized=True NamespaceOptedIn
    Fetched=True Fetched
    Verified=True Verified
    Compiled=Unknown ConfigNotFound
    Ready=False ConfigNotFound
    Degraded=True ConfigNotFound
    ");
}

#[test]
fn whether_a_plugin_is_degraded_is_unknown_while_the_registry_of_its_new_source_is_down() {
    let down = problem_at(Stage::Fetched, "Unavailable").map_err(|it| Problem { is_unknown: true, ..it });
    insta::assert_snapshot!(lines(&down, None), @r"
    Authorized=True NamespaceOptedIn
    Fetched=Unknown Unavailable
    Verified=Unknown NotFetched
    Compiled=Unknown NotFetched
    Ready=False Unavailable
    Degraded=Unknown Unavailable
    ");
    let status = serving(vec![generation(1, GenerationState::Serving)]);
    let crashing = PluginStatus { phase: Phase::Restarting, ..status };
    assert_eq!(find(&down, Some(&crashing))[5].reason, "CrashLoop");
}

#[tokio::test]
async fn a_component_that_does_not_compile_is_not_compiled_and_refused() {
    let refused = RecordedError { time: Timestamp::now(), message: "no component".to_owned() };
    let status = PluginStatus { phase: Phase::Refused, refused: Some(refused), ..loading() };
    insta::assert_snapshot!(lines(&resolved().await, Some(&status)), @r"
    Authorized=True NamespaceOptedIn
    Fetched=True Fetched
    Verified=True Verified
    Compiled=False CompilationFailed
    Ready=False Refused
    Degraded=True NewVersionRefused
    ");
}

#[tokio::test]
async fn a_version_without_rights_is_not_authorized() {
    let status = PluginStatus {
        generations: vec![generation(1, GenerationState::Forbidden)],
        waits_for: vec!["the right to list pods".to_owned()],
        ..loading()
    };
    let found = find(&resolved().await, Some(&status));
    assert_eq!((found[0].status, &*found[0].message), (FALSE, "the right to list pods"));
    assert_eq!((found[4].status, &*found[4].message), (FALSE, "it waits for the right to list pods"));
    assert_eq!((found[5].status, &*found[5].reason), (TRUE, "RightsMissing"));
}

#[tokio::test]
async fn a_version_that_serves_without_one_of_its_rights_is_degraded() {
    let forbidden = SubscriptionStatus {
        name: "pods".to_owned(),
        resource: "v1/pods".to_owned(),
        namespaces: Some(Vec::new()),
        forbidden: Some("no right to watch pods".to_owned()),
        paused: None,
        synced: true,
        backlog: BacklogStats::default(),
    };
    let served = serving(vec![generation(1, GenerationState::Serving)]);
    let paused =
        SubscriptionStatus { forbidden: None, paused: Some("no answer".to_owned()), ..forbidden.clone() };
    let status = PluginStatus { subscriptions: vec![paused.clone(), forbidden], ..served };
    let found = find(&resolved().await, Some(&status));
    for (index, expected) in [(0, FALSE), (5, TRUE)] {
        assert_eq!((found[index].status, &*found[index].reason), (expected, "SubscriptionForbidden"));
        assert_eq!(found[index].message, "no right to watch pods");
    }

    // A question without an answer is no missing right.
    let found = find(&resolved().await, Some(&PluginStatus { subscriptions: vec![paused], ..status }));
    assert_eq!((found[0].status, &*found[0].reason), (UNKNOWN, "ReviewFailed"));
    assert_eq!(found[0].message, "no answer");
    assert_eq!((found[5].status, &*found[5].reason), (FALSE, "AsExpected"));
}

#[tokio::test]
async fn a_version_that_was_rolled_back_is_degraded_until_a_newer_one_serves() {
    use GenerationState::{Quarantined, Serving};
    let refused = RecordedError { time: Timestamp::now(), message: "it was rolled back".to_owned() };
    let back = PluginStatus {
        generation: 3,
        refused: Some(refused),
        ..serving(vec![
            generation(1, GenerationState::Gone),
            generation(2, Quarantined),
            generation(3, Serving),
        ])
    };
    assert_eq!(find(&resolved().await, Some(&back))[5].reason, "RolledBack");
    let next = PluginStatus {
        generation: 5,
        refused: None,
        ..serving(vec![generation(4, Quarantined), generation(5, Serving)])
    };
    assert_eq!(find(&resolved().await, Some(&next))[5].reason, "AsExpected");
}

#[tokio::test]
async fn a_version_that_was_refused_after_a_roll_back_is_not_said_to_be_rolled_back() {
    use GenerationState::{Failed, Quarantined, Serving};
    let refused = RecordedError { time: Timestamp::now(), message: "no component".to_owned() };
    let generations = vec![generation(1, Quarantined), generation(2, Serving), generation(3, Failed)];
    let status = PluginStatus { generation: 2, refused: Some(refused), ..serving(generations) };
    let degraded = find(&resolved().await, Some(&status)).remove(5);
    assert_eq!((&*degraded.reason, &*degraded.message), ("NewVersionRefused", "no component"));
}

#[tokio::test]
async fn code_that_is_being_compiled_is_not_said_to_be_that_of_a_version_before() {
    let refused = RecordedError { time: Timestamp::now(), message: "the one before".to_owned() };
    let another = GenerationView { digest: Some("ab".repeat(32)), ..generation(1, GenerationState::Serving) };
    let status = PluginStatus { refused: Some(refused), ..serving(vec![another]) };
    let resolved = resolved().await;
    let find = |in_progress| super::find(&resolved, Some(&status), in_progress).remove(3);
    let before = dated(vec![find(false)], &[], Some(1), false, jiff::Timestamp::UNIX_EPOCH);
    assert_eq!((&*before[0].reason, before[0].observed_generation), ("CompilationFailed", Some(1)));
    let now = dated(vec![find(true)], &before, Some(2), true, jiff::Timestamp::UNIX_EPOCH);
    assert_eq!((&*now[0].reason, now[0].observed_generation), ("Compiling", Some(2)));
}

#[test]
fn a_condition_keeps_its_time_until_its_status_changes() {
    let at = |second| jiff::Timestamp::from_second(second).unwrap();
    let first = dated(vec![finding("Ready", FALSE, "Loading", "")], &[], Some(1), false, at(1));
    let same = dated(vec![finding("Ready", FALSE, "Refused", "no")], &first, Some(2), false, at(2));
    assert_eq!((same[0].last_transition_time.0, &*same[0].reason), (at(1), "Refused"));
    assert_eq!(same[0].observed_generation, Some(2));
    let other = dated(vec![finding("Ready", TRUE, "Serving", "")], &same, Some(2), false, at(3));
    assert_eq!(other[0].last_transition_time.0, at(3));
}

#[test]
fn conditions_about_the_version_before_keep_its_generation_while_the_newest_spec_is_in_progress() {
    let generations = |conditions: &[Condition]| -> Vec<_> {
        conditions.iter().map(|it| (it.type_.clone(), it.observed_generation)).collect()
    };
    let findings = || vec![finding("Fetched", TRUE, "Fetched", ""), finding("Ready", TRUE, "Serving", "")];
    let now = jiff::Timestamp::UNIX_EPOCH;
    let of = |kind: &str, generation| (kind.to_owned(), generation);
    let new = dated(findings(), &[], Some(1), true, now);
    assert_eq!(generations(&new), [of("Fetched", Some(1)), of("Ready", None)]);
    let first = dated(findings(), &new, Some(1), false, now);
    assert_eq!(generations(&first), [of("Fetched", Some(1)), of("Ready", Some(1))]);
    let changed = dated(findings(), &first, Some(2), true, now);
    assert_eq!(generations(&changed), [of("Fetched", Some(2)), of("Ready", Some(1))]);
}

#[test]
fn a_long_message_is_shortened_at_a_character() {
    assert_eq!(shortened("short"), "short");
    let long = "ä".repeat(5000);
    assert_eq!(shortened(&long).chars().count(), LONGEST_MESSAGE);
    assert!(shortened(&long).ends_with("ä…"));
    assert_eq!(shortened(&"x".repeat(LONGEST_MESSAGE)).len(), LONGEST_MESSAGE);
}
