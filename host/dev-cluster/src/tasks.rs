//! The only module that spawns tasks. All tasks end when the server is shut down.

use std::future::Future;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The tasks of one server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tasks {
    tracker: TaskTracker,
    token: CancellationToken,
}

// === impl Tasks ===

impl Tasks {
    /// Runs a task until it ends or the server is shut down.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let token = self.token.clone();
        self.tracker.spawn(async move {
            token.run_until_cancelled(task).await;
        });
    }

    pub(crate) fn cancel(&self) {
        self.token.cancel();
        self.tracker.close();
    }

    /// Cancels every task, and waits until all have ended.
    pub(crate) async fn shut_down(&self) {
        self.cancel();
        self.tracker.wait().await;
    }
}

/// HTTP/2 spawns the tasks of its streams here too.
impl<F> hyper::rt::Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        self.spawn(task);
    }
}
