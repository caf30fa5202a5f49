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
//!
//! For a consumer that collects keys, an add and a delete merge into the delete, and notifications stay apart
//! if the one that spans them has no state that names a key which they name.

use super::backlog::Pending;
use super::config::NamedKey;
use super::notification::Notification;
use super::values::NotificationFields;
use crate::object::Object;

/// So many notifications of an object may stay apart because they name different keys.
const MAX_APART: usize = 16;

/// Appends `next` to the notifications of an object, and merges as the table says. Without keys, `merged` is
/// empty afterwards, or holds one notification, or a delete and an add; the delete may follow an update from
/// one uid to another.
fn append(merged: &mut Vec<Pending>, next: Pending, keys: Option<&NamedKey>) {
    let Some(mut last) = merged.pop() else {
        merged.push(next);
        return;
    };
    if let Some(keys) = keys
        && merged.len() + 2 <= MAX_APART
        && hides_a_key(&last.notification, &next.notification, keys)
    {
        merged.extend([last, next]);
        return;
    }
    match (&last.notification, &next.notification) {
        (Notification::Added { .. }, Notification::Updated { old, new })
            if last.tried && !old.has_uid_of(new) =>
        {
            let [deleted, added] = split(&next, old, new);
            merged.push(last);
            append(merged, deleted, keys);
            append(merged, added, keys);
            return;
        }
        (Notification::Updated { old, new }, Notification::Deleted { .. }) if !old.has_uid_of(new) => {
            if last.tried {
                merged.extend([last, next]);
            } else {
                merged.extend(split(&last, old, new));
                append(merged, next, keys);
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
            if !is_known && keys.is_none() {
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
pub(super) fn fold(waiting: impl IntoIterator<Item = Pending>, keys: Option<&NamedKey>) -> Vec<Pending> {
    let mut merged = Vec::with_capacity(2);
    for next in waiting {
        append(&mut merged, next, keys);
    }
    merged
}

/// Returns whether the notification that spans two has no state which names a key that one of them names.
fn hides_a_key(last: &Notification, next: &Notification, keys: &NamedKey) -> bool {
    let [old, new] = match (last, next) {
        // They stay apart, and what follows the delete is its object's first state.
        (Notification::Deleted { .. }, Notification::Added { .. } | Notification::Updated { .. }) => {
            return false;
        }
        (Notification::Updated { .. }, Notification::Updated { .. } | Notification::Added { .. }) => {
            [last.old(), next.new()]
        }
        (Notification::Added { .. }, Notification::Updated { .. } | Notification::Added { .. }) => {
            [None, next.new()]
        }
        (_, Notification::Deleted { .. }) => [next.old(), None],
    };
    let named = [last.old(), last.new(), next.old(), next.new()].map(|state| keys.of(state?));
    let shown = [old, new].map(|state| keys.of(state?));
    named.iter().flatten().any(|key| !shown.iter().flatten().any(|it| it == key))
}

#[cfg(test)]
mod tests;
