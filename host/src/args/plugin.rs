//! The arguments of `oarlock plugin new`, `build` and `doctor`.

use std::path::PathBuf;

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
    #[arg(long, value_enum, value_name = "LANGUAGE")]
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
        Some(clap::builder::PossibleValue::new(self.0.short_name()))
    }
}
