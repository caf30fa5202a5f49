//! Requests to end: Ctrl-C and SIGTERM.

use std::{convert::Infallible, time::Duration};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::telemetry;

/// Signals within this time after the first signal belong to the same request.
const SAME_REQUEST: Duration = Duration::from_secs(1);

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

/// Cancels a token at the first request to end, and ends the process at the second.
pub(crate) async fn cancel_on_request(requests: Option<Requests>, token: CancellationToken) -> Infallible {
    let Some(mut requests) = requests else { return std::future::pending().await };
    requests.next().await;
    token.cancel();
    // Some programs send two signals for one request: to the process and to its group.
    let same_request = tokio::time::sleep(SAME_REQUEST);
    let mut same_request = std::pin::pin!(same_request);
    loop {
        tokio::select! {
            biased;
            () = &mut same_request => break,
            () = requests.next() => {}
        }
    }
    requests.next().await;
    telemetry::print_at_end("second request to end: the process ends at once\n".to_owned());
    std::process::exit(130)
}
