//! `oarlock rbac`: the rights that plugins and the host need, as YAML.

use std::io::Write;

use oarlock_controller::rbac;
use oarlock_plugin::EngineConfig;

use super::examine;
use crate::{
    args::RbacArgs,
    failure::{Ended, Failure},
};

pub(crate) async fn run(args: RbacArgs, engine: EngineConfig) -> Ended {
    let RbacArgs { plugins, host_account } = args;
    let engine = examine::engine(engine)?;
    let mut needs = Vec::new();
    for file in examine::load(&plugins)? {
        needs.push(examine::needs(&engine, file).await?);
    }
    let manifest = rbac::for_plugins(&needs)
        .and_then(|manifest| Ok(manifest.then(rbac::for_host(&host_account, &needs)?)))
        .map_err(Failure::caller)?;
    let yaml = manifest.to_yaml().map_err(Failure::running)?;
    std::io::stdout().write_all(yaml.as_bytes()).map_err(Failure::running)
}
