//! Grants the plugin's account the rights that it declares, and no others, as `oarlock rbac` prints them.

use async_trait::async_trait;
use oarlock_controller::account::Account;
use oarlock_controller::provision::{Error, Provision};
use oarlock_controller::rbac::{self, ApplyError, Needs};

/// Applies rights to the API server of a case.
pub(crate) struct Rights {
    pub(crate) admin: kube::Client,
    pub(crate) host: Account,
}

#[async_trait]
impl Provision for Rights {
    async fn provision(&self, needs: &Needs) -> Result<(), Error> {
        let failed = |reason: String| Error { account: needs.account.clone(), reason };
        let of_plugin = rbac::for_plugins(std::slice::from_ref(needs));
        let manifest = of_plugin
            .and_then(|it| Ok(it.then(rbac::for_host(&self.host, std::slice::from_ref(needs))?)))
            .map_err(|error| failed(error.to_string()))?;
        let applied = manifest.apply(&self.admin).await;
        applied.map_err(|error: ApplyError| failed(format!("{:#}", anyhow::Error::new(error))))
    }
}
