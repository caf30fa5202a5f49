//! Compiles a plugin and asks it for its description, without running it.

use std::{path::Path, sync::Arc, time::Duration};

use oarlock_controller::{
    account::Account,
    config::{self, Circumstances, PluginFile},
    plan::Plan,
    rbac::Needs,
    regular_file,
};
use oarlock_guest_build::progress;
use oarlock_plugin::{
    Component, Configuration, Engine, EngineConfig, Limits,
    component::{self, MAX_COMPONENT_BYTES},
    contract::{Description, Level},
    describe::{Measured, measure},
    guest,
    guest::{GuestLog, LogLine, LogSink},
};

use crate::failure::Failure;

const COMPONENT_HINT: &str = "name a component, which is a .wasm file";

/// A component and its description.
pub(super) struct Examined {
    pub(super) component: Component,
    pub(super) description: Description,
    /// The time that a new instance takes until it has described itself.
    pub(super) start: Duration,
    /// Its linear memory after that, in bytes.
    pub(super) memory_bytes: u64,
}

/// Writes warnings and errors that a guest logs in describe to standard error.
struct Stderr;

/// Reads plugin files, and with an account also components without one, as plugins of this account. Fails
/// with all their errors.
pub(super) fn load(
    paths: &[std::path::PathBuf],
    account: Option<&Account>,
) -> Result<Vec<PluginFile>, Failure> {
    let account_of = |_: &str| account.cloned();
    let circumstances =
        Circumstances { account_of: account.map(|_| &account_of as _), ..Circumstances::default() };
    let config::Loaded { files, errors } = config::load_paths_under(paths, circumstances);
    if errors.is_empty() {
        return Ok(files);
    }
    let mut texts = errors.iter().map(ToString::to_string);
    let first = texts.next().unwrap_or_default();
    let is_absent =
        |it: &config::Error| matches!(it, config::Error::Read { source, .. } if source.is_not_found());
    let hint = errors.iter().any(is_absent).then_some(
        "check the path: name a plugin file, or the folder of one; or, for a Plugin object, its component with \
         --service-account NAMESPACE/NAME",
    );
    Err(Failure::caller(anyhow::anyhow!("{first}")).and(texts.collect()).hint_if(hint))
}

pub(super) fn engine(config: EngineConfig) -> Result<Engine, Failure> {
    Engine::new(config).map_err(Failure::running)
}

/// Reads and compiles the component at a path.
pub(super) async fn compile(engine: &Engine, path: &Path) -> Result<Component, Failure> {
    let shown = path.display();
    let bytes = regular_file::read(path, MAX_COMPONENT_BYTES as u64).map_err(|error| {
        let hint = match &error {
            regular_file::Error::NotRegular(_) => Some(COMPONENT_HINT),
            error if error.is_not_found() => Some("build the component first, or check the path"),
            _ => None,
        };
        let failure = Failure::caller(anyhow::Error::new(error).context(format!("{shown} cannot be read")));
        failure.hint_if(hint)
    })?;
    Component::compile(engine, bytes).await.map_err(|error| {
        // The other messages name the remedy.
        let hint = matches!(error, component::Error::NotWasm { .. }).then_some(COMPONENT_HINT);
        Failure::caller(anyhow::Error::new(error).context(shown.to_string())).hint_if(hint)
    })
}

/// Compiles the component at a path and asks it for its description.
pub(super) async fn examine(
    engine: &Engine,
    name: &str,
    component: &Path,
    config: Configuration,
    limits: Limits,
) -> Result<Examined, Failure> {
    let shown = component.display();
    let component = compile(engine, component).await?;
    let log = Arc::new(GuestLog::new(Arc::from(name), 1, limits.log_lines_per_second, Arc::new(Stderr)));
    let measured = measure(&component, config, limits, log)
        .await
        .map_err(|error| Failure::caller(anyhow::Error::new(error).context(shown.to_string())))?;
    // A host checks the same, and refuses a plugin for the same reasons.
    let Measured { description, took, memory_bytes } = measured;
    Plan::of(description.clone())
        .map_err(|error| Failure::caller(anyhow::Error::new(error).context(shown.to_string())))?;
    Ok(Examined { component, description, start: took, memory_bytes })
}

/// Returns the rights that a plugin needs.
pub(super) async fn needs(engine: &Engine, file: PluginFile) -> Result<Needs, Failure> {
    let PluginFile { path, name, component, service_account, config, limits, .. } = file;
    let examined = examine(engine, &name, &component, config, limits)
        .await
        .map_err(|failure| failure.context(path.display()))?;
    Ok(examined.needs(name, service_account))
}

// === impl Examined ===

impl Examined {
    /// Returns the rights that the plugin needs.
    pub(super) fn needs(&self, plugin: String, account: Account) -> Needs {
        let emits_events = self.imports("events");
        Needs { plugin, account, description: self.description.clone(), emits_events }
    }

    /// Returns the world of the contract that has what the component exports.
    pub(super) fn world(&self) -> &'static str {
        match (self.component.exports_handler(), self.component.exports_reconciler()) {
            (true, true) => "plugin",
            (_, false) => "handler-plugin",
            (false, true) => "reconciler-plugin",
        }
    }

    /// Returns the version of the contract that the component was built with.
    pub(super) fn contract_version(&self) -> &str {
        let mut ours = self.component.imports().iter().filter(|it| it.starts_with("oarlock:plugin/"));
        ours.find_map(|it| it.split_once('@')).map_or("unknown", |(_, version)| version)
    }

    /// Returns whether the component imports an interface of the contract.
    pub(super) fn imports(&self, interface: &str) -> bool {
        let name = format!("oarlock:plugin/{interface}@");
        self.component.imports().iter().any(|import| import.starts_with(&name))
    }
}

impl LogSink for Stderr {
    fn enabled(&self, _plugin: &str, level: Level) -> bool {
        matches!(level, Level::Warn | Level::Error)
    }

    fn write(&self, line: LogLine<'_>) {
        progress::say(format!("{}: {}", line.plugin, guest::text::one_line(line.message)));
    }
}
