//! Reads and compiles a component, and reports while that takes long. A file that was read before, and whose
//! code is stored, is not read again.

use std::fs;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use oarlock_plugin::component::{ComponentFile, MAX_COMPONENT_BYTES};
use oarlock_plugin::{
    Component,
    compiler::{Compilation, CompilationState},
};
use tokio::time::Instant;

use super::{Error, Fetched, Preparation};
use crate::regular_file;
use crate::reload::Host;
use crate::report::{Counted, HostEvent};
use crate::size::Size;

/// How often the host checks the progress of a compilation. A shorter one is not reported.
const CHECK_AGAIN: Duration = Duration::from_secs(1);

// === impl Preparation ===

impl Preparation<'_> {
    /// Reads the component that the plugin's file names, or finds it without reading it.
    pub(super) async fn fetch(&self) -> Result<Fetched, Error> {
        let Self { host, file, .. } = self;
        let path = file.component.clone();
        let look = move || fs::metadata(&path).ok().map(|metadata| ComponentFile::new(&path, &metadata));
        let looked_at = host.tasks.blocking(look).await.flatten();
        if let Some(file) = &looked_at
            && let Some(component) = Component::find(&host.engine, file).await
        {
            return Ok(Fetched::Compiled(component));
        }
        let path = file.component.clone();
        let (bytes, metadata) = host
            .tasks
            .blocking(move || regular_file::read_with_metadata(&path, MAX_COMPONENT_BYTES as u64))
            .await
            .unwrap_or_else(|| Err(io::Error::other("the reading thread ended").into()))
            .map_err(|source| Error::Read { path: file.component.display().to_string(), source })?;
        let file = looked_at.filter(|file| file.is_unchanged(&metadata));
        Ok(Fetched::Bytes { bytes, file })
    }

    /// Compiles the component, or finds its code.
    pub(super) async fn compile(
        &self,
        bytes: Vec<u8>,
        read_from: Option<ComponentFile>,
    ) -> Result<Component, Error> {
        let Self { host, slot, file, reporter, .. } = self;
        let path = || file.component.display().to_string();
        let began = Instant::now();
        let mut compiling = Box::pin(Component::compile_for(&host.engine, Some(slot.name.clone()), bytes));
        let mut reported_running = None;
        loop {
            if let Ok(compiled) = tokio::time::timeout(CHECK_AGAIN, &mut compiling).await {
                slot.status.update(|status| status.waits_for.clear());
                host.metrics.compiled(&slot.name, began.elapsed());
                let compiled = compiled.map_err(|source| Error::Component { path: path(), source })?;
                if let Some(message) = compiled.not_stored() {
                    reporter.report(HostEvent::CodeNotStored { message: message.to_owned() });
                }
                if let Some(file) = read_from {
                    let component = compiled.clone();
                    host.tasks.blocking(move || component.note_file(&file)).await;
                }
                return Ok(compiled);
            }
            let Some(compilation) = compilation_of(host, &slot.name) else { continue };
            let Compilation { plugin: _, bytes, state } = compilation;
            slot.status.update(|status| status.waits_for = vec![waits_for(bytes, state)]);
            let before = match state {
                CompilationState::Waiting { before } => before,
                CompilationState::Running { .. } => 0,
            };
            let is_running = matches!(state, CompilationState::Running { .. });
            // Reported once while it waits, and once when it runs.
            if reported_running != Some(is_running) {
                reporter.report(HostEvent::PluginCompiling { bytes: bytes as u64, before });
                reported_running = Some(is_running);
            }
        }
    }
}

fn compilation_of(host: &Host, plugin: &Arc<str>) -> Option<Compilation> {
    host.engine.compilations().into_iter().find(|it| it.plugin.as_ref() == Some(plugin))
}

/// Returns a text about a component that is not compiled yet.
fn waits_for(bytes: usize, state: CompilationState) -> String {
    let size = Size(bytes as u64);
    match state {
        CompilationState::Running { so_far } => {
            format!("its component ({size}) to be compiled, for {} s so far", so_far.as_secs())
        }
        CompilationState::Waiting { before: 0 } => {
            format!(
                "its component ({size}) to be compiled: its failed compilations took long, so the others go first"
            )
        }
        CompilationState::Waiting { before } => {
            format!("its component ({size}) to be compiled, after {}", Counted(before, "other"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_shows_the_size_the_time_so_far_and_the_position() {
        let say = |state| waits_for(19_084_083, state);
        insta::assert_snapshot!(say(CompilationState::Running { so_far: Duration::from_millis(12_300) }), @"its component (18.1 MiB) to be compiled, for 12 s so far");
        insta::assert_snapshot!(say(CompilationState::Waiting { before: 1 }), @"its component (18.1 MiB) to be compiled, after 1 other");
        insta::assert_snapshot!(say(CompilationState::Waiting { before: 2 }), @"its component (18.1 MiB) to be compiled, after 2 others");
    }
}
