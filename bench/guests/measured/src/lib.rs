//! Watches Pods, and does with each update what its configuration says. `cargo xtask bench plugin` runs it.

#![deny(unsafe_code)]

mod latency;

use std::ops::Range;
use std::time::UNIX_EPOCH;

use oarlock_sdk::client::Dynamic;
use oarlock_sdk::fields::Json;
use oarlock_sdk::{
    Added, Client, Description, Failure, Fields, Handler, Lister, ObjectKey, Plugin, Request, Subscription,
    Synced, Updated, clock, config, event, gvr, info, metrics,
};
use serde::Deserialize;
use serde_json::{Value, json};

use latency::{Latency, Schedule};

/// Reads the Pods. The subscription has its name.
const PODS: Lister = Lister::new(PODS_NAME, "", "v1", "pods");
const PODS_NAME: &str = "pods";

/// A field that every Pod of the corpus has.
const NODE: &str = "/spec/nodeName";

#[derive(Fields)]
struct Node {
    #[field("/spec/nodeName")]
    _name: Json<String>,
}

#[derive(Fields)]
struct LabelsAndNode {
    #[field("/metadata/labels")]
    _labels: Json<Value>,
    #[field("/spec/nodeName")]
    _name: Json<String>,
}

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
    /// The number of cached reads that are measured.
    gets: u32,
    gets_at: GetsAt,
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

/// When the cached reads are measured, and of which Pod.
#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum GetsAt {
    /// In `on-synced`, of the first Pod.
    #[default]
    Synced,
    /// In `on-update`, of the Pod that has changed.
    Update,
}

struct Measured {
    settings: Settings,
    latency: Latency,
    n_updates: u32,
    /// The first Pod.
    pod: Option<ObjectKey>,
}

impl Settings {
    fn read() -> Result<Self, oarlock_sdk::Error> {
        config::read()
    }
}

impl Plugin for Measured {
    fn describe() -> Result<Description, String> {
        let settings = Settings::read()?;
        let fields: Vec<&str> = settings.fields.iter().map(String::as_str).collect();
        let subscription =
            Subscription::new(PODS_NAME, PODS.gvr()).label_selector(&settings.selector).pointers(&fields);
        let description = Description::new("measured", env!("CARGO_PKG_VERSION"))
            .subscribe(subscription)
            .read(PODS)
            .request(Request::new(gvr("", "v1", "configmaps"), &["patch"]));
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
                event::texts(event::Version::New, &["/metadata/resourceVersion", NODE])?;
            }
            Work::Mirror => self.mirror(updated)?,
            Work::Write => write(updated)?,
            Work::Trap => assert!(!updated.object.resource_version.ends_with('0'), "as configured"),
        }
        if self.settings.gets_at == GetsAt::Update {
            self.measure_gets(&key(&updated.object.namespace, &updated.object.name))?;
        }
        if let Some(schedule) = &self.settings.schedule {
            let now = clock::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let now_ms = now.as_secs_f64() * 1_000.0;
            let changed = self.latency.add(schedule.latency_ms(&updated.object.resource_version, now_ms));
            self.report_latency(changed)?;
        }
        Ok(())
    }

    fn on_synced(&mut self, _: &Synced) -> Result<(), Failure> {
        match &self.pod {
            Some(pod) if self.settings.gets_at == GetsAt::Synced => self.measure_gets(pod),
            _ => Ok(()),
        }
    }
}

impl Measured {
    fn measure_gets(&self, pod: &ObjectKey) -> Result<(), Failure> {
        let n_gets = self.settings.gets;
        if n_gets == 0 {
            return Ok(());
        }
        let begun = clock::elapsed();
        for _ in 0..n_gets {
            PODS.get::<Node>(pod)?;
        }
        let us_per_get = (clock::elapsed() - begun).as_secs_f64() * 1e6 / f64::from(n_gets);
        info!("gets", "us-per-get" = us_per_get);
        Ok(())
    }

    fn report_latency(&self, buckets: Range<usize>) -> Result<(), Failure> {
        if buckets.is_empty() {
            return Ok(());
        }
        metrics::set("latency_longest_ms", self.latency.longest(), &[])?;
        for (bound, count) in self.latency.buckets(buckets) {
            metrics::set("latency", f64::from(count), &[("up_to_ms", &bound.to_string())])?;
        }
        Ok(())
    }

    fn mirror(&self, updated: &Updated) -> Result<(), Failure> {
        let pod = key(&updated.object.namespace, &updated.object.name);
        PODS.get::<LabelsAndNode>(&pod)?;
        if self.n_updates % UPDATES_PER_WRITE == 0 { write(updated) } else { Ok(()) }
    }
}

fn write(updated: &Updated) -> Result<(), Failure> {
    let (namespace, name) = (&updated.object.namespace, &updated.object.name);
    let copy = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, "name": name},
        "data": {"version": updated.object.resource_version},
    });
    Client::new(gvr("", "v1", "configmaps")).force().apply(&Dynamic(copy))?;
    Ok(())
}

fn key(namespace: &str, name: &str) -> ObjectKey {
    oarlock_sdk::key(namespace, name)
}

oarlock_sdk::export_handler!(Measured);
