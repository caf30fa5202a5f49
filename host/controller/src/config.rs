//! Plugin files: each names the component, the ServiceAccount, the configuration and the limits of one
//! plugin.
//!
//! This module reads and validates files and resolves paths. It does not check whether the component and the
//! ServiceAccount exist. Every error names the file, and line and key where known.

mod bounded;
mod error;
mod folder;
pub(crate) mod names;
mod ranges;
pub(crate) mod settings;
mod written;

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use oarlock_plugin::{Configuration, Limits};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Deserialize;

pub use self::error::Error;
pub(crate) use self::error::{Place, closest};
use self::folder::plugin_file_in;
pub use self::folder::{
    AccountOf, Circumstances, Loaded, is_component, is_of_one_plugin, is_plugin_file, load_dir, load_paths,
    load_paths_under,
};
pub use self::settings::{Instances, Probation, Retry};
use crate::{account::Account, regular_file, yaml};

/// A validated plugin file, with all defaults applied.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginFile {
    /// The path of the plugin file.
    pub path: PathBuf,
    /// The name of the plugin, unique in the host: a DNS label, or for a Plugin of a namespace two, with a
    /// dot between them.
    pub name: String,
    /// The path of the component, resolved against the folder of the plugin file.
    pub component: PathBuf,
    /// The ServiceAccount that the plugin acts as.
    pub service_account: Account,
    /// The JSON object that the plugin reads through its `config` import.
    pub config: Configuration,
    /// Stands for `config` in the id of the version, if the configuration is of a Secret: others may read the
    /// id, and must not learn from it what the Secret says.
    pub config_version: Option<Arc<str>>,
    /// The limits of the plugin.
    pub limits: Limits,
    /// Whether writes of the plugin fail with `suspended`. Notifications are delivered as usual.
    pub suspend_writes: bool,
    /// Whether the host does not call the plugin.
    pub is_suspended: bool,
    /// Whether writes of the plugin are sent as dry runs.
    pub dry_run: bool,
    /// The most instances that a stateless plugin has: 1 to 256. More than one is refused for a plugin with
    /// state.
    pub concurrency: u32,
    /// The plugin's share of the CPU time for guests, compared with the weights of the other plugins: 1 to
    /// 1,000.
    pub weight: u32,
    /// When instances are dropped and replaced.
    pub instances: Instances,
    /// How long a new version is watched, and what makes the host switch back.
    pub probation: Probation,
    /// When calls that failed are made again; none for the defaults of the host.
    pub retry: Option<Retry>,
    /// The path of a component that runs as shadow, resolved against the folder of the plugin file.
    pub shadow: Option<PathBuf>,
}

/// A plugin file before validation. Its comments are the reference for authors of plugin files.
#[derive(Deserialize, JsonSchema)]
#[schemars(title = "plugin.yaml", description = "How the host runs one plugin.")]
#[serde(
    deny_unknown_fields,
    rename_all = "camelCase",
    expecting = "a mapping with the keys `name`, `component` and `serviceAccount`"
)]
struct RawFile {
    /// The plugin's name: a DNS label, unique in the host.
    #[serde(deserialize_with = "names::text")]
    #[schemars(length(min = 1, max = 63))]
    name: String,
    /// The path of the component, relative to the file.
    component: PathBuf,
    /// The ServiceAccount that the plugin reads and writes as.
    service_account: Account,
    /// A mapping that the plugin reads. Other values make another version. A stateless plugin is not called
    /// for objects that do not change; `docs/roll-outs.md` says how a version handles every object.
    #[serde(default, deserialize_with = "bounded::mapping")]
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    config: serde_json::Map<String, serde_json::Value>,
    /// What the plugin may use.
    #[serde(default)]
    limits: Limits,
    /// `true`: the host does not call the plugin. Its notifications wait.
    #[serde(default)]
    suspend: bool,
    /// `true`: the plugin's writes fail with `suspended`, while it receives its notifications as usual.
    #[serde(default)]
    suspend_writes: bool,
    /// `true`: the plugin's writes are sent as dry runs, so that nothing is stored.
    #[serde(default)]
    dry_run: bool,
    /// The most instances of a stateless plugin, and so the most calls at once. Calls about one object or key
    /// never overlap. More than 1 for a plugin with state is refused.
    #[serde(default = "settings::default_concurrency")]
    #[schemars(range(min = 1, max = settings::MAX_CONCURRENCY))]
    concurrency: u32,
    /// The plugin's share of the CPU time for guests, compared with the weights of the other plugins. It
    /// matters only while more guests want to run than the host has workers.
    #[serde(default = "settings::default_weight")]
    #[schemars(range(min = 1, max = settings::MAX_WEIGHT))]
    weight: u32,
    /// When instances are dropped and replaced.
    #[serde(default)]
    instances: Instances,
    /// How long a new version is watched, and what makes the host switch back.
    #[serde(default)]
    probation: Probation,
    /// When calls that failed are made again.
    #[schemars(with = "Retry", default)]
    retry: Option<Retry>,
    /// The path of a component that runs beside the plugin on the same events, with its writes withheld;
    /// relative to the file.
    shadow: Option<PathBuf>,
}

// === impl PluginFile ===

impl PluginFile {
    /// Reads one plugin file: YAML or TOML, by its extension.
    ///
    /// For a folder it reads the `plugin.yaml`, `plugin.yml` or `plugin.toml` in it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let path = match plugin_file_in(path) {
            Some(inner) => inner,
            None if path.is_dir() && !is_plugin_file(path) => {
                return Err(Error::EmptyFolder { path: path.to_owned() });
            }
            None => path.to_owned(),
        };
        let unread = |source| Error::Read { path: path.clone(), source };
        let bytes = regular_file::read(&path, bounded::MAX_BYTES as u64).map_err(unread)?;
        let text = String::from_utf8(bytes).map_err(|_| Error::NotText { path: path.clone() })?;
        Self::parse(&path, &text)
    }

    /// Returns the plugin for a component without a plugin file: named after the component, without
    /// configuration.
    fn of_component(path: &Path, account_of: AccountOf<'_>) -> Result<Self, Error> {
        let refused = || Error::BareComponent { path: path.to_owned() };
        let name = names::dns_label_from(&path.file_stem().unwrap_or_default().to_string_lossy());
        let name = name.ok_or_else(refused)?;
        Ok(Self {
            path: path.to_owned(),
            service_account: account_of(&name).ok_or_else(refused)?,
            name,
            component: path.to_owned(),
            config: Configuration::default(),
            config_version: None,
            limits: Limits::default(),
            suspend_writes: false,
            is_suspended: false,
            dry_run: false,
            concurrency: settings::default_concurrency(),
            weight: settings::default_weight(),
            instances: Instances::default(),
            probation: Probation::default(),
            retry: None,
            shadow: None,
        })
    }

    /// Returns the JSON schema of plugin files. A range that JSON Schema cannot express is a text, `x-range`.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
        settings.into_generator().into_root_schema_for::<RawFile>().to_value()
    }

    /// Parses and validates the text of a plugin file. `path` need not exist.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let text = yaml::without_byte_order_mark(text);
        if let Some(line) = bounded::too_deep(text) {
            let place = Place { line, column: 0 };
            return Err(Error::Parse { path: path.to_owned(), place, message: bounded::nesting_message() });
        }
        let raw: RawFile = match path.extension().and_then(|extension| extension.to_str()) {
            Some("yaml" | "yml") => {
                serde_norway::from_str(text).map_err(|error| Error::from_yaml(path, text, &error))?
            }
            Some("toml") => toml::from_str(text).map_err(|error| Error::from_toml(path, text, &error))?,
            _ => return Err(Error::Extension { path: path.to_owned() }),
        };
        if raw.component.as_os_str().is_empty() {
            let message = "`component` is empty: give the path of a component";
            return Err(Error::range(path, text, "component", &message));
        }
        Self::validated(path, text, raw, names::dns_label)
    }

    /// Checks the values that have a range, apart from the limits.
    pub(crate) fn check_settings(&self) -> Result<(), settings::OutOfRange> {
        let Self { concurrency, weight, instances, probation, retry, .. } = self;
        settings::check(*concurrency, *weight, instances, probation, retry.as_ref())
    }

    /// Returns whether both run in the same way, if their components are the same. Only a suspension, which
    /// needs no new version, may differ, and the version of a Secret that says the same.
    pub(crate) fn is_same_version(&self, other: &Self) -> bool {
        let Self { is_suspended, config_version, .. } = self;
        let (is_suspended, config_version) = (*is_suspended, config_version.clone());
        *self == Self { is_suspended, config_version, ..other.clone() }
    }

    /// Returns whether both are the same, apart from their shadows.
    pub(crate) fn is_same_apart_from_shadow(&self, other: &Self) -> bool {
        *self == Self { shadow: self.shadow.clone(), ..other.clone() }
    }

    fn validated(
        path: &Path,
        text: &str,
        raw: RawFile,
        check_name: fn(&str) -> Result<(), names::Invalid>,
    ) -> Result<Self, Error> {
        let RawFile {
            name,
            component,
            service_account,
            config,
            limits,
            suspend,
            suspend_writes,
            dry_run,
            concurrency,
            weight,
            instances,
            probation,
            retry,
            shadow,
        } = raw;

        let invalid = |key: &'static str, value: &str, why: names::Invalid| Error::Name {
            path: path.to_owned(),
            line: error::line_of(text, value),
            key,
            value: value.to_owned(),
            why,
        };
        check_name(&name).map_err(|why| invalid("name", &name, why))?;
        names::dns_label(&service_account.namespace)
            .map_err(|why| invalid("serviceAccount.namespace", &service_account.namespace, why))?;
        names::dns_subdomain(&service_account.name)
            .map_err(|why| invalid("serviceAccount.name", &service_account.name, why))?;

        limits
            .check()
            .map_err(|error| Error::range(path, text, &format!("limits.{}", error.field), &error))?;
        settings::check(concurrency, weight, &instances, &probation, retry.as_ref())
            .map_err(|error| Error::range(path, text, error.key, &error))?;

        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(Self {
            path: path.to_owned(),
            name,
            component: folder.join(component),
            service_account,
            config: config.into(),
            config_version: None,
            limits,
            suspend_writes,
            is_suspended: suspend,
            dry_run,
            concurrency,
            weight,
            instances,
            probation,
            retry,
            shadow: shadow.map(|it| folder.join(it)),
        })
    }
}

/// Why a text is not a mapping, and the place, where known. It has no part of the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NoMapping {
    pub(crate) why: &'static str,
    pub(crate) place: Place,
}

/// Parses a mapping in YAML or JSON, with the bounds of plugin files.
pub(crate) fn parse_mapping(bytes: &[u8]) -> Result<serde_json::Map<String, serde_json::Value>, NoMapping> {
    let refused = |why, place| NoMapping { why, place };
    if bytes.len() > bounded::MAX_BYTES {
        return Err(refused("is longer than 1 MiB", Place::default()));
    }
    let text = std::str::from_utf8(bytes).map_err(|_| refused("is not text in UTF-8", Place::default()))?;
    let text = yaml::without_byte_order_mark(text);
    if let Some(line) = bounded::too_deep(text) {
        return Err(refused("is nested too deeply", Place { line, column: 0 }));
    }
    let malformed = |place| refused("is not a mapping in YAML or JSON", place);
    // A panic of a parser is an error of that text only.
    let parsed = catch_unwind(|| bounded::mapping(serde_norway::Deserializer::from_str(text)));
    parsed
        .map_err(|_| malformed(Place::default()))?
        .map_err(|error: serde_norway::Error| malformed(Place::of_yaml(&error)))
}

#[cfg(test)]
mod tests;
