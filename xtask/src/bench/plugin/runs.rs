//! The runs with one reading each: the path of an event, reads, loads, traps, memory, idle time, start.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use oarlock_measure::Control;
use serde_json::{Value, json};

use super::host::{Host, PluginFile, pause};
use super::{Bench, peers};
use crate::bench::figures::Figures;
use crate::bench::plan::Server;

/// The fields that every update changes, or that an update may not change.
const CHANGING: [&str; 2] = ["/metadata/resourceVersion", "/spec/nodeName"];
const CONSTANT: [&str; 2] = ["/metadata/name", "/spec/nodeName"];

/// A selector that matches no Pod.
const NONE: &str = "app=there-is-none";

/// The Pods of most runs.
pub(super) const PODS: u64 = 10_000;

/// The result of handling all events of a server.
struct Handled {
    cpu: Duration,
    events: u64,
    /// Notifications that plugins have handled.
    handled: u64,
    merged: u64,
}

/// Returns a plugin of this name with the measured component.
pub(super) fn measured(name: impl Into<String>, config: Value) -> PluginFile {
    PluginFile::new(name, &Bench::component("measured"), config)
}

/// Returns so many equal plugins.
fn many(n: usize, config: &Value) -> Vec<PluginFile> {
    (0..n).map(|n| measured(format!("measured-{n}"), config.clone())).collect()
}

/// Returns the plugin with an account of its own.
fn with_own_account(file: PluginFile) -> PluginFile {
    let account = json!({"namespace": "default", "name": file.name});
    file.with("serviceAccount", account)
}

impl Bench {
    pub(super) fn server(&self, pods: u64, events: u64) -> Result<Server> {
        let arguments = [("--pods", pods), ("--events", events)];
        let arguments = arguments.iter().flat_map(|(name, value)| [(*name).to_owned(), value.to_string()]);
        Server::start(&self.programs, &arguments.collect::<Vec<_>>())
    }

    /// Starts a host with these plugins, and waits until they have handled their initial adds.
    pub(super) fn start(&self, server: &Server, files: &[PluginFile]) -> Result<Host> {
        let mut host = Host::start(&self.paths, server.url(), files, "cache")?;
        host.wait_for_plugins(files.len())?;
        host.settle()?;
        Ok(host)
    }

    /// Starts a host with these plugins, and has it handle the events.
    fn events(&self, server: &Server, events: u64, files: &[PluginFile]) -> Result<Handled> {
        let control = Control::new(server.url())?;
        let plan = control.prepare("pods", "json", Some(events))?;
        let mut host = self.start(server, files)?;
        let (delivered, _) = host.handled()?;
        let before = host.cpu()?;
        control.post("start")?;
        host.settle()?;
        let cpu = host.cpu()? - before;
        let (handled, merged) = host.handled()?;
        Ok(Handled { cpu, events: plan.events, handled: handled - delivered, merged })
    }
}

/// Measures the path of an event from the stream to the guest.
pub(super) fn path(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let n_events = if bench.is_quick { 50_000 } else { 150_000 };
    let server = bench.server(PODS, n_events)?;
    let declared = json!({"fields": CHANGING});
    let skipped = json!({"fields": CONSTANT});
    for _ in 0..bench.rounds {
        let run = |events, n, config: &Value| bench.events(&server, events, &many(n, config));
        let none = run(n_events, 1, &json!({"selector": NONE, "fields": CHANGING}))?;
        let nothing = run(n_events, 1, &json!({}))?;
        let pulled = run(n_events, 1, &json!({"work": "pull"}))?;
        let one = run(n_events, 1, &declared)?;
        let no_change = run(n_events, 1, &skipped)?;
        // As many events as above: what a run costs once, such as the first change of each Pod, must be the
        // same share of both.
        let eleven = run(n_events, 11, &declared)?;
        let eleven_nothing = run(n_events, 11, &json!({}))?;
        let eleven_skipped = run(n_events, 11, &skipped)?;
        ensure!(no_change.handled == 0, "an update that changes no declared field was delivered");
        ensure!(none.handled == 0, "a Pod that does not match was delivered");

        let us = |it: &Handled| it.cpu.as_secs_f64() * 1e6 / it.events as f64;
        let per_handled =
            |it: &Handled| (it.cpu.as_secs_f64() * 1e6 - us(&none) * it.events as f64) / it.handled as f64;
        let per_cpu_second = |it: &Handled| it.handled as f64 / it.cpu.as_secs_f64();
        let further = |eleven: &Handled, one: &Handled| (us(eleven) - us(one)) / 10.0;
        for (metric, value) in [
            ("whole_path_events_per_cpu_second", per_cpu_second(&one)),
            ("whole_path_events_per_cpu_second_nothing", per_cpu_second(&nothing)),
            ("whole_path_events_per_cpu_second_pulled", per_cpu_second(&pulled)),
            ("unmatched_events_per_cpu_second", none.events as f64 / none.cpu.as_secs_f64()),
            ("merged_share", one.merged as f64 / one.events as f64),
            ("guest_overhead_us_per_notification", per_handled(&one)),
            ("guest_overhead_us_per_notification_nothing", per_handled(&nothing)),
            ("guest_overhead_us_per_notification_pulled", per_handled(&pulled)),
            ("skipped_update_us_first_plugin", us(&no_change) - us(&none)),
            ("skipped_update_us_per_plugin", further(&eleven_skipped, &no_change)),
            ("further_plugin_us_per_event", further(&eleven, &one)),
            ("further_plugin_us_per_event_nothing", further(&eleven_nothing, &nothing)),
        ] {
            Bench::note(figures, metric, value);
        }
        peers::path(bench, &server, n_events, figures)?;
    }
    Ok(())
}

/// Measures cached reads of a guest, of a host that does nothing else meanwhile.
pub(super) fn reads(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let server = bench.server(PODS, 1)?;
    let control = Control::new(server.url())?;
    // Fewer reads than take the second after which a text is compressed.
    let reading = |name: &str, at: &str| {
        let config = json!({"gets": 100_000, "getsAt": at});
        measured(name, config).with("limits", json!({"callDeadline": "60s"}))
    };
    for _ in 0..bench.rounds {
        // The first plugin reads a Pod that has just changed, the second one a Pod that is compressed.
        control.prepare("pods", "json", Some(1))?;
        let mut host = bench.start(&server, &[reading("plain", "update")])?;
        control.post("start")?;
        let mut note = |host: &mut Host, metric: &str| {
            let line = host.wait_for("the line with the time of a get", |line| line["message"] == "gets")?;
            let us = line["pairs"]["us-per-get"].as_str().and_then(|text| text.parse().ok());
            Bench::note(figures, metric, us.with_context(|| format!("no time of a get in {line}"))?);
            anyhow::Ok(())
        };
        note(&mut host, "cached_get_field_us")?;
        host.settle()?;
        host.write(&reading("compressed", "synced"))?;
        note(&mut host, "cached_get_field_us_compressed")?;
    }
    Ok(())
}

/// Measures the time from reading the file of a compiled plugin to the switch.
pub(super) fn load(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let server = bench.server(100, 1)?;
    let mut host = bench.start(&server, &[measured("base", json!({}))])?;
    for (language, guest) in [("rust", "measured"), ("js", "hello-ts"), ("python", "hello-python")] {
        // Another digest than that of the base, so that the code comes from disk.
        let component = distinct(&bench.paths.folder, &Bench::component(guest), 0)?;
        let file = PluginFile::new(format!("loaded-{language}"), &component, json!({}))
            .with("limits", json!({"memory": "512Mi"}));
        for round in 0..=bench.rounds.max(3) {
            host.write(&file)?;
            let loaded = host.wait_for("the load of the plugin", |line| {
                line["event"] == "plugin-loaded" && line["plugin"] == *file.name
            })?;
            host.settle()?;
            host.remove(&file.name)?;
            host.wait_for("the end of the plugin", |line| {
                line["event"] == "plugin-unloaded" && line["plugin"] == *file.name
            })?;
            // The first one is compiled.
            if round > 0 {
                let us = loaded["took-us"].as_f64().or_else(|| loaded["took-ms"].as_f64().map(|ms| ms * 1e3));
                let us = us.with_context(|| format!("no time in {loaded}"))?;
                Bench::note(figures, &format!("load_compiled_ms_{language}"), us / 1e3);
            }
        }
    }
    Ok(())
}

/// Measures the time from a trap until a fresh instance serves.
pub(super) fn traps(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let server = bench.server(100, 2_000)?;
    let control = Control::new(server.url())?;
    control.prepare("pods", "json", Some(2_000))?;
    let mut host = bench.start(&server, &[measured("traps", json!({"work": "trap", "stateless": true}))])?;
    control.post("start?rate=100")?;
    for _ in 0..if bench.is_quick { 10 } else { 50 } {
        let line = host.wait_for("a fresh instance", |line| line["event"] == "instance-restarted")?;
        let us = line["took-us"].as_f64().with_context(|| format!("no time in {line}"))?;
        figures.note("oarlock", "replace_trapped_instance_ms_rust", us / 1e3);
    }
    Ok(())
}

/// Plugins of one component, beside a first one, of which the memory of one is the mean.
const FURTHER: usize = 400;

/// Measures the memory of further plugins: the resident memory, and of idle ones the anonymous memory, since
/// they are so small that the executable's pages would count.
pub(super) fn memory(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let n_events = 5_000;
    let server = bench.server(PODS, n_events)?;
    let config = json!({"fields": CHANGING});
    let stateless = json!({"fields": CHANGING, "stateless": true});
    for _ in 0..bench.rounds {
        let worked = |files: &[PluginFile], wait: Duration| -> Result<Host> {
            let control = Control::new(server.url())?;
            control.prepare("pods", "json", Some(n_events))?;
            let mut host = bench.start(&server, files)?;
            control.post("start")?;
            host.settle()?;
            pause(wait);
            host.settle()?;
            Ok(host)
        };
        let further = |one: u64, more: u64| (more as f64 - one as f64) / 1024.0 / FURTHER as f64;
        let one = worked(&many(1, &config), Duration::ZERO)?.resident()?;
        let more = worked(&many(1 + FURTHER, &config), Duration::ZERO)?.resident()?;
        Bench::note(figures, "kib_per_further_plugin", further(one, more));
        let dropped = |n| {
            let file = |file: PluginFile| file.with("instances", json!({"idleAfter": "2s"}));
            many(n, &stateless).into_iter().map(file).collect::<Vec<_>>()
        };
        let idle = |files: &[PluginFile]| worked(files, Duration::from_secs(5))?.anonymous();
        let one = idle(&dropped(1))?;
        Bench::note(figures, "kib_per_idle_stateless_plugin", further(one, idle(&dropped(1 + FURTHER))?));
        let own: Vec<_> = dropped(1 + FURTHER).into_iter().map(with_own_account).collect();
        Bench::note(figures, "kib_per_idle_stateless_plugin_with_own_account", further(one, idle(&own)?));
    }
    let distinct: Vec<_> = (0..101)
        .map(|n| {
            let component = distinct(&bench.paths.folder, &Bench::component("measured"), n)?;
            Ok(PluginFile::new(format!("distinct-{n}"), &component, config.clone()))
        })
        .collect::<Result<_>>()?;
    // The first host compiles.
    drop(bench.start(&server, &distinct)?);
    for _ in 0..bench.rounds {
        let mut resident = Vec::new();
        for n in [1, 101] {
            let control = Control::new(server.url())?;
            control.prepare("pods", "json", Some(n_events))?;
            let mut host = bench.start(&server, &distinct[..n])?;
            control.post("start")?;
            host.settle()?;
            resident.push(host.resident()? as f64 / 1024.0);
        }
        Bench::note(figures, "kib_per_further_plugin_distinct", (resident[1] - resident[0]) / 100.0);
    }
    Ok(())
}

/// Measures the CPU time of idle plugins.
pub(super) fn idle(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let server = bench.server(PODS, 1)?;
    let seconds = if bench.is_quick { 10 } else { 20 };
    // After its probation a version is stored as the last good one, which is not part of being idle.
    let at_rest = |file: PluginFile| file.with("probation", json!({"time": "1s"}));
    let plugins = |n| many(n, &json!({"fields": CHANGING})).into_iter().map(at_rest).collect::<Vec<_>>();
    let runs = [
        ("0_plugins", Vec::new()),
        ("100_plugins", plugins(100)),
        ("100_accounts", plugins(100).into_iter().map(with_own_account).collect()),
    ];
    for (name, files) in (0..bench.rounds).flat_map(|_| &runs) {
        let mut host = bench.start(&server, files)?;
        pause(Duration::from_secs(5));
        let before = host.cpu()?;
        pause(Duration::from_secs(seconds));
        let ms_per_s = (host.cpu()? - before).as_secs_f64() * 1e3 / seconds as f64;
        Bench::note(figures, &format!("idle_cpu_ms_per_s_{name}"), ms_per_s);
        Bench::note(figures, &format!("threads_{name}"), host.n_threads()? as f64);
    }
    Ok(())
}

/// Measures the start of a host with 100 distinct components: with and without compiled code.
pub(super) fn start(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let server = bench.server(100, 1)?;
    let files: Vec<_> = (0..100)
        .map(|n| {
            let component = distinct(&bench.paths.folder, &Bench::component("hello-rust"), 1_000 + n)?;
            Ok(PluginFile::new(format!("cold-{n}"), &component, json!({})))
        })
        .collect::<Result<_>>()?;
    for _ in 0..bench.rounds {
        for (metric, is_cold) in
            [("start_100_distinct_cpu_s_cold", true), ("start_100_distinct_cpu_s", false)]
        {
            let began = Instant::now();
            let cold = bench.paths.folder.join("cold");
            if is_cold && cold.exists() {
                fs::remove_dir_all(&cold)?;
            }
            let mut host = Host::start(&bench.paths, server.url(), &files, "cold")?;
            host.wait_for_plugins(files.len())?;
            let wall = began.elapsed();
            let cpu = host.cpu()? + host.children_cpu()?;
            Bench::note(figures, metric, cpu.as_secs_f64());
            Bench::note(figures, &metric.replace("_cpu_s", "_wall_s"), wall.as_secs_f64());
        }
    }
    Ok(())
}

/// Measures the CPU time of single events at a steady rate: with no plugin that matches, with one, with ten.
///
/// The first events are not measured: most of them are the first change of their Pod, whose old text is
/// decompressed for that, and dictionaries are trained.
pub(super) fn paced(bench: &Bench, figures: &mut Figures) -> Result<()> {
    const RATE: u64 = 1_000;
    let [first, seconds] = if bench.is_quick { [5, 5] } else { [20, 20] };
    // The events do not end before the last reading.
    let server = bench.server(PODS, (first + seconds + 2) * RATE)?;
    let control = Control::new(server.url())?;
    let declared = json!({"fields": CHANGING});
    let runs = [
        (0_u32, many(1, &json!({"selector": NONE, "fields": CHANGING}))),
        (1, many(1, &declared)),
        (10, many(10, &declared)),
    ];
    for _ in 0..bench.rounds {
        for (n, files) in &runs {
            control.prepare("pods", "json", None)?;
            let mut host = bench.start(&server, files)?;
            control.post(&format!("start?rate={RATE}"))?;
            pause(Duration::from_secs(first));
            let (delivered, _) = host.handled()?;
            let (before, began) = (host.cpu()?, Instant::now());
            pause(Duration::from_secs(seconds));
            let n_events = began.elapsed().as_secs_f64() * RATE as f64;
            let us = (host.cpu()? - before).as_secs_f64() * 1e6 / n_events;
            let (after, _) = host.handled()?;
            let handled = (after - delivered) as f64;
            let expected = n_events * f64::from(*n);
            ensure!((handled - expected).abs() <= expected / 20.0, "{handled} of {expected} were handled");
            Bench::note(figures, &format!("paced_event_us_{n}_plugins"), us);
        }
        peers::paced(bench, &server, seconds * RATE, RATE, figures)?;
    }
    Ok(())
}

/// Returns a copy of a component with another digest: it has one more custom section.
pub(super) fn distinct(folder: &Path, component: &Path, n: usize) -> Result<PathBuf> {
    let mut bytes = fs::read(component)?;
    let text = format!("copy {n:06}");
    let name = "bench";
    let length = u8::try_from(1 + name.len() + text.len()).context("the section is short")?;
    bytes.extend([0, length, u8::try_from(name.len())?]);
    bytes.extend(name.bytes().chain(text.bytes()));
    let stem = component.file_stem().unwrap_or_default().to_string_lossy();
    let path = folder.join(format!("{stem}-{n}.wasm"));
    fs::write(&path, bytes)?;
    Ok(path)
}

/// Returns the time so many seconds from now, in milliseconds since 1970.
pub(super) fn in_seconds(seconds: u64) -> Result<u64> {
    let at = SystemTime::now().duration_since(UNIX_EPOCH)? + Duration::from_secs(seconds);
    Ok(u64::try_from(at.as_millis())?)
}
