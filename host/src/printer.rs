//! Standard output: one line for each thing that happens.

use std::io::{BufWriter, Write};

use futures::FutureExt;
use oarlock_controller::report::{Line, Reports};
use tokio::{runtime::Handle, task::spawn_blocking};
use tokio_util::sync::CancellationToken;

use crate::args::Output;

/// Prints until every reporter is gone, on a thread of its own, since standard output may block.
///
/// When nobody reads it any more, the token is cancelled: a host that cannot be heard has no reason to go on.
pub(crate) async fn print(mut reports: Reports, output: Output, token: CancellationToken) {
    let runtime = Handle::current();
    let printing = spawn_blocking(move || {
        let mut stdout = BufWriter::new(std::io::stdout().lock());
        while let Some(line) = runtime.block_on(reports.next()) {
            if let Err(error) = write_batch(&mut stdout, line, &mut reports, output) {
                tracing::warn!(%error, "standard output is closed; ending");
                token.cancel();
                break;
            }
        }
        // Those who wait for room are let go.
        drop(reports);
    });
    if let Err(error) = printing.await {
        tracing::error!(%error, "the printer failed");
    }
}

/// Writes a line and those that are there already, then lets them be seen.
fn write_batch(
    into: &mut impl Write,
    first: Line,
    reports: &mut Reports,
    output: Output,
) -> std::io::Result<()> {
    let mut next = Some(first);
    while let Some(line) = next {
        write(into, &line, output)?;
        next = reports.next().now_or_never().flatten();
    }
    into.flush()
}

fn write(into: &mut impl Write, line: &Line, output: Output) -> std::io::Result<()> {
    match output {
        Output::Human => writeln!(into, "{line}"),
        Output::Json => {
            serde_json::to_writer(&mut *into, line)?;
            into.write_all(b"\n")
        }
    }
}
