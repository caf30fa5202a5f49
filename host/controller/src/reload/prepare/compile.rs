//! From a component's file to a component, and what is said while that takes long.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use oarlock_plugin::component::MAX_COMPONENT_BYTES;
use oarlock_plugin::{Compilation, CompilationState, Component};
use tokio::time::Instant;

use super::Error;
use crate::config::PluginFile;
use crate::regular_file;
use crate::reload::{Host, Slot};
use crate::report::{HostEvent, Reporter};

/// How often it is looked how far the compilation is. What is done before needs no word.
const LOOK: Duration = Duration::from_secs(1);

/// Reads and compiles the component that a plugin's file names.
pub(super) async fn compile(
    host: &Host,
    slot: &Slot,
    file: &PluginFile,
    reporter: &Reporter,
) -> Result<Component, Error> {
    let path = || file.component.display().to_string();
    let component_file = file.component.clone();
    let bytes = host
        .tasks
        .blocking(move || regular_file::read(&component_file, MAX_COMPONENT_BYTES as u64))
        .await
        .unwrap_or_else(|| Err(io::Error::other("the reading thread ended").into()))
        .map_err(|source| Error::Read { path: path(), source })?;
    let began = Instant::now();
    let mut compiling = Box::pin(Component::compile_for(&host.engine, Some(slot.name.clone()), bytes));
    let mut told = None;
    loop {
        if let Ok(compiled) = tokio::time::timeout(LOOK, &mut compiling).await {
            slot.status.update(|status| status.waits_for.clear());
            host.metrics.compiled(&slot.name, began.elapsed());
            return compiled.map_err(|source| Error::Component { path: path(), source });
        }
        let Some(Compilation { plugin: _, bytes, state }) = of(host, &slot.name) else { continue };
        slot.status.update(|status| status.waits_for = vec![waits_for(bytes, state)]);
        let before = match state {
            CompilationState::Waiting { before } => before,
            CompilationState::Running { .. } => 0,
        };
        let is_running = matches!(state, CompilationState::Running { .. });
        // Once while it waits, and once when its turn has come.
        if told != Some(is_running) {
            reporter.report(HostEvent::PluginCompiling { bytes: bytes as u64, before });
            told = Some(is_running);
        }
    }
}

fn of(host: &Host, plugin: &Arc<str>) -> Option<Compilation> {
    host.engine.compilations().into_iter().find(|it| it.plugin.as_ref() == Some(plugin))
}

/// What a plugin waits for whose component is not compiled yet.
fn waits_for(bytes: usize, state: CompilationState) -> String {
    let size = crate::size::Size(bytes as u64);
    match state {
        CompilationState::Running { so_far } => {
            format!("its component ({size}) to be compiled, for {} s so far", so_far.as_secs())
        }
        CompilationState::Waiting { before: 0 } => {
            format!(
                "its component ({size}) to be compiled: compilations of it that failed took long, so it is put off"
            )
        }
        CompilationState::Waiting { before } => {
            format!("its component ({size}) to be compiled, after {before} others")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_says_how_large_how_long_and_after_how_many() {
        let say = |state| waits_for(19_084_083, state);
        insta::assert_snapshot!(say(CompilationState::Running { so_far: Duration::from_millis(12_300) }), @"its component (18.1 MiB) to be compiled, for 12 s so far");
        insta::assert_snapshot!(say(CompilationState::Waiting { before: 2 }), @"its component (18.1 MiB) to be compiled, after 2 others");
    }
}
