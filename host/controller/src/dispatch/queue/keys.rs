//! The keys of a work queue, for its dispatcher.

use std::task::{Context, Poll};

use tokio_util::sync::ReusableBoxFuture;

use super::{Key, PluginQueue};

/// Takes keys from a work queue. [`PluginQueue::finish`] must follow each of them. Dropping this loses none.
pub(in crate::dispatch) struct Keys {
    queue: PluginQueue,
    /// The box is used again for the next key.
    next: ReusableBoxFuture<'static, Key>,
    /// The queue wakes the task that has polled `next`.
    wakes_task: bool,
}

// === impl Keys ===

impl Keys {
    pub(super) fn new(queue: PluginQueue) -> Self {
        let next = ReusableBoxFuture::new(next(queue.clone()));
        Self { queue, next, wakes_task: false }
    }

    pub(in crate::dispatch) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Key> {
        let polled = self.next.poll(cx);
        self.wakes_task = polled.is_pending();
        if polled.is_ready() {
            self.begin_next();
        }
        polled
    }

    /// Has the queue not wake the task before the next poll. This is for a task that is about to add a key
    /// and polls again afterwards: tokio would queue the running task again, and wake another worker for it.
    pub(in crate::dispatch) fn forget_waker(&mut self) {
        if std::mem::take(&mut self.wakes_task) {
            self.begin_next();
        }
    }

    fn begin_next(&mut self) {
        self.next.set(next(self.queue.clone()));
    }
}

async fn next(queue: PluginQueue) -> Key {
    queue.next().await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Wake, Waker};

    use oarlock_plugin::contract::{ObjectKey, WorkKey};

    use super::*;

    /// Counts the wake-ups of a task.
    #[derive(Default)]
    struct Wakeups(AtomicUsize);

    impl Wake for Wakeups {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_adds_a_key_and_polls_again_is_not_woken() {
        let queue = PluginQueue::default();
        let key = |name: &str| WorkKey {
            kind: "it".into(),
            object: ObjectKey { namespace: String::new(), name: name.to_owned() },
        };
        let wakeups = Arc::new(Wakeups::default());
        let waker = Waker::from(wakeups.clone());
        let mut cx = Context::from_waker(&waker);
        let mut keys = queue.keys();
        for n in 0..3 {
            assert!(keys.poll_next(&mut cx).is_pending());
            keys.forget_waker();
            queue.add(key(&n.to_string()), None).unwrap();
            assert_eq!(wakeups.0.load(Ordering::Relaxed), 0);
            assert!(keys.poll_next(&mut cx).is_ready());
        }
        assert!(keys.poll_next(&mut cx).is_pending());
        queue.add(key("by-another-task"), None).unwrap();
        assert_eq!(wakeups.0.load(Ordering::Relaxed), 1);
        assert!(keys.poll_next(&mut cx).is_ready());
    }
}
