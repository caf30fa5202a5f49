//! One run of one informer: sync, rest, events, rest, and the optional readings.

use std::time::Duration;

use anyhow::{Context, Result};
use oarlock_informer::{Listener, ListenerConfig, SharedInformer, listener::Outcome};
use oarlock_measure::{Control, Meter, Plan, Record, peak_resident, reset_peak, resident, settle};
use tokio::sync::watch;
use tokio::task::{JoinSet, block_in_place};
use tokio_util::sync::CancellationToken;

use crate::reads;
use crate::subject::{self, Kept};

/// The run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The synthetic API server.
    #[arg(long)]
    server: String,
    #[arg(long, default_value = "pods")]
    resource: String,
    #[arg(long, value_enum, default_value = "default")]
    kept: Kept,
    #[arg(long, default_value_t = 1)]
    handlers: usize,
    /// The greatest number of events.
    #[arg(long)]
    events: Option<u64>,
    /// Ends after the sync.
    #[arg(long)]
    no_events: bool,
    /// Also lists all unchanged objects again.
    #[arg(long)]
    relist: bool,
    /// Also measures reads of the cache.
    #[arg(long)]
    reads: bool,
}

/// The progress of a handler.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    objects: u64,
    last: bool,
}

pub(crate) async fn run(args: Args) -> Result<Record> {
    let Args { server, resource, kept, handlers, events, no_events, relist, reads } = args;
    let control = Control::new(&server)?;
    let form = if kept == Kept::Metadata { "metadata-json" } else { "json" };
    let plan = control.prepare(&resource, form, events)?;
    let informer = subject::informer(subject::client(&server)?, &resource, kept)?;
    let mut heard = Vec::new();
    let mut tasks = JoinSet::new();
    for n in 0..handlers {
        let config = ListenerConfig { name: format!("handler-{n}"), ..ListenerConfig::default() };
        let (sender, receiver) = watch::channel(Heard::default());
        tasks.spawn(handle(informer.add_listener(config)?, plan.clone(), sender));
        heard.push(receiver);
    }

    let mut meter = Meter::begin()?;
    let token = CancellationToken::new();
    let running = tokio::spawn({
        let (informer, token) = (informer.clone(), token.clone());
        async move { informer.run(token).await }
    });
    for handler in &mut heard {
        handler.wait_for(|heard| heard.objects == plan.objects).await.context("a handler ended")?;
    }
    block_in_place(|| meter.synced(plan.objects))?;

    if !no_events && plan.events > 0 {
        meter.begin_events();
        block_in_place(|| control.post("start"))?;
        for handler in &mut heard {
            handler.wait_for(|heard| heard.last).await.context("a handler ended")?;
        }
        block_in_place(|| meter.events_ended(plan.events))?;
    }
    if reads {
        block_in_place(|| reads::measure(&informer, &mut meter))?;
    }
    if relist {
        list_again(&informer, &control, &mut meter).await?;
    }
    token.cancel();
    running.await?;
    Ok(meter.record())
}

/// A handler that only reads the resourceVersion of each notification.
async fn handle(mut listener: Listener, plan: Plan, heard: watch::Sender<Heard>) {
    let mut so_far = Heard::default();
    while let Some(delivery) = listener.next().await {
        let notification = &delivery.notification;
        let is_new = notification.old().is_none();
        so_far.objects += u64::from(is_new);
        let is_last = *notification.object().resource_version() == *plan.last_resource_version;
        listener.finish(&delivery.key, Outcome::Done);
        // No reader needs the count before the sync.
        if (is_new && so_far.objects == plan.objects) || is_last {
            so_far.last |= is_last;
            heard.send_replace(so_far);
        }
    }
}

/// Expires the watch, so that the informer relists, and records the additional peak of memory.
async fn list_again(informer: &SharedInformer, control: &Control, meter: &mut Meter) -> Result<()> {
    let relists = informer.status().relists;
    let before = resident()?;
    reset_peak()?;
    block_in_place(|| control.post("expire"))?;
    while informer.status().relists == relists {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    block_in_place(settle);
    let grown_to = |now: u64| now as f64 / before as f64 - 1.0;
    meter.note("relist_peak_growth", grown_to(peak_resident()?));
    meter.note("relist_growth", grown_to(resident()?));
    Ok(())
}
