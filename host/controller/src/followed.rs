//! A value whose changes tasks wait for.
//!
//! It does what `tokio::sync::watch` does, for values of which each plugin has some: a channel of tokio takes
//! 340 bytes, since it is made for many tasks that wait at the same time, and this takes 64.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The owner of the value. Dropping it ends the waits of the followers.
#[derive(Debug)]
pub(crate) struct Followed<T>(Arc<Shared<T>>);

/// Reads the value, and waits for its changes.
#[derive(Debug)]
pub(crate) struct Follower<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct State<T> {
    value: T,
    has_ended: bool,
}

// === impl Followed ===

impl<T: Copy> Followed<T> {
    pub(crate) fn new(value: T) -> Self {
        let state = Mutex::new(State { value, has_ended: false });
        Self(Arc::new(Shared { state, changed: Notify::new() }))
    }

    pub(crate) fn get(&self) -> T {
        self.0.state.lock().value
    }

    /// Changes the value. Followers that wait look at it.
    pub(crate) fn update(&self, change: impl FnOnce(&mut T)) {
        change(&mut self.0.state.lock().value);
        self.0.changed.notify_waiters();
    }

    pub(crate) fn follower(&self) -> Follower<T> {
        Follower(self.0.clone())
    }
}

impl<T: Copy + Default> Default for Followed<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Drop for Followed<T> {
    fn drop(&mut self) {
        self.0.state.lock().has_ended = true;
        self.0.changed.notify_waiters();
    }
}

// === impl Follower ===

impl<T: Copy> Follower<T> {
    pub(crate) fn get(&self) -> T {
        self.0.state.lock().value
    }

    /// Waits until the value is one that is waited for, and returns it. Returns none if it is not, and its
    /// owner is gone. Of two changes in quick succession only the second may be seen. Cancel-safe.
    pub(crate) async fn wait_for(&self, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        look_until(&self.0.changed, || {
            let state = self.0.state.lock();
            let value = is_wanted(&state.value).then_some(state.value);
            (value.is_some() || state.has_ended).then_some(value)
        })
        .await
    }
}

/// Looks now and after each notification, until there is something to return. No notification is missed.
pub(crate) async fn look_until<T>(changed: &Notify, look: impl Fn() -> Option<T>) -> T {
    loop {
        // Before the look: it is notified of any change from here on.
        let notified = changed.notified();
        if let Some(found) = look() {
            return found;
        }
        notified.await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;

    use super::*;

    #[tokio::test]
    async fn a_follower_waits_for_a_value_and_ends_with_its_owner() {
        let followed = Followed::new(0);
        let (first, second) = (followed.follower(), followed.follower());
        let mut two = pin!(first.wait_for(|it| *it == 2));
        let mut three = pin!(second.wait_for(|it| *it == 3));
        assert!(poll!(&mut two).is_pending() && poll!(&mut three).is_pending());
        followed.update(|it| *it += 1);
        assert!(poll!(&mut two).is_pending() && poll!(&mut three).is_pending());
        followed.update(|it| *it += 1);
        assert_eq!(two.await, Some(2));
        assert!(poll!(&mut three).is_pending());
        drop(followed);
        assert_eq!(three.await, None);
        assert_eq!((first.get(), first.wait_for(|it| *it == 2).await), (2, Some(2)), "the last value stays");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[expect(clippy::disallowed_methods, reason = "the task ends with the test")]
    async fn no_change_is_missed_between_a_look_and_the_wait() {
        const CHANGES: u32 = 20_000;
        let followed = Followed::new(0);
        let follower = followed.follower();
        let counts = tokio::spawn(async move {
            let mut seen = 0;
            while let Some(now) = follower.wait_for(|it| *it > seen).await {
                seen = now;
            }
            seen
        });
        for n in 1..=CHANGES {
            followed.update(|it| *it = n);
            if n % 64 == 0 {
                tokio::task::yield_now().await;
            }
        }
        drop(followed);
        assert_eq!(counts.await.unwrap(), CHANGES);
    }
}
