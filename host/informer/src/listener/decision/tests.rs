//! The clauses EH-…, and the updates that declared fields skip.

use oarlock_label_selector::LabelSelector;
use serde_json::json;

use super::*;
use crate::listener::filter::Filter;
use crate::listener::tests::{at, outline};
use crate::selector::{FieldCondition, FieldTest};
use crate::testing::Draft;

fn updated(old: &Draft, new: &Draft) -> Change {
    Change::Updated { old: at(old, 1), new: at(new, 2), is_resync: false }
}

fn notification_of(filter: &Filter, change: &Change) -> Option<String> {
    filter.check(change).notification(change).map(|notification| outline(&notification))
}

fn with_label(value: &str) -> Draft {
    Draft::new("a").label("app", value)
}

fn selecting(selector: &str) -> Filter {
    Filter::new(selector.parse().unwrap(), vec![], vec![])
}

#[test]
fn an_object_that_begins_to_match_is_an_add_and_one_that_ceases_a_delete_eh_02() {
    let filter = selecting("app=web");
    let (web, db) = (with_label("web"), with_label("db"));
    assert_eq!(notification_of(&filter, &updated(&web, &web)).as_deref(), Some("update a@1→2"));
    assert_eq!(notification_of(&filter, &updated(&db, &web)).as_deref(), Some("add a@2"));
    assert_eq!(notification_of(&filter, &updated(&web, &db)).as_deref(), Some("delete a@1"));
    assert_eq!(notification_of(&filter, &updated(&db, &db)), None);
    let added = Change::Added { new: at(&db, 1), is_in_initial_list: true };
    assert_eq!(notification_of(&filter, &added), None);
}

#[test]
fn a_listener_that_received_an_object_receives_its_delete() {
    let filter = selecting("app=web");
    let (web, db) = (with_label("web"), with_label("db"));
    let deleted = |old: &Draft, last: &Draft| Change::Deleted {
        old: at(old, 1),
        object: at(last, 2),
        final_state_unknown: true,
    };
    assert_eq!(notification_of(&filter, &deleted(&web, &db)).as_deref(), Some("delete a@2 (unknown)"));
    assert_eq!(notification_of(&filter, &deleted(&db, &web)), None);
}

#[test]
fn all_conditions_must_hold() {
    let condition = |pointer: &str, test| FieldCondition::new(pointer.parse().unwrap(), test).unwrap();
    let conditions = vec![
        condition("/status/phase", FieldTest::Equals("\"Running\"".into())),
        condition("/spec/nodeName", FieldTest::Exists),
    ];
    let filter = Filter::new(LabelSelector::everything(), conditions, vec![]);
    let draft = |phase: &str, node: Option<&str>| {
        Draft::new("a").field("status", json!({"phase": phase})).field("spec", json!({"nodeName": node}))
    };
    assert!(filter.matches(&at(&draft("Running", Some("n")), 1)));
    assert!(!filter.matches(&at(&draft("Running", None), 1)));
    assert!(!filter.matches(&at(&draft("Pending", Some("n")), 1)));
    let change = updated(&draft("Pending", Some("n")), &draft("Running", Some("n")));
    assert_eq!(notification_of(&filter, &change).as_deref(), Some("add a@2"));
}

#[test]
fn updates_that_change_no_declared_field_are_skipped() {
    let fields = vec!["/spec/replicas".parse().unwrap(), "/spec/paused".parse().unwrap()];
    let filter = Filter::new(LabelSelector::everything(), vec![], fields);
    let draft = |spec| Draft::new("a").field("spec", spec);
    let before = draft(json!({"replicas": 1, "other": 1}));
    assert_eq!(notification_of(&filter, &updated(&before, &draft(json!({"replicas": 1, "other": 2})))), None);
    let changed = updated(&before, &draft(json!({"replicas": 2, "other": 1})));
    assert_eq!(notification_of(&filter, &changed).as_deref(), Some("update a@1→2"));
    let appeared = updated(&before, &draft(json!({"replicas": 1, "other": 1, "paused": null})));
    assert_eq!(notification_of(&filter, &appeared).as_deref(), Some("update a@1→2"));
}

#[test]
fn a_change_of_uid_or_deletion_timestamp_and_a_resync_are_never_skipped() {
    let fields = vec!["/spec/replicas".parse().unwrap()];
    let filter = Filter::new(LabelSelector::everything(), vec![], fields);
    let before = Draft::new("a");
    assert_eq!(notification_of(&filter, &updated(&before, &before)), None);
    let other = Change::Updated {
        old: at(&before, 1),
        new: before.at(&crate::names::TypeMeta::new("v1", "Pod"), "another uid", "2"),
        is_resync: false,
    };
    assert_eq!(notification_of(&filter, &other).as_deref(), Some("update a@1→2"));
    let dying = Draft::new("a").metadata("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    assert_eq!(notification_of(&filter, &updated(&before, &dying)).as_deref(), Some("update a@1→2"));
    let object = at(&before, 1);
    let resync = Change::Updated { old: object.clone(), new: object, is_resync: true };
    assert_eq!(notification_of(&filter, &resync).as_deref(), Some("update a@1→1"));
}
