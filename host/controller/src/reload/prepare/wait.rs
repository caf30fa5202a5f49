//! What a version waits for before it can serve, said while it waits: first the account and its rights, then the caches.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use oarlock_informer::GroupVersionResource;
use oarlock_plugin::contract::Namespaces;

use super::Wanted;
use crate::access::{self, AccountState};
use crate::account::Account;
use crate::identity::Identity;
use crate::informers::InformerHandle;
use crate::plan::{ReadPlan, SubscriptionPlan};
use crate::reload::{Host, Slot};
use crate::report::{HostEvent, Reporter};
use crate::subscriptions::{self, Access};

/// How often it is looked whether what is waited for is there, and the wait explained if not.
const LOOK: Duration = Duration::from_secs(1);

/// A version on its way, and where it says what it waits for.
pub(super) struct Waiting<'a> {
    pub(super) host: &'a Host,
    pub(super) slot: &'a Slot,
    pub(super) reporter: &'a Reporter,
}

/// The account is gone or another one, or may not see any more what is being prepared for it.
pub(super) struct RightsLost;

/// What was said last.
#[derive(Default)]
struct Said {
    waits_for: Vec<String>,
    is_long: bool,
}

/// That an account is waited for.
pub(super) fn no_account(account: &Account) -> String {
    format!(
        "the ServiceAccount {account}, which does not exist: create it, or apply what `oarlock rbac` prints"
    )
}

// === impl Waiting ===

impl Waiting<'_> {
    /// Waits until the account exists and may see something of each resource that the version watches and reads; returns the
    /// account's uid.
    pub(super) async fn rights(
        &self,
        account: &Account,
        subscriptions: &[&Arc<SubscriptionPlan>],
        reads: &[ReadPlan],
    ) -> String {
        let subscriptions = subscriptions.iter().map(|it| (&it.name, &it.resource, &it.namespaces));
        let reads = reads.iter().map(|it| (&it.name, &it.resource, &it.namespaces));
        let asked: Vec<_> = subscriptions.chain(reads).collect();
        let mut said = Said::default();
        loop {
            let (state, answers) =
                tokio::join!(
                    self.host.gate.account(account),
                    join_all(asked.iter().map(|(name, resource, namespaces)| {
                        self.right(account, name, resource, namespaces)
                    }))
                );
            let mut waits_for: Vec<_> = answers.into_iter().flatten().collect();
            let uid = match state {
                Ok(AccountState::Present { uid }) => Some(uid),
                Ok(AccountState::Missing) => {
                    waits_for.push(no_account(account));
                    None
                }
                Err(error) => {
                    waits_for.push(crate::chain::text(&error));
                    None
                }
            };
            if let Some(uid) = uid.filter(|_| waits_for.is_empty()) {
                return uid;
            }
            self.say(&mut said, waits_for);
            tokio::time::sleep(LOOK).await;
            said.is_long = true;
        }
    }

    /// Waits until every cache holds everything.
    pub(super) async fn caches(
        &self,
        identity: &Identity,
        wanted: &[Wanted],
        reads: &[InformerHandle],
    ) -> Result<(), RightsLost> {
        let mut said = Said::default();
        loop {
            if identity.refusal().is_some() {
                return Err(RightsLost);
            }
            let mut waits_for = Vec::new();
            for wanted in wanted {
                let Wanted::Fresh { plan, handle, following } = wanted else { continue };
                waits_for.extend(handle.waits_for());
                match &*following.access.borrow() {
                    Access::Open(_) => {}
                    Access::Forbidden(_) => return Err(RightsLost),
                    Access::Unknown(message) => {
                        waits_for.push(format!(
                            "what {} may watch for {}: {message}",
                            identity.account(),
                            plan.name
                        ));
                    }
                }
            }
            waits_for.extend(reads.iter().filter_map(InformerHandle::waits_for));
            if waits_for.is_empty() {
                return Ok(());
            }
            self.say(&mut said, waits_for);
            said.is_long |= tokio::time::timeout(LOOK, settled(wanted, reads)).await.is_err();
        }
    }

    /// Returns what the right to one resource waits for.
    async fn right(
        &self,
        account: &Account,
        name: &str,
        resource: &GroupVersionResource,
        namespaces: &Namespaces,
    ) -> Option<String> {
        match subscriptions::ask(&self.host.gate, account, resource, namespaces).await {
            Ok(Access::Open(_)) => None,
            Ok(Access::Forbidden(message)) => {
                Some(format!("the right to {name}: {message}; {}", subscriptions::forbidden_hint()))
            }
            Ok(Access::Unknown(message)) => Some(format!("what {account} may watch for {name}: {message}")),
            // That is said of the account.
            Err(access::Error::NoAccount { .. }) => None,
            Err(error) => {
                Some(format!("what {account} may watch for {name}: {}", crate::chain::text(&error)))
            }
        }
    }

    fn say(&self, said: &mut Said, mut waits_for: Vec<String>) {
        waits_for.sort();
        waits_for.dedup();
        self.slot.status.update(|status| status.waits_for.clone_from(&waits_for));
        // Most waits are over at once; only the others are worth a line.
        if said.is_long && said.waits_for != waits_for {
            self.reporter.report(HostEvent::PluginWaiting { waits_for: waits_for.clone() });
            said.waits_for = waits_for;
        }
    }
}

/// Waits until everything is there.
async fn settled(wanted: &[Wanted], reads: &[InformerHandle]) {
    let fresh = wanted.iter().filter_map(|wanted| match wanted {
        Wanted::GoesOn(_) => None,
        Wanted::Fresh { handle, following, .. } => Some((handle, following)),
    });
    let opened = fresh.clone().map(|(_, following)| async {
        let mut access = following.access.clone();
        if access.wait_for(|access| matches!(access, Access::Open(_))).await.is_err() {
            std::future::pending::<()>().await;
        }
    });
    let synced = fresh.map(|(handle, _)| handle).chain(reads).map(|handle| async {
        handle.synced().await;
    });
    tokio::join!(join_all(opened), join_all(synced));
}
