//! Merges pending notifications of one object into one that spans them.
//!
//! | pending | + update | + delete | + add |
//! |---|---|---|---|
//! | add | add(newest) | nothing; *delete* if the add was initial or was tried | – |
//! | update(old₁) | update(old₁ → newest) | delete(last) | – |
//! | delete | – | – | delete, then add |
//! | delete, add | delete, add(newest) | delete | – |
//!
//! An update from one uid to another stands for the delete of the old object, which was missed, and the add
//! of the new one. It merges with the delete of the new object as these two would, so that no consumer
//! receives the delete of an object that it does not know. If it was tried, both stay: the update and the
//! delete behind it.
//!
//! An add that was tried and failed may have had effects, so its delete is delivered. The dashes cannot occur
//! while the chain has no gaps; they are merged so that the object ends in its newest state.

use super::backlog::Pending;
use super::notification::Notification;
use super::values::NotificationFields;
use crate::object::Object;

/// Appends `next` to `merged`, which holds at most two notifications of an object, and merges as the table
/// says. Afterwards `merged` is empty, or holds one notification, or a delete and an add; the delete may
/// follow an update from one uid to another.
pub(super) fn append(merged: &mut Vec<Pending>, next: Pending) {
    let Some(mut last) = merged.pop() else {
        merged.push(next);
        return;
    };
    match (&last.notification, &next.notification) {
        (Notification::Added { .. }, Notification::Updated { old, new })
            if last.tried && !old.has_uid_of(new) =>
        {
            let [deleted, added] = split(&next, old, new);
            merged.push(last);
            append(merged, deleted);
            append(merged, added);
            return;
        }
        (Notification::Updated { old, new }, Notification::Deleted { .. }) if !old.has_uid_of(new) => {
            if last.tried {
                merged.extend([last, next]);
            } else {
                merged.extend(split(&last, old, new));
                append(merged, next);
            }
            return;
        }
        _ => {}
    }
    let mut next = next;
    let [first_fields, next_fields] = [&mut last.fields, &mut next.fields].map(std::mem::take);
    let is_known =
        last.tried || matches!(last.notification, Notification::Added { is_in_initial_list: true, .. });
    let mut fields = NotificationFields { old: None, new: next_fields.new };
    let notification = match (last.notification, next.notification) {
        (Notification::Added { is_in_initial_list, .. }, Notification::Updated { new: object, .. })
        | (Notification::Added { is_in_initial_list, .. }, Notification::Added { object, .. }) => {
            Notification::Added { object, is_in_initial_list }
        }
        (Notification::Added { .. }, deleted @ Notification::Deleted { .. }) => {
            if !is_known {
                return;
            }
            fields.old = next_fields.old;
            deleted
        }
        (Notification::Updated { old, .. }, Notification::Updated { new, .. })
        | (Notification::Updated { old, .. }, Notification::Added { object: new, .. }) => {
            fields.old = first_fields.old;
            Notification::Updated { old, new }
        }
        (Notification::Updated { .. }, deleted @ Notification::Deleted { .. })
        | (Notification::Deleted { .. }, deleted @ Notification::Deleted { .. }) => {
            fields.old = next_fields.old;
            deleted
        }
        (deleted @ Notification::Deleted { .. }, added @ Notification::Added { .. }) => {
            merged.push(Pending { notification: deleted, fields: first_fields, ..last });
            merged.push(Pending { notification: added, fields, ..next });
            return;
        }
        (deleted @ Notification::Deleted { .. }, Notification::Updated { new: object, .. }) => {
            let added = Notification::Added { object, is_in_initial_list: false };
            merged.push(Pending { notification: deleted, fields: first_fields, ..last });
            merged.push(Pending { notification: added, fields, is_merged: true, ..next });
            return;
        }
    };
    merged.push(Pending {
        notification,
        fields,
        ticket: last.ticket,
        arrived: last.arrived,
        attempts: last.attempts,
        tried: last.tried || next.tried,
        counts_for_sync: last.counts_for_sync || next.counts_for_sync,
        is_initial: false,
        is_merged: true,
    });
}

/// Splits an update from one object to another of its name into delete and add.
fn split(pending: &Pending, old: &Object, new: &Object) -> [Pending; 2] {
    let &Pending {
        notification: _,
        ref fields,
        ticket,
        arrived,
        attempts,
        tried,
        counts_for_sync,
        is_initial: _,
        is_merged: _,
    } = pending;
    let part = |notification, fields, counts_for_sync| Pending {
        notification,
        fields,
        ticket,
        arrived,
        attempts,
        tried,
        counts_for_sync,
        is_initial: false,
        is_merged: true,
    };
    let deleted = Notification::Deleted { object: old.clone(), final_state_unknown: true };
    let added = Notification::Added { object: new.clone(), is_in_initial_list: false };
    let (of_deleted, of_added) = (
        NotificationFields { old: fields.old.clone(), new: None },
        NotificationFields { old: None, new: fields.new.clone() },
    );
    [part(deleted, of_deleted, counts_for_sync), part(added, of_added, false)]
}

/// Merges all notifications that wait for an object.
pub(super) fn fold(waiting: impl IntoIterator<Item = Pending>) -> Vec<Pending> {
    let mut merged = Vec::with_capacity(2);
    for next in waiting {
        append(&mut merged, next);
    }
    merged
}

#[cfg(test)]
mod tests;
