//! Applies the rights that `oarlock rbac` prints to the API server of `dev`.

use std::{
    collections::BTreeMap,
    path::Path,
    sync::{MutexGuard, PoisonError},
};

use async_trait::async_trait;
use oarlock_controller::{
    account::Account,
    provision::{self, Example, Provision},
    rbac::{self, ApplyError, Needs},
};
use tokio::sync::Mutex;

use super::example;

/// The rights of the host, and of every plugin so far.
pub(super) struct Rights {
    /// The administrator's.
    client: kube::Client,
    host: Account,
    /// By plugin. The host needs rights for all of them.
    needs: Mutex<BTreeMap<String, Needs>>,
    /// The beginning of a kubectl command for this API server.
    kubectl: String,
    /// By plugin.
    examples: std::sync::Mutex<BTreeMap<String, Shown>>,
}

/// The example of a plugin, which is printed when it changes.
struct Shown {
    example: Example,
    is_news: bool,
}

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
        let kubectl = format!("kubectl --kubeconfig {}", example::quoted(&kubeconfig.display().to_string()));
        Self { client, host, needs: Mutex::default(), kubectl, examples: std::sync::Mutex::default() }
    }

    fn examples(&self) -> MutexGuard<'_, BTreeMap<String, Shown>> {
        // No code panics while it holds the lock.
        self.examples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Provision for Rights {
    async fn provision(&self, needs: &Needs) -> Result<(), provision::Error> {
        let account = &needs.account;
        let failed = |reason: String| provision::Error { account: account.clone(), reason };
        let mut all = self.needs.lock().await;
        let mut next = all.clone();
        next.insert(needs.plugin.clone(), needs.clone());
        let every: Vec<Needs> = next.values().cloned().collect();
        let manifest = rbac::for_plugins(std::slice::from_ref(needs))
            .and_then(|manifest| Ok(manifest.then(rbac::for_host(&self.host, &every)?)))
            .map_err(|error| failed(error.to_string()))?;
        manifest
            .apply(&self.client)
            .await
            .map_err(|error: ApplyError| failed(format!("{:#}", anyhow::Error::new(error))))?;
        *all = next;
        let example = example::of(&needs.plugin, &needs.description, &self.kubectl);
        let mut examples = self.examples();
        let is_news = examples.get(&needs.plugin).is_none_or(|it| it.is_news || it.example != example);
        examples.insert(needs.plugin.clone(), Shown { example, is_news });
        Ok(())
    }

    fn account_of(&self, plugin: &str) -> Option<Account> {
        Some(Account { namespace: NAMESPACE.to_owned(), name: plugin.to_owned() })
    }

    fn example(&self, plugin: &str) -> Option<Example> {
        let mut examples = self.examples();
        let shown = examples.get_mut(plugin)?;
        std::mem::take(&mut shown.is_news).then(|| shown.example.clone())
    }
}
