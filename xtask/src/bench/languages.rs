//! `cargo xtask bench languages`: the plugin `mirror` in each language, measured.
//!
//! The same behaviour, and so the same load: ConfigMaps that are mirrored to no namespace, so that the time
//! for each notification is that of the language, its SDK and the border, without requests.

mod table;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use oarlock_guest_build::Language;
use serde_json::Value;

use super::build::Programs;
use super::figures::Figures;
use crate::toolchain::command;
use crate::{checkout, guests, progress};

/// The table, relative to the root.
const TABLE: &str = "docs/languages-measured.md";

/// ConfigMaps, and changes of each.
const OBJECTS: u64 = 500;
const UPDATES: u64 = 20;

/// How long the last calls may take.
const LAST_CALLS: Duration = Duration::from_secs(120);

/// Measures one plugin in each language.
#[derive(clap::Args)]
pub(super) struct Languages {
    /// Prints one figure per line as JSON instead of the table.
    #[arg(long)]
    json: bool,
    /// Measures the binaries `oarlock` and `oarlock-bench` in this folder instead of building them.
    #[arg(long, value_name = "FOLDER")]
    programs: Option<PathBuf>,
}

/// A running host, which ends with this value.
struct Host(Child);

/// One of the plugins.
struct Subject {
    /// The name of the language in the figures.
    language: &'static str,
    folder: PathBuf,
    component: PathBuf,
}

// === impl Languages ===

impl Languages {
    pub(super) fn run(self) -> Result<()> {
        let Self { json, programs } = self;
        let subjects = subjects()?;
        let names: Vec<_> = subjects.iter().map(Subject::name).collect();
        guests::build(&names)?;
        let (oarlock, writer) = Programs::build_for_languages(programs.as_deref())?;
        let mut figures = Figures::default();
        for subject in &subjects {
            let mut note = |metric: &str, value: f64| {
                progress::say(format!("{}: {metric} {value:.3}", subject.language));
                figures.note(subject.language, metric, value);
            };
            note("lines_of_code", lines_of_code(&subject.folder)? as f64);
            note("component_kib", fs::metadata(&subject.component)?.len() as f64 / 1024.0);
            note("build_ms", guests::build_again(&subject.name())?.as_secs_f64() * 1e3);
            inspect(&oarlock, subject, &mut note)?;
            notifications(&oarlock, &writer, subject, &mut note)?;
        }
        let languages: Vec<_> = subjects.iter().map(|it| it.language).collect();
        let table = table::of(&figures, &languages);
        fs::write(checkout::root().join(TABLE), table::page(&table))
            .with_context(|| format!("cannot write {TABLE}"))?;
        progress::say(format!("the table is also in {TABLE}"));
        super::print(&if json { figures.json() } else { table });
        Ok(())
    }
}

// === impl Subject ===

impl Subject {
    /// Returns the name of the guest.
    fn name(&self) -> String {
        self.folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Returns the plugins `mirror` and `mirror-…`, in the order in which languages are listed.
fn subjects() -> Result<Vec<Subject>> {
    let mut subjects = vec![];
    for entry in fs::read_dir(checkout::root().join("plugins"))? {
        let folder = entry?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name != "mirror" && !name.starts_with("mirror-") {
            continue;
        }
        let language = Language::of(&folder).with_context(|| format!("{name} has no project file"))?;
        let component = checkout::guests().join(format!("{name}.wasm"));
        subjects.push((language, Subject { language: language.short_name(), folder, component }));
    }
    subjects.sort_by_key(|(language, _)| *language);
    Ok(subjects.into_iter().map(|(_, subject)| subject).collect())
}

/// Counts the lines of sources that are neither empty nor comments, without those of tests.
fn lines_of_code(folder: &Path) -> Result<usize> {
    let mut lines = 0;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_other = name.starts_with('.')
            || ["target", "node_modules", "cases", "tests", "test", "__pycache__"].contains(&name.as_str());
        if is_other {
            continue;
        }
        if path.is_dir() {
            lines += lines_of_code(&path)?;
        } else if is_source(&name) {
            lines += table::count(&fs::read_to_string(&path)?);
        }
    }
    Ok(lines)
}

fn is_source(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let is_test =
        stem.ends_with("_test") || stem.starts_with("test_") || stem.contains(".test") || stem == "tests";
    ["rs", "ts", "js", "py", "go", "c", "h"].contains(&extension) && !is_test
}

/// Reads the figures of `oarlock plugin inspect`, with an empty folder for compiled code.
fn inspect(oarlock: &Path, subject: &Subject, note: &mut impl FnMut(&str, f64)) -> Result<()> {
    let cache = tempfile::tempdir()?;
    let inspect = || {
        let mut inspect = Command::new(oarlock);
        inspect.args(["plugin", "inspect"]).arg(&subject.folder).arg("--cache-dir").arg(cache.path());
        let text = command::output(&mut inspect)?;
        serde_json::from_str::<Value>(&text).with_context(|| format!("not JSON: {text}"))
    };
    let number =
        |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_f64).unwrap_or_default();
    let cold = inspect()?;
    note("compile_ms", number(&cold, "/component/compileMicroseconds") / 1e3);
    let warm = inspect()?;
    note("load_compiled_ms", number(&warm, "/component/compileMicroseconds") / 1e3);
    note("start_ms", number(&warm, "/start/microseconds") / 1e3);
    note("kib_after_start", number(&warm, "/start/memoryBytes") / 1024.0);
    Ok(())
}

/// Runs the plugin, and has it handle the notifications of ConfigMaps.
fn notifications(
    oarlock: &Path,
    writer: &Path,
    subject: &Subject,
    note: &mut impl FnMut(&str, f64),
) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    let mut command = Command::new(oarlock);
    command.args(["dev", "--no-build", "--output", "json", "--admin-addr", "127.0.0.1:0"]);
    command.arg("--kubeconfig").arg(&kubeconfig).arg(&subject.folder);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("stdout is piped")?).lines();
    let _host = Host(child);
    let mut admin = None;
    let mut serves = false;
    while admin.is_none() || !serves {
        let line: Value = serde_json::from_str(&lines.next().context("the host ended")??)?;
        match line["event"].as_str() {
            Some("admin-listening") => admin = line["address"].as_str().map(|it| it.replace("http://", "")),
            Some("plugin-loaded") => serves = true,
            Some("plugin-refused") => bail!("the host refuses the plugin: {line}"),
            _ => {}
        }
    }
    // The host must not wait for its output to be read.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    let control = oarlock_measure::Control::new(&format!("http://{}", admin.unwrap_or_default()))?;
    let mut write = Command::new(writer);
    write.args(["objects", "--objects", &OBJECTS.to_string(), "--updates", &UPDATES.to_string()]);
    command::run(write.arg("--kubeconfig").arg(&kubeconfig))?;

    let wanted = (OBJECTS * (UPDATES + 1)) as f64;
    let until = Instant::now() + LAST_CALLS;
    let page = loop {
        let page = control.get_text("/metrics")?;
        // Changes of one object may merge, but each object is added.
        if sum(&page, "oarlock_plugin_calls_total", "on-add") >= OBJECTS as f64 && is_idle(&control)? {
            break page;
        }
        ensure!(Instant::now() < until, "the plugin handled not all of {wanted} changes: {page}");
        std::thread::park_timeout(Duration::from_millis(200));
    };
    let calls = sum(&page, "oarlock_plugin_calls_total", "on-add")
        + sum(&page, "oarlock_plugin_calls_total", "on-update");
    let cpu = |place: &str| sum(&page, "oarlock_plugin_cpu_seconds_total", place) * 1e6 / calls;
    note("guest_us_per_notification", cpu("guest"));
    note("host_us_per_notification", cpu("host"));
    note("kib_after_work", sum(&page, "oarlock_plugin_linear_memory_bytes", "") / 1024.0);
    Ok(())
}

/// Returns whether no notification waits.
fn is_idle(control: &oarlock_measure::Control) -> Result<bool> {
    let page: Value = control.get("/plugins")?;
    let mut subscriptions = page["plugins"].as_array().into_iter().flatten();
    let pending = subscriptions.all(|plugin| {
        let mut all = plugin["subscriptions"].as_array().into_iter().flatten();
        all.all(|it| it["backlog"]["pending"] == 0)
    });
    Ok(pending)
}

/// Returns the sum of the samples of a metric one of whose labels has this value.
fn sum(page: &str, name: &str, label: &str) -> f64 {
    let samples = page.lines().filter_map(|line| line.strip_prefix(name));
    let samples = samples.filter(|rest| rest.starts_with('{') && rest.contains(&format!("{label}\"")));
    samples.filter_map(|rest| rest.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
