//! Gives accounts in the embedded API server what `oarlock rbac` would print for them.

use std::collections::BTreeMap;

use async_trait::async_trait;
use oarlock_controller::{
    account::Account,
    provision::{self, Provision},
    rbac::{self, ApplyError, Needs},
};
use tokio::sync::Mutex;

/// Keeps the rights of the host and of every plugin seen so far.
pub(super) struct Rights {
    /// The administrator's.
    client: kube::Client,
    host: Account,
    /// By plugin. The host needs what it takes to serve all of them.
    needs: Mutex<BTreeMap<String, Needs>>,
}

// === impl Rights ===

impl Rights {
    /// Gives the host what it needs without any plugin.
    pub(super) async fn set_up(client: kube::Client, host: Account) -> anyhow::Result<Self> {
        rbac::for_host(&host, &[])?.apply(&client).await?;
        Ok(Self { client, host, needs: Mutex::default() })
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
        Ok(())
    }
}
