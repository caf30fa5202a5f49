//! Starts and supervises all tasks. No other file of this crate spawns.
//!
//! Every task has a name, a token that asks it to end, and a criticality. An essential task that ends without
//! being asked ends the process: a host that silently lost a part is worse than a host that is restarted. A
//! task that serves one plugin is contained: a panic in it affects that plugin alone. [`Supervisor::run`]
//! returns when every task is gone.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use oarlock_plugin::engine::{Run, Share};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use crate::report::Counted;

/// The interval at which a slow shutdown logs the tasks that it waits for.
const SHUTDOWN_NOTICE: Duration = Duration::from_secs(5);

/// The number of threads for blocking work that finishes soon. A thread takes memory for a while after its
/// work, and a hundred plugins that start together would begin one each.
const BLOCKING_THREADS: usize = 4;

/// How long blocking work waits for one of these threads before it gets a further one.
const BLOCKING_PATIENCE: Duration = Duration::from_secs(1);

/// The effect of a task's end on the process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Criticality {
    /// The task runs until it is asked to end. If it ends earlier, the process ends.
    Essential,
    /// The task may end when its work is done. A panic in it still ends the process, because it is a bug of
    /// the host.
    Finite,
}

/// Why the process ends without being asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An essential task returned.
    #[error("the task {name:?} ended, which the host needs")]
    Ended {
        /// The task's name.
        name: Arc<str>,
    },
    /// A task panicked.
    #[error("the task {name:?} panicked: {message}")]
    Panicked {
        /// The task's name.
        name: Arc<str>,
        /// The message of the panic.
        message: String,
    },
}

/// Starts tasks. Cheap to clone: clones belong to the same set.
#[derive(Clone, Debug)]
pub struct Tasks {
    shared: Arc<TasksShared>,
    token: CancellationToken,
}

/// Waits for the end of a set of [`Tasks`].
#[derive(Debug)]
pub struct Supervisor {
    tasks: Tasks,
    failures: mpsc::UnboundedReceiver<Error>,
}

/// One task. Dropping it does not end the task.
#[derive(Clone, Debug)]
pub struct Task {
    token: CancellationToken,
    gone: CancellationToken,
}

#[derive(Debug)]
struct TasksShared {
    tracker: TaskTracker,
    failures: mpsc::UnboundedSender<Error>,
    running: Mutex<RunningTasks>,
    blocking: Semaphore,
}

#[derive(Debug, Default)]
struct RunningTasks {
    next: u64,
    names: BTreeMap<u64, Arc<str>>,
}

/// Removes a task from the list when it is dropped, however the task ends.
struct TaskGuard {
    shared: Arc<TasksShared>,
    id: u64,
    /// None if no task waits for its end.
    gone: Option<CancellationToken>,
}

// === impl Tasks ===

impl Tasks {
    /// Makes an empty set of tasks, which all end when `token` is cancelled.
    #[must_use]
    pub fn new(token: CancellationToken) -> (Self, Supervisor) {
        let (sender, failures) = mpsc::unbounded_channel();
        let shared = TasksShared {
            tracker: TaskTracker::new(),
            failures: sender,
            running: Mutex::default(),
            blocking: Semaphore::new(BLOCKING_THREADS),
        };
        let tasks = Self { shared: Arc::new(shared), token };
        (tasks.clone(), Supervisor { tasks, failures })
    }

    /// Starts a task. `start` gets the token that asks the task to end. The token is cancelled with the whole
    /// set, and by [`Task::cancel`].
    pub fn spawn<F, Fut>(&self, name: impl Into<Arc<str>>, criticality: Criticality, start: F) -> Task
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let name: Arc<str> = name.into();
        let at_end = self.report_failure(&name, criticality);
        self.spawn_with(name, start, at_end)
    }

    /// Starts a task that ends when its work is done, or with the whole set. It cannot be ended alone or
    /// waited for, so it takes less memory than one of [`Tasks::spawn`]. A panic in it ends the process.
    pub(crate) fn spawn_unattended<F, Fut>(&self, name: impl Into<Arc<str>>, start: F)
    where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let name: Arc<str> = name.into();
        let at_end = self.report_failure(&name, Criticality::Finite);
        let guard = TaskGuard { shared: self.shared.clone(), id: self.shared.add(&name), gone: None };
        self.spawn_guarded(self.token.clone(), guard, start, at_end);
    }

    /// Returns what reports the failure of a task to the supervisor, if its end is one.
    fn report_failure(
        &self,
        name: &Arc<str>,
        criticality: Criticality,
    ) -> impl FnOnce(Result<(), String>, bool) + Send + 'static {
        let (failures, name) = (self.shared.failures.clone(), name.clone());
        move |ended, was_asked| {
            let failure = match ended {
                Err(message) => Error::Panicked { name, message },
                Ok(()) if criticality == Criticality::Essential && !was_asked => Error::Ended { name },
                Ok(()) => return,
            };
            tracing::error!(%failure, "a task failed");
            // The receiver is gone only while the process ends already.
            let _ = failures.send(failure);
        }
    }

    /// Starts a task that serves one plugin, and may end when its work is done. A panic in it does not end
    /// the process: `on_panic` is called with the message of the panic when the task is gone.
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

    /// Starts a task. At its end `at_end` is called with the message of its panic, if it panicked, and with
    /// whether the task was asked to end.
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
        let (token, gone) = (self.token.child_token(), CancellationToken::new());
        let id = self.shared.add(&name);
        let guard = TaskGuard { shared: self.shared.clone(), id, gone: Some(gone.clone()) };
        self.spawn_guarded(token.clone(), guard, start, at_end);
        Task { token, gone }
    }

    fn spawn_guarded<F, Fut>(
        &self,
        token: CancellationToken,
        guard: TaskGuard,
        start: F,
        at_end: impl FnOnce(Result<(), String>, bool) + Send + 'static,
    ) where
        F: FnOnce(CancellationToken) -> Fut,
        Fut: Future<Output = ()> + Send + 'static,
    {
        let asked = token.clone();
        // An async block would hold the work twice: as what it captures, and as what it awaits.
        let task = AssertUnwindSafe(start(token)).catch_unwind().map(move |ended| {
            let was_asked = asked.is_cancelled();
            drop(guard);
            at_end(ended.map_err(|panic| panic_message(panic.as_ref())), was_asked);
        });
        #[expect(clippy::disallowed_methods, reason = "the one place where tasks are spawned")]
        tokio::spawn(self.shared.tracker.track_future(task));
    }

    /// Starts a part of the caller's own work as a task, on any worker, and returns a future of its result.
    /// Dropping that ends the task. A panic in the task becomes one of the caller.
    pub(crate) fn apart<T, W>(&self, work: W) -> impl Future<Output = T> + Send + use<T, W>
    where
        T: Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        #[expect(clippy::disallowed_methods, reason = "the file where tasks are spawned")]
        let task = AbortOnDropHandle::new(tokio::spawn(self.shared.tracker.track_future(work)));
        async move {
            match task.await {
                Ok(done) => done,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    // The runtime is shutting down.
                    Err(_) => std::future::pending().await,
                },
            }
        }
    }

    /// Runs work of a plugin's guest as part of the caller's own work: in the caller's task, or in the
    /// background once the guest belongs there.
    pub(crate) fn run_guest<T, W>(&self, share: &Share, work: W) -> Run<T>
    where
        T: Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        share.run(self.shared.tracker.track_future(work))
    }

    /// Does the same from the begin in the background.
    pub(crate) fn run_guest_in_background<T, W>(&self, share: &Share, work: W) -> Run<T>
    where
        T: Send + 'static,
        W: Future<Output = T> + Send + 'static,
    {
        share.run_in_background(self.shared.tracker.track_future(work))
    }

    /// Runs blocking work, such as reading files, on a thread of its own. Returns none if it panicked.
    ///
    /// While [`BLOCKING_THREADS`] of them are busy, it waits for one, but not long: work that hangs must not
    /// stop the rest.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let _permit = tokio::time::timeout(BLOCKING_PATIENCE, self.shared.blocking.acquire()).await;
        tokio::task::spawn_blocking(work).await.ok()
    }

    /// Returns the names of the running tasks, oldest first.
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
    /// Waits until the token of the set is cancelled or a task fails, cancels all tasks, and returns when the
    /// last one is gone.
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
        let mut only_calls_before = false;
        loop {
            tokio::select! {
                biased;
                () = self.tasks.shared.tracker.wait() => break,
                _ = notice.tick() => {
                    let tasks = self.tasks.names();
                    let calls = self.tasks.shared.tracker.len().saturating_sub(tasks.len());
                    // A host event says that calls were dropped. Most of these end within moments.
                    let only_calls = tasks.is_empty();
                    let waits = !only_calls || (only_calls_before && calls > 0);
                    only_calls_before = only_calls;
                    if waits {
                        tracing::warn!("the host waits for the end of {}", waited_for(&tasks, calls));
                    }
                }
            }
        }
        // The first failure is returned, even one during the shutdown.
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

    /// Returns whether the task is gone.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Waits until the task is gone.
    pub async fn gone(&self) {
        self.gone.cancelled().await;
    }
}

// === impl TasksShared ===

impl TasksShared {
    fn add(&self, name: &Arc<str>) -> u64 {
        let mut running = self.running.lock();
        running.next += 1;
        let id = running.next;
        running.names.insert(id, name.clone());
        id
    }
}

// === impl TaskGuard ===

impl Drop for TaskGuard {
    fn drop(&mut self) {
        self.shared.running.lock().names.remove(&self.id);
        if let Some(gone) = &self.gone {
            gone.cancel();
        }
    }
}

/// Returns the names of tasks and the number of calls for people.
fn waited_for(tasks: &[Arc<str>], calls: usize) -> String {
    let calls = (calls > 0).then(|| Counted(calls, "call").to_string());
    let parts: Vec<_> = tasks.iter().map(ToString::to_string).chain(calls).collect();
    parts.join(", ")
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
    async fn an_essential_task_that_ends_early_ends_all_tasks() {
        let (tasks, supervisor) = Tasks::new(CancellationToken::new());
        let other =
            tasks.spawn("other", Criticality::Essential, |token| async move { token.cancelled().await });
        tasks.spawn("leaver", Criticality::Essential, |_| async {});
        let error = supervisor.run().await.unwrap_err();
        assert_eq!(error.to_string(), "the task \"leaver\" ended, which the host needs");
        other.gone().await;
        assert!(tasks.names().is_empty());
    }

    #[tokio::test]
    async fn the_error_of_a_panic_names_the_task() {
        let (tasks, supervisor) = Tasks::new(CancellationToken::new());
        tasks.spawn("clumsy", Criticality::Finite, |_| async { panic!("oops") });
        let error = supervisor.run().await.unwrap_err();
        assert_eq!(error.to_string(), "the task \"clumsy\" panicked: oops");
    }

    #[tokio::test]
    async fn promise_4_a_panic_in_a_contained_task_ends_no_other_task() {
        let token = CancellationToken::new();
        let (tasks, supervisor) = Tasks::new(token.clone());
        let other =
            tasks.spawn("other", Criticality::Essential, |token| async move { token.cancelled().await });
        let (sender, message) = tokio::sync::oneshot::channel();
        let contained = tasks.spawn_contained(
            "plugin p",
            |_| async { panic!("oops") },
            move |message| sender.send(message).unwrap(),
        );
        assert_eq!(message.await.unwrap(), "oops");
        assert!(contained.is_gone() && !other.is_gone());
        assert_eq!(tasks.names().iter().map(|it| &**it).collect::<Vec<_>>(), ["other"]);
        token.cancel();
        supervisor.run().await.unwrap();
    }

    #[tokio::test]
    async fn an_essential_task_that_was_asked_to_end_is_not_a_failure() {
        let token = CancellationToken::new();
        let (tasks, supervisor) = Tasks::new(token.clone());
        let task = tasks.spawn("one", Criticality::Essential, |token| async move { token.cancelled().await });
        task.cancel();
        task.gone().await;
        assert!(!token.is_cancelled());
        token.cancel();
        supervisor.run().await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn blocking_work_has_few_threads_but_does_not_wait_long_for_one() {
        let (tasks, _supervisor) = Tasks::new(CancellationToken::new());
        let taken = tasks.shared.blocking.acquire_many(BLOCKING_THREADS as u32).await.unwrap();
        let began = tokio::time::Instant::now();
        assert_eq!(tasks.blocking(|| 1).await, Some(1), "the threads hang");
        assert_eq!(began.elapsed(), BLOCKING_PATIENCE);
        let (waiting, ()) = tokio::join!(tasks.blocking(|| 2), async { drop(taken) });
        assert_eq!((waiting, began.elapsed()), (Some(2), BLOCKING_PATIENCE), "as soon as one is free");
        assert_eq!(tasks.blocking(|| panic!("as intended")).await, None::<()>);
    }

    #[test]
    fn what_the_end_waits_for_is_named() {
        assert_eq!(waited_for(&["plugin a".into(), "admin".into()], 2), "plugin a, admin, 2 calls");
        assert_eq!(waited_for(&["admin".into()], 0), "admin");
        assert_eq!(waited_for(&[], 1), "1 call");
    }

    #[tokio::test]
    async fn a_finite_task_that_ends_is_not_a_failure() {
        let token = CancellationToken::new();
        let (tasks, supervisor) = Tasks::new(token.clone());
        tasks.spawn("errand", Criticality::Finite, |_| async {}).gone().await;
        token.cancel();
        supervisor.run().await.unwrap();
    }

    #[tokio::test]
    async fn an_unattended_task_ends_with_all_tasks_and_its_panic_is_a_failure() {
        let token = CancellationToken::new();
        let (tasks, supervisor) = Tasks::new(token.clone());
        tasks.spawn_unattended("follower", |token| async move { token.cancelled().await });
        assert_eq!(tasks.names().iter().map(|it| &**it).collect::<Vec<_>>(), ["follower"]);
        token.cancel();
        supervisor.run().await.unwrap();
        assert!(tasks.names().is_empty());
        let (tasks, supervisor) = Tasks::new(CancellationToken::new());
        tasks.spawn_unattended("clumsy", |_| async { panic!("oops") });
        let error = supervisor.run().await.unwrap_err();
        assert_eq!(error.to_string(), "the task \"clumsy\" panicked: oops");
    }
}
