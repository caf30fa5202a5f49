//! One plugin in detail, in the form of `kubectl describe`.

use std::fmt::Display;
use std::time::Duration;

use oarlock_controller::report::{Counted, OneLine, with_object_names};

use crate::age::Age;
use crate::table::Table;
use crate::view::{PluginView, QueueView, RecordView, RecordedError, SubscriptionView, bytes, short};

/// The width of the names of fields.
const WIDTH: usize = 18;

/// A text of named fields and indented tables.
#[derive(Default)]
struct Description(String);

/// Returns the description of a plugin, with its shadow, if it has one.
pub(super) fn text(plugin: &PluginView, shadow: Option<&PluginView>) -> String {
    let mut text = Description::default();
    text.field("Name", &plugin.name);
    text.field("Phase", super::phase(plugin));
    text.field("File", with_object_names(&plugin.file));
    text.field("Component", &plugin.component);
    text.field("Service account", &plugin.service_account);
    text.field("Generation", plugin.generation);
    text.field("Version", plugin.version.as_deref().unwrap_or("<none>"));
    text.field("Digest", plugin.digest.as_deref().unwrap_or("<none>"));
    if !plugin.waits_for.is_empty() {
        text.field("Waits for", plugin.waits_for.join("; "));
    }
    text.error("Newest refused", plugin.refused.as_ref());
    text.error("Last error", plugin.last_error.as_ref());
    text.generations(plugin);
    text.subscriptions(plugin);
    text.usage(plugin);
    text.record(plugin);
    text.shadow(plugin, shadow);
    text.0
}

fn waiting(n: u64) -> String {
    if n == 1 { "1 waits".to_owned() } else { format!("{n} wait") }
}

// === impl Description ===

impl Description {
    fn field(&mut self, name: &str, value: impl Display) {
        self.0 += &format!("{:WIDTH$}{}\n", format!("{name}:"), OneLine(value));
    }

    /// Adds a field of a section.
    fn field_of_section(&mut self, name: &str, value: impl Display) {
        let width = WIDTH - 2;
        self.0 += &format!("  {:width$}{}\n", format!("{name}:"), OneLine(value));
    }

    fn error(&mut self, name: &str, error: Option<&RecordedError>) {
        if let Some(RecordedError { time, message }) = error {
            let message = with_object_names(message);
            self.field(name, format_args!("{} ago: {message}", Age(time.elapsed())));
        }
    }

    fn table(&mut self, name: &str, table: &Table) {
        self.0 += &format!("{name}:\n");
        if table.is_empty() {
            self.0 += "  <none>\n";
            return;
        }
        for line in table.lines(true) {
            self.0 += &format!("  {line}\n");
        }
    }

    fn generations(&mut self, plugin: &PluginView) {
        let mut table = Table::new(&["NUMBER", "STATE", "SINCE", "VERSION", "DIGEST", "LOST", "REASON"]);
        for it in &plugin.generations {
            table.row([
                it.number.to_string(),
                if it.on_probation { format!("{},on-probation", it.state) } else { it.state.clone() },
                it.since.map(|since| Age(since.elapsed()).to_string()).unwrap_or_default(),
                it.version.clone().unwrap_or_default(),
                it.digest.as_deref().map(super::short_digest).unwrap_or_default(),
                it.instances_lost.to_string(),
                it.reason.clone(),
            ]);
        }
        self.table("Generations", &table);
    }

    fn subscriptions(&mut self, plugin: &PluginView) {
        let headers =
            ["NAME", "RESOURCE", "NAMESPACES", "STATE", "WAITING", "OLDEST", "PARKED", "DELIVERED", "MERGED"];
        let mut table = Table::new(&headers);
        for it in &plugin.subscriptions {
            let state = match it {
                SubscriptionView { forbidden: Some(reason), .. } => format!("forbidden: {reason}"),
                SubscriptionView { paused: Some(reason), .. } => format!("paused: {reason}"),
                SubscriptionView { synced: true, .. } => "synced".to_owned(),
                SubscriptionView { synced: false, .. } => "syncing".to_owned(),
            };
            table.row([
                it.name.clone(),
                it.resource.clone(),
                it.namespaces.as_ref().map_or_else(|| "<all>".to_owned(), |names| names.join(",")),
                state,
                it.backlog.pending.to_string(),
                short(Duration::from_millis(it.backlog.oldest_ms)),
                it.backlog.parked.to_string(),
                it.backlog.delivered.to_string(),
                it.backlog.merged.to_string(),
            ]);
        }
        self.table("Subscriptions", &table);
        if let Some(queue) = &plugin.work_queue {
            let oldest = match (queue.n_ready(), queue.oldest_ms) {
                // A host of an earlier version does not know the age.
                (0, _) | (_, 0) => String::new(),
                (_, age) => format!(", the oldest for {}", short(Duration::from_millis(age))),
            };
            let delayed = match queue.delayed {
                1 => "1 waits for its time".to_owned(),
                n => format!("{n} wait for their time"),
            };
            self.field(
                "Work queue",
                format_args!(
                    "{} due{oldest}, {delayed}, {} parked",
                    Counted(queue.n_ready(), "key"),
                    queue.parked
                ),
            );
        }
    }

    fn usage(&mut self, plugin: &PluginView) {
        let usage = &plugin.usage;
        let seconds = |ns: u64| short(Duration::from_nanos(ns));
        self.field("Calls", format_args!("{}, {} failed", usage.calls, usage.failures));
        let p99 = |it: Option<Duration>| it.map_or_else(|| "<none>".to_owned(), short);
        self.field("Call p99", p99(usage.call_duration.p99()));
        self.field("Queue wait p99", p99(usage.queue_duration.p99()));
        self.field(
            "CPU time",
            format_args!(
                "{} in the guest, {} in the host",
                seconds(usage.guest_cpu_ns),
                seconds(usage.host_cpu_ns)
            ),
        );
        self.field(
            "Wall time",
            format_args!(
                "{} in calls, {} of it in imports",
                seconds(usage.call_wall_ns),
                seconds(usage.import_wait_ns)
            ),
        );
        self.field(
            "Instances",
            format_args!(
                "{}, {} lost, {}",
                usage.instances,
                plugin.instances_lost,
                Counted(usage.restarts, "restart")
            ),
        );
        self.field(
            "Memory",
            format_args!(
                "{} linear, {} of {} kept by the host",
                bytes(usage.linear_memory_bytes),
                bytes(plugin.host_bytes.used),
                bytes(plugin.host_bytes.limit)
            ),
        );
        self.field(
            "Copied",
            format_args!(
                "{} to the guest, {} from it",
                bytes(usage.bytes_to_guest),
                bytes(usage.bytes_from_guest)
            ),
        );
        self.field("Cache reads", usage.cache_reads);
        self.field("API requests", usage.requests);
        let mut writes = Table::new(&["VERB", "CODE", "COUNT"]);
        for it in &usage.writes {
            writes.row([it.verb.clone(), it.code.clone(), it.count.to_string()]);
        }
        self.table("Writes", &writes);
    }

    fn record(&mut self, plugin: &PluginView) {
        let Some(RecordView { file, bytes: n_bytes, limit, calls, lost, exact, state, reason }) =
            &plugin.record
        else {
            return self.field("Recorded", "no");
        };
        let secrets = if *exact { ", with the values of Secrets" } else { "" };
        let reason = reason.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
        self.field(
            "Recorded",
            format_args!(
                "{file}: {state}, {}, {lost} lost, {} of {}{secrets}{reason}",
                Counted(*calls, "call"),
                bytes(*n_bytes),
                bytes(*limit)
            ),
        );
    }

    /// Adds what runs as the shadow, and how its writes compare. It has hashes of values, and no values.
    fn shadow(&mut self, plugin: &PluginView, shadow: Option<&PluginView>) {
        let Some(shadow) = shadow else { return };
        self.field("Shadow", &shadow.name);
        self.field_of_section("Phase", super::phase(shadow));
        self.field_of_section("Component", &shadow.component);
        self.field_of_section("Version", shadow.version.as_deref().unwrap_or("<none>"));
        self.field_of_section("Digest", shadow.digest.as_deref().unwrap_or("<none>"));
        for (name, error) in [("Newest refused", &shadow.refused), ("Last error", &shadow.last_error)] {
            if let Some(RecordedError { time, message }) = error {
                self.field_of_section(name, format_args!("{} ago: {message}", Age(time.elapsed())));
            }
        }
        let delivered: u64 = shadow.subscriptions.iter().map(|it| it.backlog.delivered).sum();
        let pending: u64 = shadow.subscriptions.iter().map(|it| it.backlog.pending).sum();
        let n_keys = shadow.work_queue.as_ref().map_or(0, QueueView::n_ready);
        self.field_of_section(
            "Events",
            match n_keys {
                1 => format!("{delivered} delivered, {}, 1 key waits", waiting(pending)),
                n_keys => format!("{delivered} delivered, {}, {n_keys} keys wait", waiting(pending)),
            },
        );
        let usage = &shadow.usage;
        self.field_of_section("Calls", format_args!("{}, {} failed", usage.calls, usage.failures));
        let Some(it) = &plugin.shadow else {
            return self.field_of_section("Compared", "nothing: no version of the shadow serves");
        };
        self.field_of_section(
            "Compared",
            format_args!("{}: {} equal, {} different", Counted(it.compared, "write"), it.equal, it.different),
        );
        self.field_of_section(
            "Not compared",
            format_args!(
                "{} by the plugin alone, {} by the shadow alone, {} for a counterpart, {} left out",
                it.only_serving,
                it.only_shadow,
                waiting(it.waiting),
                it.left_out
            ),
        );
        let mut table = Table::new(&["VERB", "OBJECT", "PATH", "SERVING", "SHADOW"]);
        for it in &it.differences {
            table.row([
                it.verb.clone(),
                it.object.clone(),
                // The pointer to the whole body is empty.
                if it.path.is_empty() { "<body>".to_owned() } else { it.path.clone() },
                it.serving.clone().unwrap_or_default(),
                it.shadow.clone().unwrap_or_default(),
            ]);
        }
        self.table("Differences of the shadow", &table);
    }
}
