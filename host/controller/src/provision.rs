//! Giving a plugin's account its rights before the plugin runs.
//!
//! In a cluster an operator does that, with what `oarlock rbac` prints. `oarlock dev` does it by itself, against its own API
//! server only.

use async_trait::async_trait;

use crate::rbac::Needs;

/// Called with every new generation of a plugin, after it described itself and before anything is asked on its behalf.
#[async_trait]
pub trait Provision: Send + Sync {
    /// Sees to it that the account exists and has the rights. An error is shown to the operator, and the
    /// generation is not switched to.
    async fn provision(&self, needs: &Needs) -> Result<(), Error>;
}

/// Why a plugin's account could not be given its rights.
#[derive(Debug, thiserror::Error)]
#[error("the rights of ServiceAccount {account} could not be set up: {reason}")]
pub struct Error {
    /// Whose.
    pub account: crate::account::Account,
    /// What went wrong.
    pub reason: String,
}
