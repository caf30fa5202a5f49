//! Gives accounts in the embedded API server what `oarlock rbac` would print for them.

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

/// Keeps the rights of the host and of every plugin seen so far.
pub(super) struct Rights {
    /// The administrator's.
    client: kube::Client,
    host: Account,
    /// By plugin. The host needs what it takes to serve all of them.
    needs: Mutex<BTreeMap<String, Needs>>,
    /// How kubectl is called for this API server.
    kubectl: String,
    /// By plugin.
    examples: std::sync::Mutex<BTreeMap<String, Shown>>,
}

/// What makes a plugin act, which is told when that changes.
struct Shown {
    example: Example,
    is_news: bool,
}

/// Where the ServiceAccounts of components live that have no plugin file.
const NAMESPACE: &str = "default";

/// Gives the host what it needs without any plugin.
pub(super) async fn of_host(client: &kube::Client, host: &Account) -> anyhow::Result<()> {
    Ok(rbac::for_host(host, &[])?.apply(client).await?)
}

// === impl Rights ===

impl Rights {
    /// Makes it; `kubeconfig` is kubectl's.
    pub(super) fn new(client: kube::Client, host: Account, kubeconfig: &Path) -> Self {
        // With its kubeconfig in it, a command that is copied in a hurry cannot reach another cluster.
        let kubeconfig = std::path::absolute(kubeconfig).unwrap_or_else(|_| kubeconfig.to_owned());
        let kubectl = format!("kubectl --kubeconfig {}", example::quoted(&kubeconfig.display().to_string()));
        Self { client, host, needs: Mutex::default(), kubectl, examples: std::sync::Mutex::default() }
    }

    fn examples(&self) -> MutexGuard<'_, BTreeMap<String, Shown>> {
        // Nothing that panics is done under the lock.
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
