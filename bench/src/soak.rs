//! One long run with an API server that has many faults (`bench/peers/chaos`).
//!
//! Several handlers have a view each: a fast one, a slow one, one with random failures, one with some
//! namespaces only. Every chain must be unbroken; at the end every view must equal a fresh list, and the
//! memory must not have grown.

mod view;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use oarlock_informer::{ListenerConfig, SharedInformer, object::Namespaces};
use oarlock_measure::{Control, resident};
use serde_json::{Value, json};
use tokio::task::{JoinSet, block_in_place};
use tokio_util::sync::CancellationToken;

use crate::subject::{self, Kept};
use view::{Manner, SharedView, fresh, handle};

/// The fraction of the run that is warm-up.
const WARM_UP: f64 = 0.1;

/// The period of memory readings.
const LOOK: Duration = Duration::from_millis(250);

/// The namespaces that one of the handlers sees.
const SEEN: [&str; 3] = ["orders-prod", "billing-canary", "search-staging"];

/// The run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The URL of the chaotic API server.
    #[arg(long)]
    server: String,
    /// The number of events, as configured in the server.
    #[arg(long)]
    events: u64,
}

pub(crate) async fn run(args: Args) -> Result<()> {
    let Args { server, events } = args;
    let control = Control::new(&server)?;
    let informer = subject::informer_with(subject::client(&server)?, "pods", Kept::Default, |config| {
        // Short back-offs: faults come every second here.
        config.reflector.backoff.initial = Duration::from_millis(5);
        config.reflector.backoff.cap = Duration::from_millis(100);
        config.reflector.silence_limit = Duration::from_secs(1);
    })?;
    let mut tasks = JoinSet::new();
    let mut views = Vec::new();
    for (name, manner, namespaces) in [
        ("quick", Manner::Quick, Namespaces::All),
        ("slow", Manner::Slow, Namespaces::All),
        ("failing", Manner::Failing, Namespaces::All),
        ("narrow", Manner::Quick, Namespaces::Only(SEEN.map(Into::into).into_iter().collect())),
    ] {
        let config = ListenerConfig { name: name.to_owned(), namespaces, ..ListenerConfig::default() };
        let listener = informer.add_listener(config)?;
        let view = SharedView::new(name, listener.handle());
        tasks.spawn(handle(listener, manner, view.clone()));
        views.push(view);
    }
    let token = CancellationToken::new();
    let running = tokio::spawn({
        let (informer, token) = (informer.clone(), token.clone());
        async move { informer.run(token).await }
    });
    let begun = Instant::now();
    let (samples, faults) = watch_memory(&control, &informer, events).await?;
    let wrong = settle(&control, &informer, &views).await?;
    token.cancel();
    running.await?;

    let growth = growth(&samples);
    let breaks: u64 = views.iter().map(SharedView::n_breaks).sum();
    let line = json!({"events": events, "seconds": begun.elapsed().as_secs(), "memory_growth": growth,
        "resident_bytes": samples.last().map(|(_, bytes)| bytes), "broken_chains": breaks, "wrong_views": wrong, "faults": faults,
        "relists": informer.status().relists});
    print(&line);
    ensure!(wrong.is_empty(), "the views of these handlers differ from a fresh list: {wrong:?}");
    ensure!(breaks == 0, "{breaks} notifications do not follow from the one before");
    ensure!(growth <= 0.02, "memory grew by {:.1} % from the first quarter to the last", growth * 100.0);
    Ok(())
}

/// Reads the memory until the last event. Returns the readings by event count, and the faults.
async fn watch_memory(
    control: &Control,
    informer: &SharedInformer,
    events: u64,
) -> Result<(Vec<(f64, u64)>, Value)> {
    let mut samples = Vec::new();
    let mut n_tenths_printed = 0;
    loop {
        tokio::time::sleep(LOOK).await;
        let state: Value = block_in_place(|| control.get("/control/state"))?;
        let remaining = state["remaining"].as_i64().unwrap_or_default().max(0);
        let done = 1.0 - remaining as f64 / events as f64;
        samples.push((done, resident()?));
        let tenth = (done * 10.0) as u64;
        if tenth > n_tenths_printed {
            n_tenths_printed = tenth;
            let status = informer.status();
            eprintln!(
                "soak: {tenth}0 %, {} objects, {} relists, {} watches, {} MB resident",
                status.objects,
                status.relists,
                status.watches,
                resident()? >> 20
            );
        }
        if remaining == 0 {
            return Ok((samples, state["faults"].clone()));
        }
    }
}

/// Waits until the handlers have handled all events. Returns the names of handlers with a wrong view.
async fn settle(control: &Control, informer: &SharedInformer, views: &[SharedView]) -> Result<Vec<String>> {
    let list: Value = block_in_place(|| control.get("/control/fresh"))?;
    let version = list["metadata"]["resourceVersion"].as_str().context("the list has no version")?;
    tokio::time::timeout(Duration::from_secs(60), informer.wait_until_seen(version))
        .await
        .context("the informer did not catch up")??;
    let begun = Instant::now();
    let mut wrong = Vec::new();
    while begun.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(LOOK).await;
        wrong.clear();
        for view in views {
            if view.is_idle() && view.is(&fresh(&list, view.namespaces())) {
                continue;
            }
            wrong.push(view.name().to_owned());
        }
        if wrong.is_empty() {
            break;
        }
    }
    Ok(wrong)
}

/// Returns the growth of memory from the first to the last quarter after the warm-up, as a fraction.
fn growth(samples: &[(f64, u64)]) -> f64 {
    let quarter = (1.0 - WARM_UP) / 4.0;
    let mean = |from: f64, to: f64| {
        let within: Vec<_> = samples.iter().filter(|(done, _)| (from..=to).contains(done)).collect();
        within.iter().map(|(_, bytes)| *bytes as f64).sum::<f64>() / within.len().max(1) as f64
    };
    mean(1.0 - quarter, 1.0) / mean(WARM_UP, WARM_UP + quarter).max(1.0) - 1.0
}

#[expect(clippy::print_stdout, reason = "the result is what is asked for")]
fn print(line: &Value) {
    println!("{line}");
}
