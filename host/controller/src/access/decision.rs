//! The gate's decision about one resource: the one type that the gate, subscriptions and reads share.

use oarlock_informer::{GroupVersionResource, object::Namespaces};
use oarlock_plugin::contract;

use crate::account::Account;
use crate::subscriptions::GRANT_HINT;

/// The namespaces in which an account may list and watch a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// In these namespaces, of which there is at least one. [`Namespaces::All`] includes future namespaces.
    Allowed(Namespaces),
    /// Nowhere.
    Forbidden(Denial),
    /// Unknown for the reason given here: the API server could not be asked.
    Unknown(String),
}

/// Why an account may not list and watch a resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denial {
    /// Kubernetes grants `list` and `watch` in none of the namespaces.
    #[error("ServiceAccount {account} may not list and watch {resource} in {}", place(.namespaces))]
    NotGranted {
        /// On whose behalf the gate asked.
        account: Account,
        /// The resource.
        resource: GroupVersionResource,
        /// The namespaces that the gate asked about.
        namespaces: contract::Namespaces,
    },
    /// Kubernetes grants `list` and `watch` of a cluster-scoped resource not in the whole cluster.
    #[error(
        "ServiceAccount {account} may not list and watch {resource}, which is cluster-scoped: a RoleBinding \
         does not grant that, a ClusterRoleBinding does"
    )]
    NotGrantedInCluster {
        /// On whose behalf the gate asked.
        account: Account,
        /// The resource.
        resource: GroupVersionResource,
    },
    /// The ServiceAccount does not exist, so it may do nothing, whatever RBAC grants to its name.
    #[error("the ServiceAccount {0} does not exist")]
    NoAccount(Account),
    /// Another ServiceAccount has the name now; the plugin is loaded again and then acts as that one.
    #[error(
        "the ServiceAccount {0} was deleted and created again; the host loads the plugin again for the new one"
    )]
    AccountReplaced(Account),
}

// === impl Denial ===

impl Denial {
    /// Returns what the operator can do, as an imperative; none if the host does it.
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotGranted { .. } | Self::NotGrantedInCluster { .. } => Some(GRANT_HINT),
            Self::NoAccount(_) => Some("create the ServiceAccount, or apply what `oarlock rbac` prints"),
            Self::AccountReplaced(_) => None,
        }
    }
}

// === impl Access ===

impl Access {
    /// Returns the same decision for one of the namespaces that it is about.
    #[must_use]
    pub(super) fn within(&self, account: &Account, resource: &GroupVersionResource, namespace: &str) -> Self {
        match self {
            Self::Allowed(namespaces) if namespaces.contains(namespace) => {
                Self::Allowed(Namespaces::one(namespace))
            }
            Self::Allowed(_) | Self::Forbidden(Denial::NotGranted { .. }) => {
                Self::Forbidden(Denial::NotGranted {
                    account: account.clone(),
                    resource: resource.clone(),
                    namespaces: contract::Namespaces::One(namespace.to_owned()),
                })
            }
            Self::Forbidden(_) | Self::Unknown(_) => self.clone(),
        }
    }

    /// Returns whether two decisions are the same for their receivers. The reasons of two forbidden ones may
    /// differ, and those of two unknown ones in their [numbers](is_same_cause).
    #[must_use]
    pub(crate) fn is_same_for_receivers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown(one), Self::Unknown(other)) => is_same_cause(one, other),
            (Self::Forbidden(_), Self::Forbidden(_)) => true,
            _ => self == other,
        }
    }
}

/// Returns whether two reasons name the same cause: ports, times and counts change from try to try.
pub(crate) fn is_same_cause(one: &str, other: &str) -> bool {
    let one = one.chars().filter(|it| !it.is_ascii_digit());
    one.eq(other.chars().filter(|it| !it.is_ascii_digit()))
}

fn place(namespaces: &contract::Namespaces) -> String {
    match namespaces {
        contract::Namespaces::All => "any namespace".to_owned(),
        contract::Namespaces::One(namespace) => format!("namespace {namespace:?}"),
    }
}
