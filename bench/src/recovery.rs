//! The recovery of informers after an API server has failed for a while. `bench/peers/recovery` runs
//! client-go's informers at the same time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use oarlock_informer::{Listener, ListenerConfig, listener::Outcome, object::ObjectKey};
use oarlock_measure::Control;
use serde_json::Value;
use tokio::task::{JoinSet, block_in_place};
use tokio_util::sync::CancellationToken;

use crate::subject::{self, Kept};

/// The period of checks of the state.
const LOOK: Duration = Duration::from_millis(10);

/// The run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The URL of the plan.
    #[arg(long)]
    server: String,
}

/// The notifications of one handler, and the state that they describe.
#[derive(Clone, Default)]
struct Follower(Arc<Mutex<Received>>);

#[derive(Default)]
struct Received {
    versions: HashMap<ObjectKey, i64>,
    /// A checksum of all versions. Equal checksums mean equal objects.
    sum: i64,
    n_heard: u64,
}

/// Follows all servers of the plan, until each informer has the state after the failures.
pub(crate) async fn run(args: Args) -> Result<()> {
    let control = Control::new(&args.server)?;
    let urls: Vec<String> = block_in_place(|| control.get("/control/plan"))?;
    let mut informers = JoinSet::new();
    for url in urls {
        informers.spawn(follow(control.clone(), url));
    }
    let (mut seconds, mut heard) = (Vec::new(), Vec::new());
    while let Some(outcome) = informers.join_next().await {
        let (took, n_heard) = outcome??;
        seconds.push(took.to_string());
        heard.push(n_heard.to_string());
    }
    let outcome = format!("outcome?seconds={}&heard={}", seconds.join(","), heard.join(","));
    block_in_place(|| control.post(&outcome))
}

/// Returns the seconds from the end of the failures to the complete state, and the number of changes received
/// before.
async fn follow(control: Control, url: String) -> Result<(f64, u64)> {
    let informer = subject::informer(subject::client(&url)?, "configmaps", Kept::Default)?;
    let follower = Follower::default();
    let listener = informer.add_listener(ListenerConfig::default())?;
    let handling = tokio::spawn(follower.clone().handle(listener));
    let token = CancellationToken::new();
    let running = tokio::spawn({
        let (informer, token) = (informer.clone(), token.clone());
        async move { informer.run(token).await }
    });
    follower.catches_up(&control, false).await?;
    block_in_place(|| control.post("ready"))?;
    let before = follower.lock().n_heard;
    let mut heard = 0;
    while calm_for(&block_in_place(|| control.get("/control/state"))?).is_none() {
        heard = follower.lock().n_heard - before;
        tokio::time::sleep(LOOK).await;
    }
    let took = follower.catches_up(&control, true).await?;
    token.cancel();
    running.await?;
    handling.await?;
    Ok((took, heard))
}

fn calm_for(state: &Value) -> Option<f64> {
    state["calm_for"].as_f64()
}

// === impl Follower ===

impl Follower {
    async fn handle(self, mut listener: Listener) {
        while let Some(delivery) = listener.next().await {
            let version = delivery
                .notification
                .new()
                .map_or(0, |object| object.resource_version().parse().unwrap_or_default());
            let mut received = self.lock();
            let before = received.versions.insert(delivery.key.clone(), version).unwrap_or_default();
            if before != version {
                received.sum += version - before;
                received.n_heard += 1;
            }
            drop(received);
            listener.finish(&delivery.key, Outcome::Done);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Received> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the state is complete; returns the time since the end of the failures.
    async fn catches_up(&self, control: &Control, is_calm: bool) -> Result<f64> {
        loop {
            let state: Value = block_in_place(|| control.get("/control/state"))?;
            let sum = state["sum"].as_i64().context("the state has a sum")?;
            if self.lock().sum == sum {
                return if is_calm { calm_for(&state).context("it is calm") } else { Ok(0.0) };
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}
