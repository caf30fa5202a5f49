//! Which plugins are recorded, and in which files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use oarlock_plugin::record::{self, Budget};
use parking_lot::Mutex;

use crate::drain::Drain;
use crate::report::{HostEvent, Reporter};
use crate::shadow;
use crate::tasks::Tasks;

/// How long the writer of a record waits at the host's end for instances, after the last call.
const LAST_CALLS: Duration = Duration::from_secs(2);

/// How often a file of the same name is avoided by a number.
const MOST_FILES: u32 = 10_000;

/// What the operator can do about a file that cannot be created or written.
pub(crate) const WRITABLE_HINT: &str =
    "free disk space, or name a path with --record that this user may write, then start the host again";

/// What the operator can do about a second plugin where the file is for one.
const ONE_PLUGIN_HINT: &str =
    "name a folder with --record, or the plugin with --record-plugin, then start the host again";

/// What the operator can do about a panic.
const BUG_HINT: &str = "report this, it is a bug of the host";

/// Configures the records of plugins.
#[derive(Debug, Clone)]
pub struct RecordConfig {
    /// A file, a folder (it exists, or the path ends in `/`), or a path with `{plugin}`. A file without
    /// `{plugin}` needs `plugin`.
    pub path: PathBuf,
    /// The only plugin that is recorded.
    pub plugin: Option<String>,
    /// The maximum size of all files of one plugin together, in bytes.
    pub limit: u64,
    /// Records values of Secrets as they are.
    pub secrets: bool,
}

/// Starts the records of one host.
pub(crate) struct Recordings {
    config: RecordConfig,
    tasks: Tasks,
    drain: Drain,
    reporter: Reporter,
    /// The budgets by the name of the plugin: one that is removed and added again has the same as before.
    budgets: Mutex<BTreeMap<Arc<str>, Budget>>,
}

// === impl RecordConfig ===

impl RecordConfig {
    /// Returns whether each plugin gets a file of its own.
    #[must_use]
    pub fn is_for_several(&self) -> bool {
        let path = self.path.to_string_lossy();
        path.ends_with('/') || path.contains("{plugin}") || self.path.is_dir()
    }

    /// Returns the file that has the place of a folder in the path, so that no record can be created.
    #[must_use]
    pub fn file_in_place_of_a_folder(&self) -> Option<PathBuf> {
        let record = self.file("{plugin}");
        let folders = record.ancestors().skip(1).filter(|it| !it.as_os_str().is_empty());
        let existing = folders.map(Path::to_owned).find(|it| it.exists());
        existing.filter(|it| !it.is_dir())
    }

    /// Returns the configuration of a file.
    fn of_file(&self, file: PathBuf, plugin: &Arc<str>, budget: &Budget) -> record::Config {
        record::Config {
            file,
            budget: budget.clone(),
            secrets: self.secrets,
            plugin: plugin.clone(),
            host: env!("CARGO_PKG_VERSION"),
        }
    }

    /// Creates the file, under the first name that is free.
    fn create(
        &self,
        plugin: &Arc<str>,
        budget: &Budget,
    ) -> std::io::Result<(record::Recorder, record::Writer)> {
        let first = self.file(plugin);
        if let Some(folder) = first.parent().filter(|it| !it.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        let mut number = 1;
        loop {
            let config = self.of_file(numbered(&first, number), plugin, budget);
            match record::Recorder::create(config) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < MOST_FILES => {
                    number += 1;
                }
                created => return created,
            }
        }
    }

    fn file(&self, plugin: &str) -> PathBuf {
        let path = self.path.to_string_lossy();
        if path.contains("{plugin}") {
            PathBuf::from(path.replace("{plugin}", plugin))
        } else if self.is_for_several() {
            self.path.join(format!("{plugin}.record"))
        } else {
            self.path.clone()
        }
    }
}

// === impl Recordings ===

impl Recordings {
    pub(crate) fn new(config: RecordConfig, tasks: Tasks, drain: Drain, reporter: Reporter) -> Self {
        Self { config, tasks, drain, reporter, budgets: Mutex::default() }
    }

    /// Starts the record of a plugin. Without a file that can be written, the plugin runs all the same, and
    /// its record has failed.
    pub(crate) fn start(&self, plugin: &Arc<str>) -> Option<record::Recorder> {
        let Self { config, tasks, drain, reporter, budgets } = self;
        let is_other = config.plugin.as_ref().is_some_and(|only| **only != **plugin);
        if is_other || shadow::serving_of(plugin).is_some() {
            return None;
        }
        let reporter = reporter.about(plugin, 0);
        if config.plugin.is_none() && !config.is_for_several() {
            let message = "the file is for one plugin, and --record-plugin names none".to_owned();
            reporter.report(failed(&config.path, message, ONE_PLUGIN_HINT));
            return None;
        }
        let budget =
            budgets.lock().entry(plugin.clone()).or_insert_with(|| Budget::new(config.limit)).clone();
        let event = HostEvent::RecordLimitReached {
            file: config.file(plugin).display().to_string(),
            limit: config.limit,
        };
        let (recorder, writer) = match config.create(plugin, &budget) {
            Ok(created) => created,
            Err(_) if budget.is_used_up() => {
                reporter.report(event);
                return None;
            }
            Err(error) => {
                let file = config.file(plugin);
                reporter.report(failed(&file, error.to_string(), WRITABLE_HINT));
                let config = config.of_file(file, plugin, &budget);
                return Some(record::Recorder::failed(config, error.to_string()));
            }
        };
        let full = reporter.clone();
        let writer = writer.when_full(move || full.report(event));
        let file = recorder.progress().view().file;
        tracing::info!(%plugin, file = %file.display(), "the plugin is recorded");
        let panicked = (reporter.clone(), file.clone(), recorder.progress());
        let drain = drain.clone();
        tasks.spawn_contained(
            format!("record of {plugin}"),
            |token| async move {
                // The writer ends by itself when the instances are gone.
                let stop = async {
                    token.cancelled().await;
                    let last_calls = async {
                        drain.ended().await;
                        tokio::time::sleep(LAST_CALLS).await;
                    };
                    let _ = tokio::time::timeout(drain.timeout() + LAST_CALLS, last_calls).await;
                };
                if let Err(error) = writer.run(stop).await {
                    reporter.report(failed(&file, error.to_string(), WRITABLE_HINT));
                }
            },
            move |panic| {
                let (reporter, file, progress) = panicked;
                let message = format!("its writer panicked: {panic}");
                reporter.report(failed(&file, message.clone(), BUG_HINT));
                progress.fail(message);
            },
        );
        Some(recorder)
    }
}

fn failed(file: &Path, message: String, hint: &'static str) -> HostEvent {
    HostEvent::RecordFailed { file: file.display().to_string(), message, hint }
}

/// Returns `a.record` for 1, and `a.2.record` for 2.
fn numbered(file: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return file.to_owned();
    }
    let text = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    match text(file.extension()) {
        extension if extension.is_empty() => {
            file.with_file_name(format!("{}.{number}", text(file.file_name())))
        }
        extension => file.with_file_name(format!("{}.{number}.{extension}", text(file.file_stem()))),
    }
}

#[cfg(test)]
mod tests {
    use oarlock_plugin::component::Digest;
    use oarlock_plugin::contract::Description;
    use oarlock_plugin::record::{EndReason, Entry, Reader, RecordState};
    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::report;

    fn config(path: &str) -> RecordConfig {
        RecordConfig { path: path.into(), plugin: None, limit: 1 << 20, secrets: false }
    }

    fn entries(file: &Path) -> Vec<Entry> {
        let mut reader = Reader::new(std::fs::File::open(file).unwrap()).unwrap();
        std::iter::from_fn(|| reader.next_entry().unwrap()).collect()
    }

    /// Records that a generation begins.
    fn generation(recorder: &record::Recorder, number: u64) {
        let description = Description {
            name: "mirror".into(),
            version: "1".into(),
            subscriptions: vec![],
            reads: vec![],
            indices: vec![],
            requests: vec![],
            schedules: vec![],
            stateless: true,
        };
        drop(recorder.generation(number, Digest::of(b"a"), &description, None));
    }

    #[test]
    fn a_path_is_a_file_a_folder_or_a_pattern() {
        let folder = tempfile::tempdir().unwrap();
        let existing = folder.path().to_str().unwrap();
        for (path, several, file) in [
            ("a.record", false, "a.record".to_owned()),
            ("records/", true, "records/mirror.record".to_owned()),
            ("r/{plugin}/x", true, "r/mirror/x".to_owned()),
            (existing, true, format!("{existing}/mirror.record")),
        ] {
            let config = config(path);
            assert_eq!((config.is_for_several(), config.file("mirror")), (several, PathBuf::from(file)));
        }
    }

    #[test]
    fn an_existing_file_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path().to_str().unwrap());
        let plugin: Arc<str> = "mirror".into();
        let budget = Budget::new(1 << 20);
        let names = [(); 3].map(|()| config.create(&plugin, &budget).unwrap().0.progress().view().file);
        let names = names.map(|it| it.file_name().unwrap().to_string_lossy().into_owned());
        assert_eq!(names, ["mirror.record", "mirror.2.record", "mirror.3.record"]);
        assert_eq!(numbered(Path::new("a/b"), 2), Path::new("a/b.2"));
    }

    #[test]
    fn a_file_in_place_of_a_folder_of_the_path_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = |end: &str| folder.path().join(end).to_str().unwrap().to_owned();
        std::fs::write(path("a"), "").unwrap();
        let in_place = |end: &str| config(&path(end)).file_in_place_of_a_folder();
        for end in ["a/b.record", "a/", "a/b/", "a/{plugin}.record", "a/{plugin}/x"] {
            assert_eq!(in_place(end), Some(folder.path().join("a")), "{end}");
        }
        for end in ["b.record", "b/c.record", "b/", "", "{plugin}.record"] {
            assert_eq!(in_place(end), None, "{end}");
        }
        assert_eq!(config("a.record").file_in_place_of_a_folder(), None);
    }

    #[tokio::test]
    async fn a_record_that_cannot_be_created_is_reported_and_counts_the_calls_that_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "").unwrap();
        let path = folder.path().join("a/{plugin}.record").display().to_string();
        let (tasks, _supervisor) = Tasks::new(CancellationToken::new());
        let (reporter, mut reports) = report::channel(report::Config::default());
        let recordings = Recordings::new(config(&path), tasks, Drain::new(Duration::ZERO), reporter);
        let recorder = recordings.start(&"mirror".into()).unwrap();
        let line = reports.next().await.unwrap();
        assert_eq!(line.plugin.as_deref(), Some("mirror"));
        let HostEvent::RecordFailed { file, message, .. } = &line.event else { panic!("{line}") };
        assert!(file.ends_with("/a/mirror.record") && !message.is_empty(), "{line}");
        let view = recorder.progress().view();
        assert_eq!((view.state, view.reason.as_ref()), (RecordState::Failed, Some(message)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_record_has_what_ends_while_the_host_drains() {
        const DRAIN: Duration = Duration::from_secs(20);
        let folder = tempfile::tempdir().unwrap();
        let plugin: Arc<str> = "mirror".into();
        // The dispatcher ends in time, never, or ends and something else keeps the record open.
        for (dispatcher_ends, record_is_left, ends_after) in
            [(true, false, 15), (false, true, 22), (true, true, 17)]
        {
            let (tasks, supervisor) = Tasks::new(CancellationToken::new());
            let (reporter, _reports) = report::channel(report::Config::default());
            let drain = Drain::new(DRAIN);
            let config = config(folder.path().to_str().unwrap());
            let recordings = Recordings::new(config, tasks.clone(), drain.clone(), reporter);
            let recorder = recordings.start(&plugin).unwrap();
            let file = recorder.progress().view().file;
            let running = drain.begin();
            let began = Instant::now();
            tasks.token().cancel();
            let ending = async move {
                tokio::time::sleep(Duration::from_secs(15)).await;
                generation(&recorder, 7);
                let _left = (record_is_left.then_some(recorder), (!dispatcher_ends).then_some(running));
                std::future::pending::<()>().await;
            };
            tokio::select! {
                ended = supervisor.run() => ended.unwrap(),
                () = ending => {}
            }
            let case = format!("{dispatcher_ends} {record_is_left}");
            assert_eq!(began.elapsed().as_secs(), ends_after, "{case}");
            let entries = entries(&file);
            assert!(
                entries.iter().any(|it| matches!(it, Entry::Generation(it) if it.generation == 7)),
                "{case}"
            );
            let Some(Entry::End(end)) = entries.last() else { panic!("{case}: {entries:?}") };
            assert_eq!((end.reason, end.lost), (EndReason::Stopped, 0), "{case}");
        }
    }

    #[tokio::test]
    async fn promise_4_a_plugin_that_is_created_again_has_the_rest_of_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let (tasks, supervisor) = Tasks::new(CancellationToken::new());
        let (reporter, mut reports) = report::channel(report::Config::default());
        let config = RecordConfig { limit: 8 << 10, ..config(path) };
        let recordings = Recordings::new(config, tasks.clone(), Drain::new(Duration::ZERO), reporter);
        let (mirror, other): (Arc<str>, Arc<str>) = ("mirror".into(), "other".into());
        let mut views = Vec::new();
        for n in 0..1_000 {
            let Some(recorder) = recordings.start(&mirror) else { break };
            generation(&recorder, n);
            views.push(recorder.progress());
        }
        let n_files = views.len();
        assert!(n_files > 1 && n_files < 8, "{n_files}");
        // It is reported, at this creation and each further one.
        assert!(recordings.start(&mirror).is_none());
        for _ in 0..2 {
            let line = reports.next().await.unwrap();
            assert_eq!(line.plugin, Some(mirror.clone()));
            let HostEvent::RecordLimitReached { file, limit } = &line.event else { panic!("{line}") };
            assert_eq!((file.as_str(), *limit), (&*format!("{path}/mirror.record"), 8 << 10));
        }
        assert_eq!(std::fs::read_dir(path).unwrap().count(), n_files);
        // Another plugin has its own limit.
        assert_eq!(recordings.start(&other).unwrap().progress().view().state, RecordState::Recording);
        tasks.token().cancel();
        supervisor.run().await.unwrap();
        let bytes: u64 = views.iter().map(|it| std::fs::metadata(it.view().file).unwrap().len()).sum();
        assert!(bytes <= 8 << 10, "{bytes}");
    }
}
