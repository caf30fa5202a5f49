//! Watches Pods, and does with each update what its configuration says. `cargo xtask bench plugin` runs it.

#![deny(unsafe_code)]

mod latency;

use std::ops::Range;

use oarlock_sdk::cache::{self, Select};
use oarlock_sdk::{
    Added, Description, Entry, Failure, Handler, ObjectKey, Plugin, Subscription, Synced, Updated, client,
    clock, config, event, gvr, info, metrics,
};
use serde::Deserialize;
use serde_json::json;

use latency::{Latency, Schedule};

/// The subscription, and the lister of that name.
const PODS: &str = "pods";

/// A field that every Pod of the corpus has.
const NODE: &str = "/spec/nodeName";

/// With [`Work::Mirror`], one update of so many is written.
const UPDATES_PER_WRITE: u32 = 20;

/// The configuration in the plugin's file.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
struct Settings {
    /// The label selector of the subscription.
    selector: String,
    /// The declared fields.
    fields: Vec<String>,
    stateless: bool,
    work: Work,
    /// The number of cached reads that `on-synced` measures.
    gets: u32,
    /// Has no effect: another value is another version of the plugin.
    #[serde(rename = "version")]
    _version: u32,
    /// When the updates are sent, so that their latency can be measured.
    schedule: Option<Schedule>,
}

/// What the plugin does with an update.
#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Work {
    #[default]
    Nothing,
    /// It reads two fields of the new state.
    Pull,
    /// It reads the Pod from the cache, and writes a ConfigMap now and then.
    Mirror,
    /// It writes a ConfigMap.
    Write,
    /// It traps at every tenth version.
    Trap,
}

struct Measured {
    settings: Settings,
    latency: Latency,
    n_updates: u32,
    /// The Pod that `on-synced` reads.
    pod: Option<ObjectKey>,
}

impl Settings {
    fn read() -> Result<Self, oarlock_sdk::Error> {
        Ok(config::get("")?.unwrap_or_default())
    }
}

impl Plugin for Measured {
    fn describe() -> Result<Description, String> {
        let settings = Settings::read().map_err(|error| format!("{error:?}"))?;
        let fields: Vec<&str> = settings.fields.iter().map(String::as_str).collect();
        let pods = || gvr("", "v1", PODS);
        let subscription = Subscription::new(PODS, pods()).label_selector(&settings.selector).fields(&fields);
        let description = Description::new("measured", env!("CARGO_PKG_VERSION"))
            .subscribe(subscription)
            .read(PODS, pods())
            .request(gvr("", "v1", "configmaps"), &["patch"]);
        Ok(if settings.stateless { description.stateless() } else { description })
    }

    fn start() -> Result<Self, Failure> {
        let settings = Settings::read()?;
        Ok(Self { settings, latency: Latency::default(), n_updates: 0, pod: None })
    }
}

impl Handler for Measured {
    fn on_add(&mut self, added: &Added) -> Result<(), Failure> {
        if self.pod.is_none() {
            self.pod = Some(key(&added.object.namespace, &added.object.name));
        }
        Ok(())
    }

    fn on_update(&mut self, updated: &Updated) -> Result<(), Failure> {
        self.n_updates = self.n_updates.wrapping_add(1);
        match self.settings.work {
            Work::Nothing => {}
            Work::Pull => {
                event::fields(event::Version::New, &["/metadata/resourceVersion", NODE])?;
            }
            Work::Mirror => self.mirror(updated)?,
            Work::Write => write(updated)?,
            Work::Trap => assert!(!updated.object.resource_version.ends_with('0'), "as configured"),
        }
        if let Some(schedule) = &self.settings.schedule {
            let now = clock::now();
            let now_ms = f64::from(now.seconds) * 1_000.0 + f64::from(now.nanoseconds / 1_000_000);
            let changed = self.latency.add(schedule.latency_ms(&updated.object.resource_version, now_ms));
            self.report_latency(changed)?;
        }
        Ok(())
    }

    fn on_synced(&mut self, _: &Synced) -> Result<(), Failure> {
        if let (Some(pod), 1..) = (&self.pod, self.settings.gets) {
            let begun = clock::elapsed_ms();
            for _ in 0..self.settings.gets {
                cache::get(PODS, pod, Select::Fields(&[NODE]))?;
            }
            let us_per_get = (clock::elapsed_ms() - begun) * 1_000.0 / f64::from(self.settings.gets);
            info!("gets", "us-per-get" = us_per_get);
        }
        Ok(())
    }
}

impl Measured {
    fn report_latency(&self, buckets: Range<usize>) -> Result<(), Failure> {
        if buckets.is_empty() {
            return Ok(());
        }
        metrics::gauge_set("latency_longest_ms", self.latency.longest(), &[])?;
        for (bound, count) in self.latency.buckets(buckets) {
            let labels = [Entry { name: "up_to_ms".to_owned(), value: bound.to_string() }];
            metrics::gauge_set("latency", f64::from(count), &labels)?;
        }
        Ok(())
    }

    fn mirror(&self, updated: &Updated) -> Result<(), Failure> {
        let pod = key(&updated.object.namespace, &updated.object.name);
        cache::get(PODS, &pod, Select::Fields(&["/metadata/labels", NODE]))?;
        if self.n_updates % UPDATES_PER_WRITE == 0 { write(updated) } else { Ok(()) }
    }
}

fn write(updated: &Updated) -> Result<(), Failure> {
    let (namespace, name) = (&updated.object.namespace, &updated.object.name);
    let copy = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name},
        "data": {"version": updated.object.resource_version},
    });
    client::apply(&gvr("", "v1", "configmaps"), &key(namespace, name), &copy, true, &client::ANY)?;
    Ok(())
}

fn key(namespace: &str, name: &str) -> ObjectKey {
    oarlock_sdk::key(namespace, name)
}

oarlock_sdk::export_handler!(Measured);
