//! Waits whose probe is asynchronous, such as a request to an API server. For any other wait use
//! `oarlock-wait-until`.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use anyhow::bail;

/// The deadline of one wait for another process. Machines that run all tests at once, and compile the plugins
/// of five languages meanwhile, are slow.
pub const WAIT_LIMIT: Duration = Duration::from_secs(600);

/// The pause between two probes.
const PAUSE: Duration = Duration::from_millis(50);

/// Waits until the probe returns `Ok`, and returns its value.
///
/// # Errors
///
/// After [`WAIT_LIMIT`], with `what` and the state that the probe saw last.
pub async fn wait_until<T, S: Debug>(
    what: &str,
    mut probe: impl AsyncFnMut() -> Result<T, S>,
) -> anyhow::Result<T> {
    let begun_at = Instant::now();
    loop {
        match probe().await {
            Ok(value) => return Ok(value),
            Err(state) if begun_at.elapsed() > WAIT_LIMIT => {
                bail!("waited {WAIT_LIMIT:?} for {what}; the last state was: {state:#?}")
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
