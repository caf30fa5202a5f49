//! `oarlock rbac`: prints the rights that plugins and the host need, as YAML.

use std::io::Write;
use std::path::PathBuf;

use oarlock_controller::{
    account::Account,
    config::{self, PluginFile},
    rbac::{self, Impersonation, Manifest},
    report::OneLine,
};
use oarlock_guest_build::progress;
use oarlock_plugin::EngineConfig;

use super::examine;
use crate::{
    args::{LeaseName, NamespaceName, RbacArgs},
    failure::{Ended, Failure},
};

pub(crate) async fn run(args: RbacArgs, engine: EngineConfig) -> Ended {
    let RbacArgs {
        plugins,
        service_account,
        namespace,
        constrained,
        host_account,
        leader_elect,
        leader_elect_resource_name: LeaseName(lease),
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
            "name plugin files or folders of plugins; or, for Plugin objects, the namespace that opts in, with \
             --namespace NAME, or a component with --service-account NAMESPACE/NAME; `oarlock install --print` \
             has the rights of a host of Plugin objects",
        ));
    }
    let engine = examine::engine(engine)?;
    let mut needs = Vec::new();
    for file in files(&plugins, service_account.as_ref())? {
        needs.push(examine::needs(&engine, file).await?);
    }
    if service_account.is_some() {
        return print(&rbac::for_plugins(&needs).map_err(Failure::caller)?);
    }
    let election = leader_elect.then(|| {
        let namespace = leader_elect_resource_namespace.as_ref();
        let namespace = namespace.map_or(&host_account.namespace, |NamespaceName(name)| name);
        rbac::for_election(&host_account, namespace, &lease)
    });
    let manifest = rbac::for_plugins(&needs)
        .and_then(|manifest| Ok(manifest.then(rbac::for_host(&host_account, &needs)?)))
        .map_err(Failure::caller)?;
    print(&manifest.then(election.unwrap_or_default()))
}

/// Returns the plugins at the paths: those of plugin files, or components of Plugin objects that name this
/// account.
fn files(paths: &[PathBuf], service_account: Option<&Account>) -> Result<Vec<PluginFile>, Failure> {
    let Some(account) = service_account else { return examine::load(paths, None) };
    if let Some(other) = paths.iter().find(|path| !config::is_component(path)) {
        let other =
            anyhow::anyhow!("{} is no component, and --service-account is for components", other.display());
        return Err(Failure::caller(other).hint(
            "name the .wasm file of the Plugin object; for a plugin file, which names its account, leave --service-account out",
        ));
    }
    let mut files = examine::load(paths, Some(account))?;
    for file in &mut files {
        // Roles of the same component for another account have other names.
        file.name = format!("{}.{}.{}", account.namespace, account.name, file.name);
    }
    Ok(files)
}

fn print(manifest: &Manifest) -> Ended {
    for warning in manifest.warnings() {
        progress::say(format!("warning: {}", OneLine(warning)));
    }
    let yaml = manifest.to_yaml().map_err(Failure::running)?;
    std::io::stdout().write_all(yaml.as_bytes()).map_err(Failure::output)
}
