//! How Plugin objects are run.

use std::path::{Path, PathBuf};

use clap::Args as ClapArgs;
use oarlock_component_source::{self as component_source, Fetcher, Policy};
use oarlock_controller::plugin_resource::{self, Maxima};
use oarlock_plugin::Limits;

use crate::{failure::Failure, size::Size};

/// The arguments for Plugin objects.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Plugin objects")]
pub(crate) struct PluginObjectArgs {
    /// The folder below which the sources of type `file` are. Without it, such sources are refused; `dev`
    /// uses the current folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) component_dir: Option<PathBuf>,

    /// A YAML file that says which sources are allowed, and which must be signed. Without it, see
    /// docs/sources.md.
    #[arg(long, value_name = "FILE")]
    pub(crate) source_policy: Option<PathBuf>,

    /// The maximum size of the cache of fetched components [default: 2Gi].
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_component_bytes: Option<Size>,

    /// A YAML file with the highest `limits` that a Plugin object may set, in the form of the key `limits` of
    /// a plugin file. A limit that it does not name is not bounded further.
    #[arg(long, value_name = "FILE")]
    pub(crate) max_limits: Option<PathBuf>,

    /// The highest `concurrency` that a Plugin object may set [default: 256].
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(Maxima::highest().concurrency)))]
    pub(crate) max_concurrency: Option<u32>,

    /// The highest `weight` that a Plugin object may set [default: 1000].
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(Maxima::highest().weight)))]
    pub(crate) max_weight: Option<u32>,
}

/// The maximum size of the cache of fetched components.
const CACHE_BYTES: usize = 2 << 30;

/// The longest file of limits.
const LONGEST_FILE: u64 = 64 << 10;

// === impl PluginObjectArgs ===

impl PluginObjectArgs {
    /// Returns the first flag that was given.
    pub(crate) fn given(&self) -> Option<&'static str> {
        let Self { component_dir, source_policy, max_component_bytes, .. } = self;
        let Self { max_limits, max_concurrency, max_weight, .. } = self;
        let flags = [
            ("--component-dir", component_dir.is_some()),
            ("--source-policy", source_policy.is_some()),
            ("--max-component-bytes", max_component_bytes.is_some()),
            ("--max-limits", max_limits.is_some()),
            ("--max-concurrency", max_concurrency.is_some()),
            ("--max-weight", max_weight.is_some()),
        ];
        flags.into_iter().find(|(_, is_given)| *is_given).map(|(flag, _)| flag)
    }

    /// Reads the files, and opens the cache in this folder. Returns how Plugin objects are run by a host in a
    /// namespace that is known later.
    pub(crate) fn prepare(
        self,
        cache_dir: Option<&Path>,
    ) -> Result<impl FnOnce(&str) -> plugin_resource::Config, Failure> {
        let Self {
            component_dir,
            source_policy,
            max_component_bytes,
            max_limits,
            max_concurrency,
            max_weight,
        } = self;
        let Size(cache_bytes) = max_component_bytes.unwrap_or(Size(CACHE_BYTES));
        let Some(cache_dir) = cache_dir else {
            return Err(Failure::caller(anyhow::anyhow!("no folder for the cache of components is usable"))
                .hint("name a folder that only this user can write to, with --cache-dir"));
        };
        if let Some(missing) = component_dir.as_ref().filter(|folder| !folder.is_dir()) {
            let missing = anyhow::anyhow!("--component-dir {} is no folder", missing.display());
            return Err(Failure::caller(missing).hint("name the folder that has the components"));
        }
        let refused = |error: component_source::Error| {
            let fix = error.fix();
            Failure::caller(error).hint_if(fix)
        };
        let policy = source_policy.map_or_else(|| Ok(Policy::default()), |path| Policy::read(&path));
        let config = component_source::Config {
            cache: cache_dir.join("components"),
            cache_bytes: cache_bytes as u64,
            files: component_dir,
            policy: policy.map_err(refused)?,
        };
        let fetcher = Fetcher::new(config).map_err(refused)?;
        let limits = max_limits.map_or_else(|| Ok(Limits::highest()), |path| read(&path))?;
        let highest = Maxima::highest();
        let maxima = Maxima {
            limits,
            concurrency: max_concurrency.unwrap_or(highest.concurrency),
            weight: max_weight.unwrap_or(highest.weight),
        };
        Ok(|namespace: &str| plugin_resource::Config { fetcher, namespace: namespace.to_owned(), maxima })
    }
}

/// Reads the highest limits.
fn read(path: &Path) -> Result<Limits, Failure> {
    let unusable = |error: anyhow::Error| {
        Failure::caller(error.context(format!("--max-limits {} cannot be used", path.display())))
    };
    let refused = |error| unusable(error).hint("write it as `memory: 256Mi`, one limit per line");
    let bytes = oarlock_controller::regular_file::read(path, LONGEST_FILE)
        .map_err(|it| unusable(it.into()).hint("name a file that has the limits"))?;
    let given: serde_json::Map<String, serde_json::Value> =
        serde_norway::from_slice(&bytes).map_err(|it| refused(it.into()))?;
    // The defaults of a file are those of a plugin, so the highest ones are filled in first.
    let highest = serde_json::to_value(Limits::highest()).map_err(|it| refused(it.into()))?;
    let mut all = highest.as_object().cloned().unwrap_or_default();
    all.extend(given);
    let limits: Limits = serde_json::from_value(all.into()).map_err(|it| refused(it.into()))?;
    limits.check().map_err(|it| refused(it.into()))?;
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_limits_bounds_only_what_it_names() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("limits.yaml");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        write("memory: 64Mi\ntries: 3\n");
        assert_eq!(read(&path).unwrap(), Limits { memory: 64 << 20, tries: 3, ..Limits::highest() });
        for (text, wrong) in [
            ("memory: 1Ti", "invalid value"),
            ("ram: 1Gi", "unknown field `ram`"),
            ("tries: 0", "limits.tries: 0 is not between"),
            ("[1]", "invalid type"),
        ] {
            write(text);
            let refused = read(&path).unwrap_err().text();
            assert!(refused.contains(wrong) && refused.contains("hint: write it as"), "{text}: {refused}");
        }
        assert!(read(&dir.path().join("none")).is_err());
    }
}
