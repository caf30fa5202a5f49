//! Compiles a plugin and asks it for its description, without running it.

use std::{path::Path, sync::Arc};

use oarlock_controller::{
    config::{self, PluginFile},
    plan::Plan,
    rbac::Needs,
    regular_file,
};
use oarlock_plugin::{
    Component, Engine, EngineConfig, Limits,
    component::{self, MAX_COMPONENT_BYTES},
    contract::{Description, Level},
    describe::describe,
    guest,
    guest::{GuestLog, LogLine, LogSink},
};

use crate::failure::Failure;

const NAME_A_COMPONENT: &str = "name a component, which is a .wasm file";

/// A component and its description.
pub(super) struct Examined {
    pub(super) component: Component,
    pub(super) description: Description,
}

/// Writes warnings and errors that a guest logs in describe to standard error.
struct Stderr;

/// Reads plugin files. Fails with all their errors.
pub(super) fn load(paths: &[std::path::PathBuf]) -> Result<Vec<PluginFile>, Failure> {
    let config::Loaded { files, errors } = config::load_paths(paths);
    if errors.is_empty() {
        return Ok(files);
    }
    let mut texts = errors.iter().map(ToString::to_string);
    let first = texts.next().unwrap_or_default();
    Err(Failure::caller(anyhow::anyhow!("{first}")).and(texts.collect()))
}

pub(super) fn engine(config: EngineConfig) -> Result<Engine, Failure> {
    Engine::new(config).map_err(Failure::running)
}

/// Reads and compiles the component at a path.
pub(super) async fn compile(engine: &Engine, path: &Path) -> Result<Component, Failure> {
    let shown = path.display();
    let bytes = regular_file::read(path, MAX_COMPONENT_BYTES as u64).map_err(|error| {
        let hint = match &error {
            regular_file::Error::NotRegular(_) => Some(NAME_A_COMPONENT),
            error if error.is_not_found() => Some("build the component first, or check the path"),
            _ => None,
        };
        let failure = Failure::caller(anyhow::Error::new(error).context(format!("{shown} cannot be read")));
        failure.hint_if(hint)
    })?;
    Component::compile(engine, bytes).await.map_err(|error| {
        // The other messages name the remedy.
        let hint = matches!(error, component::Error::NotWasm { .. }).then_some(NAME_A_COMPONENT);
        Failure::caller(anyhow::Error::new(error).context(shown.to_string())).hint_if(hint)
    })
}

/// Compiles the component at a path and asks it for its description.
pub(super) async fn examine(
    engine: &Engine,
    name: &str,
    component: &Path,
    config: serde_json::Map<String, serde_json::Value>,
    limits: Limits,
) -> Result<Examined, Failure> {
    let shown = component.display();
    let component = compile(engine, component).await?;
    let log = Arc::new(GuestLog::new(Arc::from(name), 1, limits.log_lines_per_second, Arc::new(Stderr)));
    let description = describe(&component, Arc::new(config.into()), limits, log)
        .await
        .map_err(|error| Failure::caller(anyhow::Error::new(error).context(shown.to_string())))?;
    // A host checks the same, and refuses a plugin for the same reasons.
    Plan::of(description.clone())
        .map_err(|error| Failure::caller(anyhow::Error::new(error).context(shown.to_string())))?;
    Ok(Examined { component, description })
}

/// Returns the rights that a plugin needs.
pub(super) async fn needs(engine: &Engine, file: PluginFile) -> Result<Needs, Failure> {
    let PluginFile { path, name, component, service_account, config, limits, .. } = file;
    let examined = examine(engine, &name, &component, config, limits)
        .await
        .map_err(|failure| failure.context(path.display()))?;
    let emits_events = emits_events(&examined.component);
    Ok(Needs { plugin: name, account: service_account, description: examined.description, emits_events })
}

fn emits_events(component: &Component) -> bool {
    component.imports().iter().any(|import| import.starts_with("oarlock:plugin/events"))
}

impl LogSink for Stderr {
    fn enabled(&self, _plugin: &str, level: Level) -> bool {
        matches!(level, Level::Warn | Level::Error)
    }

    fn write(&self, line: LogLine<'_>) {
        eprintln!("{}: {}", line.plugin, guest::text::one_line(line.message));
    }
}
