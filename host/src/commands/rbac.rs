//! `oarlock rbac`: prints the rights that plugins and the host need, as YAML.

use std::io::Write;

use oarlock_controller::{
    rbac::{self, Impersonation},
    report::OneLine,
};
use oarlock_plugin::EngineConfig;

use super::examine;
use crate::{
    args::{NamespaceName, RbacArgs},
    failure::{Ended, Failure},
};

pub(crate) async fn run(args: RbacArgs, engine: EngineConfig) -> Ended {
    let RbacArgs {
        plugins,
        namespace,
        constrained,
        host_account,
        leader_elect,
        leader_elect_resource_name: lease,
        leader_elect_resource_namespace,
    } = args;
    if let Some(NamespaceName(namespace)) = namespace {
        let impersonation =
            if constrained { Impersonation::Constrained } else { Impersonation::Unconstrained };
        let yaml = rbac::opt_in(&host_account, &namespace, impersonation).map_err(Failure::running)?;
        return std::io::stdout().write_all(yaml.as_bytes()).map_err(Failure::output);
    }
    if plugins.is_empty() {
        return Err(Failure::caller(anyhow::anyhow!("rbac does not know whose rights to print")).hint(
            "name plugin files or folders of plugins; or, for Plugin objects, the namespace that opts in, with --namespace NAME",
        ));
    }
    let engine = examine::engine(engine)?;
    let mut needs = Vec::new();
    for file in examine::load(&plugins)? {
        needs.push(examine::needs(&engine, file).await?);
    }
    let election = leader_elect.then(|| {
        let namespace = leader_elect_resource_namespace.as_deref().unwrap_or(&host_account.namespace);
        rbac::for_election(&host_account, namespace, &lease)
    });
    let manifest = rbac::for_plugins(&needs)
        .and_then(|manifest| Ok(manifest.then(rbac::for_host(&host_account, &needs)?)))
        .map_err(Failure::caller)?;
    let manifest = manifest.then(election.unwrap_or_default());
    for warning in manifest.warnings() {
        eprintln!("warning: {}", OneLine(warning));
    }
    let yaml = manifest.to_yaml().map_err(Failure::running)?;
    std::io::stdout().write_all(yaml.as_bytes()).map_err(Failure::output)
}
