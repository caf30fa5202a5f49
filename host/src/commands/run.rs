//! `oarlock run`: plugins against a cluster.

use oarlock_plugin::EngineConfig;

use super::hosting;
use crate::{
    args::{Environment, RunArgs},
    connect::{self, Connection},
    failure::{Ended, Failure},
};

pub(crate) async fn run(args: RunArgs, environment: &Environment, engine: EngineConfig) -> Ended {
    let RunArgs { plugins, cluster, host } = args;
    if let Some(missing) = plugins.iter().find(|path| !path.exists()) {
        let missing = anyhow::anyhow!("--plugins {} does not exist", missing.display());
        return Err(Failure::caller(missing)
            .hint("name a folder of plugin files, the folder of one plugin, or a plugin file"));
    }
    let admin = hosting::bind(&host).await?;
    let Connection { client, server } = connect::connect(&cluster, environment).await?;
    hosting::host(
        hosting::Job { client, server, plugins, host, admin, engine, provision: None },
        std::future::pending(),
    )
    .await
}
