//! Each cell of the merge table.

use tokio::time::Instant;

use super::*;
use crate::listener::tests::{object, outline};

fn add(version: u32, is_in_initial_list: bool) -> Notification {
    Notification::Added { object: object("a", version), is_in_initial_list }
}

fn update(old: u32, new: u32) -> Notification {
    Notification::Updated { old: object("a", old), new: object("a", new) }
}

fn delete(version: u32) -> Notification {
    Notification::Deleted { object: object("a", version), final_state_unknown: false }
}

fn folded_for(keys: Option<&NamedKey>, tried: bool, waiting: Vec<Notification>) -> String {
    let pending = |(ticket, notification): (u64, Notification)| Pending {
        counts_for_sync: matches!(notification, Notification::Added { is_in_initial_list: true, .. }),
        is_initial: matches!(notification, Notification::Added { is_in_initial_list: true, .. }),
        notification,
        fields: NotificationFields::default(),
        ticket,
        arrived: Instant::now(),
        attempts: 0,
        tried: tried && ticket == 0,
        is_merged: false,
    };
    let merged = fold((0..).zip(waiting).map(pending), keys);
    merged.iter().map(|pending| outline(&pending.notification)).collect::<Vec<_>>().join(", ")
}

fn folded_with(tried: bool, waiting: Vec<Notification>) -> String {
    folded_for(None, tried, waiting)
}

fn folded(waiting: Vec<Notification>) -> String {
    folded_with(false, waiting)
}

#[test]
fn an_add_and_updates_merge_into_an_add_of_the_newest_state() {
    assert_eq!(folded(vec![add(1, false), update(1, 2), update(2, 3)]), "add a@3");
    assert_eq!(folded(vec![add(1, true), update(1, 2)]), "add a@2 (initial)");
}

#[test]
fn an_add_and_a_delete_cancel_each_other_out() {
    assert_eq!(folded(vec![add(1, false), delete(2)]), "");
    assert_eq!(folded(vec![add(1, false), delete(2), add(3, false)]), "add a@3");
}

#[test]
fn an_initial_or_tried_add_and_a_delete_merge_into_the_delete() {
    assert_eq!(folded(vec![add(1, true), delete(2)]), "delete a@2");
    assert_eq!(folded_with(true, vec![add(1, false), delete(2)]), "delete a@2");
}

#[test]
fn updates_merge_into_one_from_the_first_old_to_the_last_new_state() {
    assert_eq!(folded(vec![update(1, 2), update(2, 3), update(3, 3)]), "update a@1→3");
}

#[test]
fn an_update_and_a_delete_merge_into_the_delete() {
    assert_eq!(folded(vec![update(1, 2), delete(3)]), "delete a@3");
}

#[test]
fn a_delete_and_an_add_stay_separate() {
    assert_eq!(folded(vec![delete(3), add(4, false)]), "delete a@3, add a@4");
    assert_eq!(folded(vec![delete(3), add(4, false), update(4, 5)]), "delete a@3, add a@5");
    assert_eq!(folded(vec![delete(3), add(4, false), delete(5)]), "delete a@3");
    assert_eq!(folded(vec![update(1, 2), delete(3), add(4, false), update(4, 5), delete(6)]), "delete a@3");
}

/// Versions below 10 name one key, those below 20 another, and so on; those from 100 on name none.
fn keys() -> NamedKey {
    NamedKey::new(|object| {
        let version: u32 = object.resource_version().parse().unwrap();
        (version < 100).then(|| (version / 10).to_string())
    })
}

#[test]
fn promise_3_merging_hides_no_key_from_a_consumer_that_collects_keys() {
    let folded = |waiting| folded_for(Some(&keys()), false, waiting);
    assert_eq!(folded(vec![add(1, false), delete(2)]), "delete a@2", "its add was not delivered");
    assert_eq!(folded(vec![update(1, 2), update(2, 3), update(3, 14)]), "update a@1→14");
    assert_eq!(folded(vec![update(1, 11), update(11, 21)]), "update a@1→11, update a@11→21");
    assert_eq!(folded(vec![update(1, 101), update(101, 21)]), "update a@1→21", "the middle names none");
    assert_eq!(folded(vec![update(1, 11), update(11, 1)]), "update a@1→11, update a@11→1");
    assert_eq!(folded(vec![add(1, true), update(1, 11)]), "add a@1 (initial), update a@1→11");
    assert_eq!(folded(vec![update(1, 11), delete(11)]), "update a@1→11, delete a@11");
    assert_eq!(folded(vec![update(1, 2), delete(3)]), "delete a@3");
    assert_eq!(folded(vec![delete(1), add(11, false), update(11, 12)]), "delete a@1, add a@12");
}

#[test]
fn promise_4_few_notifications_of_an_object_stay_apart() {
    let waiting = (0..100).map(|n| update(10 * (n % 9), 10 * ((n + 1) % 9))).collect();
    let n_apart = folded_for(Some(&keys()), false, waiting).matches("update").count();
    assert_eq!(n_apart, MAX_APART);
}

#[test]
fn a_merged_notification_keeps_ticket_attempts_and_sync_of_the_oldest() {
    let pending = |ticket, notification| Pending {
        notification,
        fields: NotificationFields::default(),
        ticket,
        arrived: Instant::now(),
        attempts: 2,
        tried: false,
        counts_for_sync: ticket == 7,
        is_initial: ticket == 7,
        is_merged: false,
    };
    let waiting = [pending(7, add(1, true)), pending(9, update(1, 2)), pending(11, delete(3))];
    let merged = fold(waiting, None);
    assert_eq!(merged.len(), 1);
    assert_eq!((merged[0].ticket, merged[0].counts_for_sync, merged[0].attempts), (7, true, 2));
}
