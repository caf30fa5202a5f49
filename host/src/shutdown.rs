//! Ctrl-C and SIGTERM.

use std::{convert::Infallible, time::Duration};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Signals this soon after the first one belong to it.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// Cancels a token when the process is asked to end, and ends the process at once when it is asked again.
pub(crate) async fn cancel_on_request(token: CancellationToken) -> Infallible {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        // Without handlers the system's own way of ending a process stays in force.
        return std::future::pending().await;
    };
    requested(&mut terminate, &mut interrupt).await;
    token.cancel();
    // Some who ask send two signals at once, to the process and to its group, and mean one.
    let same_request = tokio::time::sleep(SAME_REQUEST);
    let mut same_request = std::pin::pin!(same_request);
    loop {
        tokio::select! {
            biased;
            () = &mut same_request => break,
            () = requested(&mut terminate, &mut interrupt) => {}
        }
    }
    requested(&mut terminate, &mut interrupt).await;
    eprintln!("asked to end once more: not waiting any longer");
    std::process::exit(130)
}

async fn requested(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
