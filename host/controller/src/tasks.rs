//! The only place that spawns.
//!
//! Every task has a name, a token that asks it to end, and a criticality. Its end is an event: an essential task that ends
//! while nobody asked it to ends the process, because a host that has quietly lost a part is worse than one that
//! is restarted. Tasks that serve one plugin are contained: a panic in one costs that plugin alone. [`Supervisor::run`] returns only when every task is gone.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How often a shutdown that takes long says what it waits for.
const SHUTDOWN_NOTICE: Duration = Duration::from_secs(5);

/// What the end of a task means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Criticality {
    /// It runs until it is asked to end; ending earlier ends the process.
    Essential,
    /// It may end when its work is done. A panic in it still ends the process: it is a bug of the host.
    Finite,
}

/// Why the process ends although nobody asked it to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An essential task returned.
    #[error("the task {name:?} ended although the host needs it")]
    Ended {
        /// The task's name.
        name: Arc<str>,
    },
    /// A task panicked.
    #[error("the task {name:?} panicked: {message}")]
    Panicked {
        /// The task's name.
        name: Arc<str>,
        /// What it said.
        message: String,
    },
}

/// Starts tasks. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tasks {
    shared: Arc<Shared>,
    token: CancellationToken,
}

/// The other end of [`Tasks`]: waits for the end, on request or not, and for every task to be gone.
#[derive(Debug)]
pub struct Supervisor {
    tasks: Tasks,
    failures: mpsc::UnboundedReceiver<Error>,
}

/// One running task. Dropping it leaves the task alone.
#[derive(Clone, Debug)]
pub struct Task {
    token: CancellationToken,
    gone: CancellationToken,
}

#[derive(Debug)]
struct Shared {
    tracker: TaskTracker,
    failures: mpsc::UnboundedSender<Error>,
    running: Mutex<Running>,
}

#[derive(Debug, Default)]
struct Running {
    next: u64,
    names: BTreeMap<u64, Arc<str>>,
}

/// Takes a task off the list, however it ends.
struct Entry {
    shared: Arc<Shared>,
    id: u64,
    gone: CancellationToken,
}

// === impl Tasks ===

impl Tasks {
    /// Makes a set of tasks that end when `token` is cancelled.
    #[must_use]
    pub fn new(token: CancellationToken) -> (Self, Supervisor) {
        let (sender, failures) = mpsc::unbounded_channel();
        let shared = Shared { tracker: TaskTracker::new(), failures: sender, running: Mutex::default() };
        let tasks = Self { shared: Arc::new(shared), token };
        (tasks.clone(), Supervisor { tasks, failures })
    }

    /// Starts a task. `start` gets the token by which the task is asked to end; it is cancelled with the whole set,
    /// and by [`Task::cancel`].
    pub fn spawn<F, Fut>(&self, name: impl Into<Arc<str>>, criticality: Criticality, start: F) -> Task
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let name: Arc<str> = name.into();
        let failures = self.shared.failures.clone();
        let of = name.clone();
        self.spawn_with(name, start, move |ended, was_asked| {
            let failure = match ended {
                Err(message) => Error::Panicked { name: of, message },
                Ok(()) if criticality == Criticality::Essential && !was_asked => Error::Ended { name: of },
                Ok(()) => return,
            };
            tracing::error!(%failure, "a task failed");
            // Nobody listens any more only when the process ends already.
            let _ = failures.send(failure);
        })
    }

    /// Starts a task that serves one plugin, and may end when its work is done. A panic in it does not end the process: `on_panic` is
    /// given what it said once the task is gone, to name it, count it, and see to the plugin.
    pub fn spawn_contained<F, Fut>(
        &self,
        name: impl Into<Arc<str>>,
        start: F,
        on_panic: impl FnOnce(String) + Send + 'static,
    ) -> Task
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.spawn_with(name.into(), start, |ended, _| {
            if let Err(message) = ended {
                on_panic(message);
            }
        })
    }

    /// Starts a task, and says at its end how it ended (with what its panic said, if it did) and whether it was asked to.
    fn spawn_with<F, Fut>(
        &self,
        name: Arc<str>,
        start: F,
        at_end: impl FnOnce(Result<(), String>, bool) + Send + 'static,
    ) -> Task
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let token = self.token.child_token();
        let gone = CancellationToken::new();
        let entry = Entry { shared: self.shared.clone(), id: self.shared.enter(&name), gone: gone.clone() };
        let asked = token.clone();
        let work = AssertUnwindSafe(start(token.clone())).catch_unwind();
        let task = async move {
            let ended = work.await.map_err(|panic| panic_message(panic.as_ref()));
            let was_asked = asked.is_cancelled();
            drop(entry);
            at_end(ended, was_asked);
        };
        #[expect(clippy::disallowed_methods, reason = "the one place where tasks are spawned")]
        tokio::spawn(self.shared.tracker.track_future(task));
        Task { token, gone }
    }

    /// Runs something that blocks, such as reading files, beside the runtime's own threads. None if it panicked.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        tokio::task::spawn_blocking(work).await.ok()
    }

    /// The names of the tasks that run now, oldest first.
    #[must_use]
    pub fn names(&self) -> Vec<Arc<str>> {
        self.shared.running.lock().names.values().cloned().collect()
    }

    /// Returns the token whose cancellation ends every task of the set.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}

// === impl Supervisor ===

impl Supervisor {
    /// Waits until the set's token is cancelled or a task fails, cancels the rest, and returns when the last task is gone.
    pub async fn run(mut self) -> Result<(), Error> {
        let failure = tokio::select! {
            biased;
            () = self.tasks.token.cancelled() => None,
            failure = self.failures.recv() => failure,
        };
        self.tasks.token.cancel();
        self.tasks.shared.tracker.close();
        let mut notice = tokio::time::interval(SHUTDOWN_NOTICE);
        notice.set_missed_tick_behavior(MissedTickBehavior::Delay);
        notice.tick().await;
        loop {
            tokio::select! {
                biased;
                () = self.tasks.shared.tracker.wait() => break,
                _ = notice.tick() => tracing::warn!(tasks = ?self.tasks.names(), "still waiting for tasks to end"),
            }
        }
        // A task that fails on its way out counts too, unless an earlier one is to blame.
        match failure.or_else(|| self.failures.try_recv().ok()) {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }
}

// === impl Task ===

impl Task {
    /// Asks the task to end.
    pub fn cancel(&self) {
        self.token.cancel();
    }

    /// Whether the task is gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Waits until the task is gone.
    pub async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

// === impl Shared ===

impl Shared {
    fn enter(&self, name: &Arc<str>) -> u64 {
        let mut running = self.running.lock();
        running.next += 1;
        let id = running.next;
        running.names.insert(id, name.clone());
        id
    }
}

// === impl Entry ===

impl Drop for Entry {
    fn drop(&mut self) {
        self.shared.running.lock().names.remove(&self.id);
        self.gone.cancel();
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_essential_task_that_ends_ends_everything() {
        let (tasks, supervisor) = Tasks::new(CancellationToken::new());
        let other =
            tasks.spawn("other", Criticality::Essential, |token| async move { token.cancelled().await });
        tasks.spawn("leaver", Criticality::Essential, |_| async {});
        let error = supervisor.run().await.unwrap_err();
        assert_eq!(error.to_string(), "the task \"leaver\" ended although the host needs it");
        other.gone().await;
        assert!(tasks.names().is_empty());
    }

    #[tokio::test]
    async fn a_panic_is_named() {
        let (tasks, supervisor) = Tasks::new(CancellationToken::new());
        tasks.spawn("clumsy", Criticality::Finite, |_| async { panic!("oops") });
        let error = supervisor.run().await.unwrap_err();
        assert_eq!(error.to_string(), "the task \"clumsy\" panicked: oops");
    }

    #[tokio::test]
    async fn promise_4_a_panic_in_a_contained_task_ends_nothing_else() {
        let token = CancellationToken::new();
        let (tasks, supervisor) = Tasks::new(token.clone());
        let other =
            tasks.spawn("other", Criticality::Essential, |token| async move { token.cancelled().await });
        let (sender, said) = tokio::sync::oneshot::channel();
        let contained = tasks.spawn_contained(
            "plugin p",
            |_| async { panic!("oops") },
            move |message| sender.send(message).unwrap(),
        );
        assert_eq!(said.await.unwrap(), "oops");
        assert!(contained.is_gone() && !other.is_gone());
        assert_eq!(tasks.names().iter().map(|it| &**it).collect::<Vec<_>>(), ["other"]);
        token.cancel();
        supervisor.run().await.unwrap();
    }

    #[tokio::test]
    async fn a_task_that_was_asked_to_end_is_no_failure() {
        let token = CancellationToken::new();
        let (tasks, supervisor) = Tasks::new(token.clone());
        let task = tasks.spawn("one", Criticality::Essential, |token| async move { token.cancelled().await });
        task.cancel();
        task.gone().await;
        assert!(!token.is_cancelled());
        token.cancel();
        supervisor.run().await.unwrap();
    }

    #[tokio::test]
    async fn a_finite_task_may_finish() {
        let token = CancellationToken::new();
        let (tasks, supervisor) = Tasks::new(token.clone());
        tasks.spawn("errand", Criticality::Finite, |_| async {}).gone().await;
        token.cancel();
        supervisor.run().await.unwrap();
    }
}
