//! The arguments of `oarlock plugin new`, `build` and `doctor`.

use std::path::PathBuf;

use super::RegistryArgs;
use clap::{Args as ClapArgs, ValueEnum};
use oarlock_guest_build::{
    Language,
    new::{Name, Resource},
};

pub(super) const NEW_EXAMPLES: &str = "\
Examples:
  oarlock plugin new web-watcher --lang rust
  oarlock plugin new web-watcher --lang python --watch apps/v1/deployments
  oarlock plugin new web-watcher --lang ts --reconciler --watch networking.k8s.io/v1/ingresses";

pub(super) const DOCTOR_EXAMPLES: &str = "\
Examples:
  oarlock plugin doctor
  oarlock plugin doctor --lang rust,go && oarlock plugin build";

#[derive(Debug, ClapArgs)]
pub(crate) struct NewArgs {
    /// The name of the plugin and of its folder.
    #[arg(value_name = "NAME")]
    pub(crate) name: Name,

    /// The language.
    #[arg(long, alias = "language", value_enum, value_name = "LANGUAGE")]
    pub(crate) lang: Lang,

    /// The plugin is called for each add, update and delete. This is the default.
    #[arg(long, conflicts_with = "reconciler")]
    pub(crate) handler: bool,

    /// The plugin is called with the keys of changed objects, and retries by key.
    #[arg(long)]
    pub(crate) reconciler: bool,

    /// The resource that the plugin watches: GROUP/VERSION/PLURAL, or VERSION/PLURAL in the core group.
    #[arg(long, default_value = "v1/configmaps", value_name = "RESOURCE")]
    pub(crate) watch: Resource,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct BuildArgs {
    /// The folder of the plugin, with its `plugin.yaml`.
    #[arg(default_value = ".", value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  oarlock plugin check
  oarlock plugin check target/my-plugin.wasm
  oarlock plugin check plugins/mirror --strict";

#[derive(Debug, ClapArgs)]
pub(crate) struct CheckArgs {
    /// The folder of a plugin, its file, a component (.wasm), or `oci://REFERENCE` for an artifact of a
    /// registry.
    #[arg(default_value = ".", value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Checks the component as it is. Otherwise it is built first, if its sources are beside it.
    #[arg(long)]
    pub(crate) no_build: bool,

    /// Fails if there is a warning.
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

pub(super) const TEST_EXAMPLES: &str = "\
Examples:
  oarlock plugin test
  oarlock plugin test --name expires --watch
  oarlock plugin test plugins/* --junit report.xml
  oarlock plugin test cases/expires.yaml --accept";

#[derive(Debug, ClapArgs)]
pub(crate) struct TestArgs {
    /// Folders of plugins, with their `plugin.yaml`, or single cases in such a folder's `cases`.
    #[arg(default_value = ".", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,

    /// Only cases whose name contains this text.
    #[arg(long, value_name = "PART")]
    pub(crate) name: Option<String>,

    /// The folder of cases, for plugins that share them. Otherwise `cases` in the folder of each plugin.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cases: Option<PathBuf>,

    /// Writes what happened into the cases, as what is expected.
    #[arg(long)]
    pub(crate) accept: bool,

    /// Runs the cases again whenever a source, a case or the component changes.
    #[arg(long, conflicts_with = "accept")]
    pub(crate) watch: bool,

    /// Tests the component as it is. Otherwise it is built first, if its sources are beside it.
    #[arg(long)]
    pub(crate) no_build: bool,

    /// Writes a report in the format of JUnit.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// Only these languages. Exit status 1 if a tool of theirs is missing.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LANGUAGE,…")]
    pub(crate) lang: Vec<Lang>,

    /// The format. Otherwise a table.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<DoctorFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorFormat {
    /// One JSON object.
    Json,
}

/// A language of plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lang(pub(crate) Language);

// === impl Lang ===

impl ValueEnum for Lang {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Lang; Language::ALL.len()] = {
            let mut all = [Lang(Language::Rust); Language::ALL.len()];
            let mut idx = 0;
            while idx < all.len() {
                all[idx] = Lang(Language::ALL[idx]);
                idx += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<clap::builder::PossibleValue> {
        let value = clap::builder::PossibleValue::new(self.0.short_name());
        Some(match self.0 {
            Language::TypeScript => value.alias("typescript"),
            Language::JavaScript => value.alias("javascript"),
            Language::Go => value.alias("golang"),
            Language::Rust | Language::Python | Language::C => value,
        })
    }
}
