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

fn folded_with(tried: bool, waiting: Vec<Notification>) -> String {
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
    let merged = fold((0..).zip(waiting).map(pending));
    merged.iter().map(|pending| outline(&pending.notification)).collect::<Vec<_>>().join(", ")
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
    let merged = fold([pending(7, add(1, true)), pending(9, update(1, 2)), pending(11, delete(3))]);
    assert_eq!(merged.len(), 1);
    assert_eq!((merged[0].ticket, merged[0].counts_for_sync, merged[0].attempts), (7, true, 2));
}
