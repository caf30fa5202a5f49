//! The interface that grants a plugin's account its rights before the plugin runs.
//!
//! In a cluster the operator grants them, with the output of `oarlock rbac`. `oarlock dev` grants them
//! itself, in its own API server only.

use async_trait::async_trait;

use crate::account::Account;
use crate::rbac::Needs;

/// Grants rights. Called for every new generation of a plugin, after `describe` and before the first request
/// on its behalf.
#[async_trait]
pub trait Provision: Send + Sync {
    /// Creates the account and grants the rights. The generation that serves keeps its own until the host
    /// switches, if it acts as the same account. On an error the host reports it and does not switch to the
    /// generation.
    async fn provision(&self, needs: &Needs) -> Result<(), Error>;

    /// Returns the account of a plugin that is a component without a plugin file. None refuses such a
    /// component.
    fn account_of(&self, _plugin: &str) -> Option<Account> {
        None
    }

    /// Notes that the generation serves which was provisioned last. Called after each switch. Returns a
    /// command with which a developer can try the plugin out.
    async fn serves(&self, _plugin: &str) -> Option<Example> {
        None
    }
}

/// A command that shows a plugin at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The effect of the command, or why there is none.
    pub text: String,
    /// The command, for a shell.
    pub command: Option<String>,
}

/// Why the rights of a plugin's account could not be granted.
#[derive(Debug, thiserror::Error)]
#[error("cannot grant the rights of the ServiceAccount {account}: {reason}")]
pub struct Error {
    /// The account.
    pub account: Account,
    /// The error.
    pub reason: String,
}
