//! `oarlock plugin check`: what a component is, declares and needs, and what its author may want to change.

mod advice;
mod json;

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use oarlock_controller::{
    account::Account,
    config::PluginFile,
    rbac::{self, Needs},
    report::{Counted, OneLine},
};
use oarlock_guest_build::progress;
use oarlock_plugin::{Configuration, EngineConfig, Limits};

use super::{
    super::{
        examine::{self, Examined},
        printed,
        sources::Sources,
    },
    registry::{self, Registry},
    show,
};
use crate::{
    args::{CheckArgs, Environment, InspectArgs, RegistryArgs},
    failure::{Ended, Failure},
};

/// A component, with its plugin's file if there is one.
pub(super) struct Subject {
    file: Option<PluginFile>,
    /// The path of the component, or its reference.
    pub(super) component: PathBuf,
    pub(super) examined: Examined,
}

/// Prints a table, and then warnings.
pub(super) async fn check(args: CheckArgs, environment: &Environment, engine: EngineConfig) -> Ended {
    let CheckArgs { file, no_build, strict, registry } = args;
    let subject = Subject::find(&file, !no_build, &registry, environment, engine.clone()).await?;
    if let Some(file) = &subject.file {
        check_shadow(file, engine).await?;
    }
    let mut text = subject.file.as_ref().map(show::plugin).unwrap_or_default();
    text.push_str(&show::component(&subject.component, &subject.examined));
    let warnings = subject.warnings()?;
    for warning in &warnings {
        // The component chose some of the names in it.
        text.push_str(&format!("warning: {}\n", OneLine(warning)));
    }
    std::io::stdout().write_all(text.as_bytes()).map_err(Failure::output)?;
    match warnings.len() {
        0 => Ok(()),
        n if strict => {
            let warnings = Counted(n, "warning");
            Err(Failure::running(anyhow::anyhow!("{warnings}, and --strict was given"))
                .hint("correct what each warning names, or leave out --strict"))
        }
        _ => Ok(()),
    }
}

/// Returns the error for which a host would refuse the shadow of a plugin, if it has one.
async fn check_shadow(file: &PluginFile, engine: EngineConfig) -> Ended {
    let PluginFile { name, config, limits, shadow: Some(shadow), .. } = file.clone() else { return Ok(()) };
    let engine = examine::engine(engine)?;
    let examined = examine::examine(&engine, &name, &shadow, config, limits).await;
    examined.map(drop).map_err(|failure| failure.context(format!("the shadow of {name} is refused")))
}

/// Prints the same as one JSON object.
pub(super) async fn inspect(args: InspectArgs, environment: &Environment, engine: EngineConfig) -> Ended {
    let InspectArgs { file, registry } = args;
    let subject = Subject::find(&file, false, &registry, environment, engine).await?;
    let text = printed::pretty(&json::of(&subject, &subject.warnings()?))?;
    std::io::stdout().write_all(text.as_bytes()).map_err(Failure::output)
}

// === impl Subject ===

impl Subject {
    /// Examines the component at a path, or that of `oci://REFERENCE`.
    async fn find(
        path: &Path,
        builds: bool,
        args: &RegistryArgs,
        environment: &Environment,
        engine: EngineConfig,
    ) -> Result<Self, Failure> {
        let Some(reference) = registry::reference_of(path) else {
            if let (false, Some(reference)) = (path.exists(), registry::bare_reference_of(path)) {
                return Err(Failure::caller(anyhow::anyhow!("there is no file {reference}"))
                    .hint(format!("for an artifact of a registry, write oci://{reference}")));
            }
            return Self::examine(path, builds, engine).await;
        };
        let pulled = Registry::open(reference, args, environment)?.pull().await?;
        let subject = Self::examine(pulled.fetched.component.path(), false, engine).await?;
        Ok(Self { component: path.to_owned(), ..subject })
    }

    pub(super) async fn examine(path: &Path, builds: bool, engine: EngineConfig) -> Result<Self, Failure> {
        let engine = examine::engine(engine)?;
        if is_component(path) {
            let config = Configuration::default();
            let examined = examine::examine(&engine, "inspect", path, config, Limits::default()).await?;
            return Ok(Self { file: None, component: path.to_owned(), examined });
        }
        let file = PluginFile::read(path).map_err(Failure::caller)?;
        if builds && let Some(sources) = Sources::beside(&file)? {
            let build = move || sources.build();
            tokio::task::spawn_blocking(build).await.map_err(Failure::running)??;
            progress::say("");
        }
        let PluginFile { name, component, config, limits, .. } = file.clone();
        let examined = examine::examine(&engine, &name, &component, config, limits).await?;
        Ok(Self { file: Some(file), component, examined })
    }

    /// Returns what is risky, and what makes the plugin slower than necessary.
    fn warnings(&self) -> Result<Vec<String>, Failure> {
        let needs = self.needs();
        let rights = rbac::for_plugins(std::slice::from_ref(&needs)).map_err(Failure::caller)?;
        let mut warnings = rights.warnings();
        warnings.extend(advice::of(&self.examined));
        Ok(warnings)
    }

    fn needs(&self) -> Needs {
        let account = match &self.file {
            Some(file) => file.service_account.clone(),
            None => Account { namespace: "default".to_owned(), name: "inspect".to_owned() },
        };
        let name = self.file.as_ref().map_or("inspect", |file| file.name.as_str());
        self.examined.needs(name.to_owned(), account)
    }
}

/// Returns whether a path is not a plugin's file or folder. It is then read as a component, which may fail.
fn is_component(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    !path.is_dir() && !matches!(extension, Some("yaml" | "yml" | "toml"))
}
