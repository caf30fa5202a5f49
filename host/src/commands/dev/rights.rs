//! Applies the rights that `oarlock rbac` prints to the API server of `dev`.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use oarlock_controller::{
    account::Account,
    provision::{self, Example, Provision},
    rbac::{self, ApplyError, Needs},
};
use oarlock_plugin::contract::Description;
use tokio::sync::Mutex;

use super::example;
use crate::shell_word::quoted;

/// The rights of the host, and of every plugin so far.
pub(super) struct Rights {
    /// The administrator's.
    client: kube::Client,
    host: Account,
    /// By plugin. The host needs rights for all of them.
    needs: Mutex<BTreeMap<String, PluginNeeds>>,
    /// The beginning of a kubectl command for this API server.
    kubectl: String,
    /// By plugin.
    examples: std::sync::Mutex<BTreeMap<String, Shown>>,
}

/// What the generations of a plugin need.
#[derive(Clone)]
struct PluginNeeds {
    serving: Option<Needs>,
    newest: Needs,
}

/// The example of a plugin, which is printed when it changes.
struct Shown {
    example: Example,
    is_news: bool,
}

/// How long a switch waits until the rights of the version before are taken back.
const TAKE_BACK_LIMIT: Duration = Duration::from_secs(10);

/// The namespace of ServiceAccounts for components without a plugin file.
const NAMESPACE: &str = "default";

/// Applies the rights that the host needs without plugin files. A Plugin object needs no opt-in of its
/// namespace here.
pub(super) async fn of_host(client: &kube::Client, host: &Account) -> anyhow::Result<()> {
    Ok(rbac::for_host(host, &[])?.then(rbac::for_plugin_objects(host)).apply(client).await?)
}

// === impl Rights ===

impl Rights {
    /// Creates the value. `kubeconfig` is the file for kubectl.
    pub(super) fn new(client: kube::Client, host: Account, kubeconfig: &Path) -> Self {
        // The command names its kubeconfig, so that a copied command cannot reach another cluster.
        let kubeconfig = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
        let kubectl = format!("kubectl --kubeconfig {}", quoted(&kubeconfig.display().to_string()));
        Self { client, host, needs: Mutex::default(), kubectl, examples: std::sync::Mutex::default() }
    }

    /// Applies the rights of a plugin, and those that the host needs for all plugins.
    async fn apply(
        &self,
        all: &mut BTreeMap<String, PluginNeeds>,
        of_plugin: PluginNeeds,
    ) -> Result<(), provision::Error> {
        let needs = of_plugin.all();
        let failed = |reason: String| provision::Error { account: needs.account.clone(), reason };
        let mut next = all.clone();
        next.insert(needs.plugin.clone(), of_plugin);
        let every: Vec<Needs> = next.values().map(PluginNeeds::all).collect();
        let manifest = rbac::for_plugins(std::slice::from_ref(&needs))
            .and_then(|manifest| Ok(manifest.then(rbac::for_host(&self.host, &every)?)))
            .map_err(|error| failed(error.to_string()))?;
        manifest
            .apply(&self.client)
            .await
            .map_err(|error: ApplyError| failed(format!("{:#}", anyhow::Error::new(error))))?;
        *all = next;
        Ok(())
    }

    fn examples(&self) -> MutexGuard<'_, BTreeMap<String, Shown>> {
        // No code panics while it holds the lock.
        self.examples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl PluginNeeds ===

impl PluginNeeds {
    /// Returns what both generations need, as far as they act as the same account.
    fn all(&self) -> Needs {
        let Self { serving, newest } = self;
        let mut all = newest.clone();
        if let Some(serving) = serving.as_ref().filter(|it| it.account == newest.account) {
            let Description { subscriptions, reads, requests, .. } = serving.description.clone();
            all.description.subscriptions.extend(subscriptions);
            all.description.reads.extend(reads);
            all.description.requests.extend(requests);
            all.emits_events |= serving.emits_events;
        }
        all
    }
}

#[async_trait]
impl Provision for Rights {
    async fn provision(&self, needs: &Needs) -> Result<(), provision::Error> {
        let mut all = self.needs.lock().await;
        let serving = all.get(&needs.plugin).and_then(|it| it.serving.clone());
        let of_plugin = PluginNeeds { serving, newest: needs.clone() };
        self.apply(&mut all, of_plugin).await?;
        let example = example::of(&needs.plugin, &needs.description, &self.kubectl);
        let mut examples = self.examples();
        let is_news = examples.get(&needs.plugin).is_none_or(|it| it.is_news || it.example != example);
        examples.insert(needs.plugin.clone(), Shown { example, is_news });
        Ok(())
    }

    fn account_of(&self, plugin: &str) -> Option<Account> {
        Some(Account { namespace: NAMESPACE.to_owned(), name: plugin.to_owned() })
    }

    async fn serves(&self, plugin: &str) -> Option<Example> {
        let mut all = self.needs.lock().await;
        if let Some(PluginNeeds { serving, newest }) = all.get(plugin).cloned() {
            let of_plugin = PluginNeeds { serving: Some(newest.clone()), newest };
            // With the rights of the version before, it only has more than it needs. The first version has
            // just been granted its own.
            let applied = match serving {
                Some(_) => {
                    tokio::time::timeout(TAKE_BACK_LIMIT, self.apply(&mut all, of_plugin.clone())).await
                }
                None => Ok(Ok(())),
            };
            match applied {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(plugin, %error, "the rights of the version before stay"),
                Err(_) => {
                    tracing::warn!(plugin, "the rights of the version before stay: no answer came in time")
                }
            }
            all.insert(plugin.to_owned(), of_plugin);
        }
        drop(all);
        let mut examples = self.examples();
        let shown = examples.get_mut(plugin)?;
        std::mem::take(&mut shown.is_news).then(|| shown.example.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use k8s_openapi::api::rbac::v1::ClusterRole;
    use kube::{
        Api, Config,
        config::{KubeConfigOptions, Kubeconfig},
    };
    use oarlock_dev_cluster::DevCluster;
    use oarlock_plugin::contract::{Content, GroupVersionResource, Namespaces, Read};

    use super::*;

    /// Returns what a version needs that reads a resource.
    fn reads(plural: &str) -> Needs {
        let target =
            GroupVersionResource { group: String::new(), version: "v1".into(), plural: plural.into() };
        Needs {
            plugin: "p".to_owned(),
            account: "default/p".parse().unwrap(),
            description: Description {
                name: "p".to_owned(),
                version: "1".to_owned(),
                subscriptions: Vec::new(),
                reads: vec![Read {
                    name: plural.to_owned(),
                    target,
                    namespaces: Namespaces::All,
                    content: Content::Full,
                    wakes: false,
                }],
                indices: Vec::new(),
                schedules: Vec::new(),
                requests: Vec::new(),
                stateless: false,
            },
            emits_events: false,
        }
    }

    async fn granted(client: &kube::Client) -> Vec<String> {
        let roles: Api<ClusterRole> = Api::all(client.clone());
        let role = roles.get("oarlock-plugin-p").await.unwrap();
        let resources = role.rules.into_iter().flatten().filter_map(|rule| rule.resources);
        resources.flatten().collect::<BTreeSet<_>>().into_iter().collect()
    }

    #[tokio::test]
    async fn a_version_that_serves_keeps_its_rights_until_the_host_switches_to_another() {
        let cluster = DevCluster::start(oarlock_dev_cluster::Config::default()).await.unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&cluster.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let client = kube::Client::try_from(config).unwrap();
        let rights = Rights::new(client.clone(), "default/host".parse().unwrap(), Path::new("kubeconfig"));

        rights.provision(&reads("pods")).await.unwrap();
        rights.serves("p").await;
        assert_eq!(granted(&client).await, ["pods"]);
        for never_serves in ["podds", "nodes"] {
            rights.provision(&reads(never_serves)).await.unwrap();
            assert_eq!(granted(&client).await, [never_serves, "pods"], "{never_serves}");
        }
        rights.serves("p").await;
        assert_eq!(granted(&client).await, ["nodes"]);
    }
}
