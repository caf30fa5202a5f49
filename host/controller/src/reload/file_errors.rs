//! Errors of plugin files: each is reported once, and shown until it is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::Reload;
use crate::config;
use crate::report::{HostEvent, Timestamp};
use crate::status::{RecordedError, RefusedFile};

// === impl Reload ===

impl Reload {
    /// Reports new errors of files, and returns the files whose errors are gone.
    pub(super) fn report_errors(&mut self, errors: &[config::Error]) -> BTreeSet<PathBuf> {
        let mut reported = BTreeMap::new();
        let mut without_plugin = Vec::new();
        for error in errors {
            let message = match self.is_unreadable_source(error) {
                true => format!("{}. Fix: restore it, or start the host with another path", error.detail()),
                false => error.detail(),
            };
            let path = error.path().to_owned();
            let recorded = RecordedError { time: Timestamp::now(), message: message.clone() };
            let plugin = self.plugins.values().find(|plugin| plugin.newest.0.path == path);
            // The path may be that of a folder, whose plugins keep running.
            let mut affected = self.plugins.values().filter(|it| it.newest.0.path.starts_with(&path));
            let older_version_serves = affected.any(|it| it.slot.active.get().is_some());
            // An empty folder is worth a report only when the host starts.
            let was_emptied = matches!(error, config::Error::EmptyFolder { .. }) && self.has_read_files;
            if plugin.is_none() && !was_emptied {
                without_plugin
                    .push(RefusedFile { file: path.display().to_string(), message: message.clone() });
            }
            if self.reported.get(&path) != Some(&message) && !was_emptied {
                let event = HostEvent::PluginRefused {
                    file: path.display().to_string(),
                    message: message.clone(),
                    hint: None,
                    older_version_serves,
                };
                match plugin {
                    Some(plugin) => {
                        let slot = &plugin.slot;
                        slot.status.update(|status| status.refused = Some(recorded));
                        let generation = slot.active.get().map_or(0, |active| active.number);
                        self.host.reporter.about(&slot.name, generation).report(event);
                    }
                    None => self.host.reporter.report(event),
                }
            }
            reported.insert(path, message);
        }
        self.host.statuses.set_refused_files(without_plugin);
        self.has_read_files = true;
        let before = std::mem::replace(&mut self.reported, reported);
        let repaired: BTreeSet<_> =
            before.into_keys().filter(|path| !self.reported.contains_key(path)).collect();
        // A plugin file reports it by itself.
        for folder in self.sources.iter().filter(|source| repaired.contains(*source) && source.is_dir()) {
            let file = folder.display().to_string();
            self.host.reporter.report(HostEvent::SourceReadable { file });
        }
        repaired
    }

    /// Returns whether the error is that a path of the command line cannot be read.
    pub(super) fn is_unreadable_source(&self, error: &config::Error) -> bool {
        matches!(error, config::Error::Read { path, .. } if self.sources.contains(path))
    }
}
