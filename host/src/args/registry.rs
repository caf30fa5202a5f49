//! The arguments of commands that use a registry.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::{Environment, path_or_empty};

pub(super) const PUSH_EXAMPLES: &str = "\
Examples:
  oarlock plugin push ghcr.io/team-a/mirror:1.4.0 target/mirror.wasm
  oarlock plugin push localhost:5000/mirror:dev plugins/mirror
  oarlock plugin inspect oci://ghcr.io/team-a/mirror:1.4.0";

#[derive(Debug, ClapArgs)]
pub(crate) struct PushArgs {
    /// Where to push to: the registry, the repository and a tag.
    #[arg(value_name = "REFERENCE")]
    pub(crate) reference: String,

    /// A component (.wasm), a plugin file, or the folder of one plugin.
    #[arg(default_value = ".", value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The time of creation in the artifact, in seconds since 1970. The same time and the same component make
    /// the same digest.
    #[arg(
        long,
        env = "SOURCE_DATE_EPOCH",
        hide_env_values = true,
        default_value_t = 0,
        value_name = "SECONDS"
    )]
    pub(crate) created: i64,

    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

/// How registries are asked.
#[derive(Debug, Clone, ClapArgs)]
pub(crate) struct RegistryArgs {
    /// The folder with the `config.json` of Docker, which has the credentials for registries. Otherwise
    /// `~/.docker`.
    #[arg(long, env = "DOCKER_CONFIG", hide_env_values = true, value_parser = path_or_empty(), value_name = "FOLDER")]
    pub(crate) docker_config: Option<PathBuf>,

    /// Asks these registries over plain HTTP. Registries on `localhost` and `127.0.0.1` always are.
    #[arg(long, value_delimiter = ',', value_name = "HOST,…")]
    pub(crate) plain_http: Vec<String>,
}

// === impl RegistryArgs ===

impl RegistryArgs {
    /// Returns the path of Docker's `config.json`, which need not exist.
    pub(crate) fn docker_config(&self, environment: &Environment) -> Option<PathBuf> {
        let is_set = |path: &&PathBuf| !path.as_os_str().is_empty();
        let of_home = || environment.home.as_ref().filter(is_set).map(|home| home.join(".docker"));
        self.docker_config
            .clone()
            .filter(|path| is_set(&path))
            .or_else(of_home)
            .map(|it| it.join("config.json"))
    }
}
