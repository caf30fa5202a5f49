//! Requests to end: Ctrl-C and SIGTERM.

use std::{pin::pin, time::Duration};

use futures::{Stream, StreamExt, stream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::telemetry;

/// Signals within this time after the first signal belong to the same request. A user takes longer to press
/// Ctrl-C twice.
const SAME_REQUEST: Duration = Duration::from_millis(100);

/// Receives requests to end. Before this value exists, such a request ends the process at once.
#[derive(Debug)]
pub(crate) struct Requests {
    terminate: Signal,
    interrupt: Signal,
}

// === impl Requests ===

impl Requests {
    /// Installs the handlers. Returns `None` if that fails; a request then ends the process at once.
    pub(crate) fn listen() -> Option<Self> {
        let terminate = signal(SignalKind::terminate()).ok()?;
        let interrupt = signal(SignalKind::interrupt()).ok()?;
        Some(Self { terminate, interrupt })
    }

    /// Waits for the next request.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Cancels a token at the first request to end, and ends the process at the second, also when the host has
/// ended and other parts of the process have not.
pub(crate) fn cancel_on_request(requests: Option<Requests>, token: CancellationToken) {
    let Some(requests) = requests else { return };
    let requests = stream::unfold(requests, |mut requests| async {
        requests.next().await;
        Some(((), requests))
    });
    #[expect(clippy::disallowed_methods, reason = "lasts as long as the process")]
    tokio::spawn(async move {
        until_second(pin!(requests), &token).await;
        telemetry::print_at_end("second signal: the process ends at once\n".to_owned());
        // The kernel, or the end of a pipe, ends the child processes.
        std::process::exit(1)
    });
}

/// Cancels a token at the first request to end, and returns at the second.
async fn until_second(mut requests: impl Stream<Item = ()> + Unpin, token: &CancellationToken) {
    requests.next().await;
    token.cancel();
    // Some programs send two signals for one request: to the process and to its group.
    let mut same_request = pin!(tokio::time::sleep(SAME_REQUEST));
    loop {
        tokio::select! {
            biased;
            // First, since a process that had no CPU sees both at once.
            _ = requests.next() => {}
            () = &mut same_request => break,
        }
    }
    requests.next().await;
}

#[cfg(test)]
mod tests {
    use futures::{channel::mpsc, poll};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_request_ends_the_process_unless_it_belongs_to_the_first() {
        let (sender, requests) = mpsc::unbounded();
        let token = CancellationToken::new();
        let mut second = pin!(until_second(requests, &token));
        assert!(poll!(&mut second).is_pending() && !token.is_cancelled());
        sender.unbounded_send(()).unwrap();
        assert!(poll!(&mut second).is_pending() && token.is_cancelled());
        sender.unbounded_send(()).unwrap();
        assert!(poll!(&mut second).is_pending());
        sender.unbounded_send(()).unwrap();
        tokio::time::advance(Duration::from_millis(200)).await;
        assert!(poll!(&mut second).is_pending());
        sender.unbounded_send(()).unwrap();
        assert!(poll!(&mut second).is_ready());
    }
}
