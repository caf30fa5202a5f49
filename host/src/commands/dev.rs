//! `oarlock dev`: an API server of its own on this machine, and plugins that run against it.
//!
//! Everything is as it would be in a cluster, only nearer: the host talks HTTPS to the API server with the token of its
//! own ServiceAccount, which has the rights that `oarlock rbac` prints and no others, and so have the plugins' accounts.

mod example;
mod kubeconfig;
mod rights;
mod welcome;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

use kube::config::Kubeconfig;
use oarlock_controller::{account::Account, provision::Provision};
use oarlock_dev_cluster::DevCluster;
use oarlock_plugin::EngineConfig;

use self::{kubeconfig::KubeconfigFile, rights::Rights};
use super::hosting;
use crate::{
    args::{DevArgs, HostArgs},
    connect::{self, Connection},
    failure::{Ended, Failure},
    shutdown::Requests,
};

/// The account that the host runs as.
const HOST: (&str, &str) = ("oarlock-system", "oarlock");

pub(crate) async fn run(args: DevArgs, engine: EngineConfig) -> Ended {
    let DevArgs { plugins, port, kubeconfig, fault, host } = args;
    if let Some(missing) = plugins.iter().find(|path| !path.exists()) {
        let missing = anyhow::anyhow!("{} does not exist", missing.display());
        return Err(
            Failure::caller(missing).hint("name plugin files, or folders of them, such as plugins/mirror")
        );
    }
    let config = oarlock_dev_cluster::Config {
        addr: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        faults: fault,
        ..oarlock_dev_cluster::Config::default()
    };
    let prepared = hosting::prepare(&host).await?;
    let cluster = DevCluster::start(config).await.map_err(Failure::caller)?;
    let ended = serve(&cluster, plugins, kubeconfig.as_deref(), host, prepared, engine).await;
    cluster.shut_down().await;
    ended
}

async fn serve(
    cluster: &DevCluster,
    plugins: Vec<PathBuf>,
    kubeconfig: Option<&Path>,
    host: HostArgs,
    prepared: hosting::Prepared,
    engine: EngineConfig,
) -> Ended {
    let account = Account { namespace: HOST.0.to_owned(), name: HOST.1.to_owned() };
    let Connection { client: administrator, server } = client(&cluster.kubeconfig(), None).await?;
    rights::of_host(&administrator, &account).await.map_err(Failure::running)?;
    let token = cluster.token_for(&account.namespace, &account.name);
    let Connection { client, .. } = client(&cluster.kubeconfig(), Some(token)).await?;

    // From here on a request to end is one to remove the file as well.
    let requests = Requests::listen();
    // Whoever finds the file finds an API server that is ready. It is gone again when this returns.
    let file = KubeconfigFile::write(kubeconfig, &cluster.kubeconfig()).map_err(|(path, error)| {
        let context = format!("the kubeconfig {} cannot be written", path.display());
        let hint = error.hint();
        Failure::caller(anyhow::Error::new(error).context(context)).hint(hint)
    })?;
    let rights = Rights::new(administrator, account, file.path());
    welcome::say(&server, file.path(), &plugins, host.output);
    let provision = Some(Arc::new(rights) as Arc<dyn Provision>);
    let job =
        hosting::Job { client, server, plugins, host, prepared, engine, provision, election: None, requests };
    hosting::host(job, std::future::pending()).await
}

/// Makes a client of the administrator's kubeconfig, or of the same with another token.
async fn client(kubeconfig: &str, token: Option<String>) -> Result<Connection, Failure> {
    let mut kubeconfig = Kubeconfig::from_yaml(kubeconfig).map_err(Failure::running)?;
    if let Some(token) = token {
        for named in &mut kubeconfig.auth_infos {
            if let Some(auth) = &mut named.auth_info {
                auth.token = Some(token.clone().into());
            }
        }
    }
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &kube::config::KubeConfigOptions::default())
            .await
            .map_err(Failure::running)?;
    connect::client(config).map_err(Failure::running)
}
