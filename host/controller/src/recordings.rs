//! Which plugins are recorded, and in which files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use oarlock_plugin::record;

use crate::shadow;
use crate::tasks::Tasks;

/// How long the writer of a record waits at the host's end for the last calls.
const LAST_CALLS: Duration = Duration::from_secs(2);

/// How often a file of the same name is avoided by a number.
const MOST_FILES: u32 = 10_000;

/// Configures the records of plugins.
#[derive(Debug, Clone)]
pub struct RecordConfig {
    /// A file, a folder (it exists, or the path ends in `/`), or a path with `{plugin}`. A file without
    /// `{plugin}` needs `plugin`.
    pub path: PathBuf,
    /// The only plugin that is recorded.
    pub plugin: Option<String>,
    /// The maximum size of a file, in bytes.
    pub limit: u64,
    /// Records values of Secrets as they are.
    pub secrets: bool,
}

// === impl RecordConfig ===

impl RecordConfig {
    /// Returns whether each plugin gets a file of its own.
    #[must_use]
    pub fn is_for_several(&self) -> bool {
        let path = self.path.to_string_lossy();
        path.ends_with('/') || path.contains("{plugin}") || self.path.is_dir()
    }

    /// Starts the record of a plugin. Without a file that can be written, the plugin runs without a record.
    pub(crate) fn start(&self, tasks: &Tasks, plugin: &Arc<str>) -> Option<record::Recorder> {
        let is_other = self.plugin.as_ref().is_some_and(|only| **only != **plugin);
        if is_other || shadow::serving_of(plugin).is_some() {
            return None;
        }
        if self.plugin.is_none() && !self.is_for_several() {
            tracing::warn!(%plugin, file = %self.path.display(), "the plugin is not recorded: the file is for one plugin");
            return None;
        }
        let (recorder, writer) = match self.create(plugin) {
            Ok(created) => created,
            Err(error) => {
                tracing::error!(%plugin, path = %self.path.display(), %error, "the plugin is not recorded");
                return None;
            }
        };
        let file = recorder.progress().view().file;
        tracing::info!(%plugin, file = %file.display(), "the plugin is recorded");
        let name = plugin.clone();
        let panicked = plugin.clone();
        tasks.spawn_contained(
            format!("record of {plugin}"),
            |token| async move {
                let stop = async {
                    token.cancelled().await;
                    tokio::time::sleep(LAST_CALLS).await;
                };
                if let Err(error) = writer.run(stop).await {
                    tracing::error!(plugin = %name, file = %file.display(), %error, "the record ends: the file cannot be written");
                }
            },
            move |message| tracing::error!(plugin = %panicked, message, "the record ends: its writer panicked"),
        );
        Some(recorder)
    }

    /// Creates the file, under the first name that is free.
    fn create(&self, plugin: &Arc<str>) -> std::io::Result<(record::Recorder, record::Writer)> {
        let first = self.file(plugin);
        if let Some(folder) = first.parent().filter(|it| !it.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)?;
        }
        let mut number = 1;
        loop {
            let config = record::Config {
                file: numbered(&first, number),
                limit: self.limit,
                secrets: self.secrets,
                plugin: plugin.clone(),
                host: env!("CARGO_PKG_VERSION"),
            };
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
    use super::*;

    fn config(path: &str) -> RecordConfig {
        RecordConfig { path: path.into(), plugin: None, limit: 1 << 20, secrets: false }
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
        let names = [(); 3].map(|()| config.create(&plugin).unwrap().0.progress().view().file);
        let names = names.map(|it| it.file_name().unwrap().to_string_lossy().into_owned());
        assert_eq!(names, ["mirror.record", "mirror.2.record", "mirror.3.record"]);
        assert_eq!(numbered(Path::new("a/b"), 2), Path::new("a/b.2"));
    }
}
