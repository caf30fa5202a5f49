//! Ctrl-C and SIGTERM.

use std::{convert::Infallible, time::Duration};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::telemetry;

/// Signals this soon after the first one belong to it.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// The requests to end that come from now on; before this is made, such a request ends the process at once.
#[derive(Debug)]
pub(crate) struct Requests {
    terminate: Signal,
    interrupt: Signal,
}

// === impl Requests ===

impl Requests {
    /// Without handlers the system's own way of ending a process stays in force.
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

/// Cancels a token when the process is asked to end, and ends the process at once when it is asked again.
pub(crate) async fn cancel_on_request(requests: Option<Requests>, token: CancellationToken) -> Infallible {
    let Some(mut requests) = requests else { return std::future::pending().await };
    requests.next().await;
    token.cancel();
    // Some who ask send two signals at once, to the process and to its group, and mean one.
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
    telemetry::say_at_the_end("asked to end once more: not waiting any longer\n".to_owned());
    std::process::exit(130)
}
