//! Giving a plugin's account its rights before the plugin runs.
//!
//! In a cluster an operator does that, with what `oarlock rbac` prints. `oarlock dev` does it by itself, against its own API
//! server only.

use async_trait::async_trait;

use crate::account::Account;
use crate::rbac::Needs;

/// Called with every new generation of a plugin, after it described itself and before anything is asked on its behalf.
#[async_trait]
pub trait Provision: Send + Sync {
    /// Sees to it that the account exists and has the rights. An error is shown to the operator, and the
    /// generation is not switched to.
    async fn provision(&self, needs: &Needs) -> Result<(), Error>;

    /// Whom a plugin of this name acts as that is a component without a plugin file. None refuses such a component.
    fn account_of(&self, _plugin: &str) -> Option<Account> {
        None
    }

    /// What makes the plugin act, for a person who tries it out. Asked for after each of its generations that came to serve.
    fn example(&self, _plugin: &str) -> Option<Example> {
        None
    }
}

/// A way to make a plugin act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// What it shows, or why there is no command.
    pub text: String,
    /// What to type.
    pub command: Option<String>,
}

/// Why a plugin's account could not be given its rights.
#[derive(Debug, thiserror::Error)]
#[error("the rights of ServiceAccount {account} could not be set up: {reason}")]
pub struct Error {
    /// Whose.
    pub account: Account,
    /// What went wrong.
    pub reason: String,
}
