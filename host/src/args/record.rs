//! The record of plugins, for `oarlock plugin replay`.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use oarlock_controller::recordings::RecordConfig;

use crate::{failure::Failure, size::Size};

/// What is recorded, and where.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Record")]
pub(crate) struct RecordArgs {
    /// Records all calls of the plugin, and everything that crosses its border, for `oarlock plugin replay`:
    /// a file for one plugin, or a folder (`records/`) or a pattern (`records/{plugin}.record`) for several.
    /// An existing file is not overwritten: `a.2.record` is next to `a.record`.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// The only plugin to record.
    #[arg(long, requires = "record", value_name = "NAME")]
    pub(crate) record_plugin: Option<String>,

    /// The maximum size of all files of a plugin together. Its record ends there; the plugin continues.
    #[arg(long, requires = "record", default_value_t = Size(256 << 20), value_name = "SIZE")]
    pub(crate) record_limit: Size,

    /// Records values of Secrets as they are, and not pseudonyms of the same shape.
    #[arg(long, requires = "record")]
    pub(crate) record_secrets: bool,
}

// === impl RecordArgs ===

impl RecordArgs {
    /// Returns what to record. `plugins` are the names of the plugins that the host starts with.
    pub(crate) fn config(self, plugins: &[String]) -> Result<Option<RecordConfig>, Failure> {
        let Self { record, record_plugin, record_limit, record_secrets } = self;
        let Some(path) = record else { return Ok(None) };
        let mut config = RecordConfig {
            path,
            plugin: record_plugin,
            limit: record_limit.0 as u64,
            secrets: record_secrets,
        };
        if let Some(absent) = config.plugin.as_ref().filter(|it| !plugins.contains(it)) {
            tracing::warn!(plugin = %absent, "no plugin file has the name of --record-plugin; a plugin of this name is recorded when it is loaded");
        }
        if let Some(file) = config.file_in_place_of_a_folder() {
            let (path, file) = (config.path.display(), file.display());
            let error = anyhow::anyhow!("--record {path} cannot be created: {file} is a file, not a folder");
            return Err(Failure::caller(error)
                .hint("name a file in a folder, or a folder such as `--record records/`"));
        }
        if config.plugin.is_none() && !config.is_for_several() {
            let [only] = plugins else {
                let path = config.path.display();
                let n = match plugins.len() {
                    0 => "no plugin can be loaded now".to_owned(),
                    n => format!("there are {n} plugins"),
                };
                let error = anyhow::anyhow!("--record {path} is a file, and {n}");
                return Err(Failure::caller(error)
                    .hint("name a folder such as `--record records/`, or one plugin with --record-plugin"));
            };
            config.plugin = Some(only.clone());
        }
        Ok(Some(config))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(path: &str, plugin: Option<&str>) -> RecordArgs {
        RecordArgs {
            record: Some(path.into()),
            record_plugin: plugin.map(str::to_owned),
            record_limit: Size(1),
            record_secrets: false,
        }
    }

    #[test]
    fn a_file_is_for_one_plugin() {
        let (one, two) = (["a".to_owned()], ["a".to_owned(), "b".to_owned()]);
        let plugin = |args: RecordArgs, plugins: &[String]| args.config(plugins).unwrap().unwrap().plugin;
        assert_eq!(plugin(args("x.record", None), &one).as_deref(), Some("a"));
        assert_eq!(plugin(args("x.record", Some("b")), &two).as_deref(), Some("b"));
        assert_eq!(plugin(args("x/", None), &two), None);
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        let refused = args(&format!("{path}/x.record"), None).config(&one).unwrap_err().text();
        insta::assert_snapshot!(refused.replace(&path, "FILE"), @r"
        --record FILE/x.record cannot be created: FILE is a file, not a folder
        hint: name a file in a folder, or a folder such as `--record records/`
        ");
        let refused = args("x.record", None).config(&[]).unwrap_err().text();
        assert!(refused.contains("x.record is a file, and no plugin can be loaded now"), "{refused}");
        let refused = args("x.record", None).config(&two).unwrap_err().text();
        insta::assert_snapshot!(refused, @r"
        --record x.record is a file, and there are 2 plugins
        hint: name a folder such as `--record records/`, or one plugin with --record-plugin
        ");
    }
}
