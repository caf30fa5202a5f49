//! Waits for the account and its rights, then for the caches, and reports what a version still waits for.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use oarlock_informer::GroupVersionResource;
use oarlock_plugin::contract::Namespaces;

use super::identity::missing;
use super::{PendingSubscription, Preparation};
use crate::access::{Access, AccountState, Denial};
use crate::account::Account;
use crate::generations::GenerationHandle;
use crate::identity::Identity;
use crate::informers::InformerHandle;
use crate::plan::{ReadPlan, SubscriptionPlan};
use crate::report::HostEvent;
use crate::subscriptions;

/// How often the host checks whether the wait has ended, and reports it.
const CHECK_AGAIN: Duration = Duration::from_secs(1);

/// The account is gone or was replaced, or it may not see any more what is being prepared for it.
pub(super) struct RightsLost;

/// A right that a version waits for: denied, or unknown while the API server cannot be asked.
struct MissingRight {
    is_denied: bool,
    text: String,
}

/// The last report of a wait.
#[derive(Default)]
struct ReportedWait {
    waits_for: Vec<String>,
    is_long: bool,
}

// === impl Preparation ===

impl Preparation<'_> {
    /// Waits until the account exists and may see some namespace of each resource that the version watches
    /// and reads. Returns the account's uid.
    pub(super) async fn wait_for_rights(
        &self,
        account: &Account,
        subscriptions: &[&Arc<SubscriptionPlan>],
        reads: &[ReadPlan],
        progress: &GenerationHandle,
    ) -> String {
        // The read of a lister that wakes needs the same right.
        let declared = subscriptions.iter().filter(|it| it.wakes.is_none());
        let subscriptions = declared.map(|it| (&it.name, &it.resource, &it.namespaces));
        let reads = reads.iter().map(|it| (&it.name, &it.resource, &it.namespaces));
        let needed: Vec<_> = subscriptions.chain(reads).collect();
        let mut reported = ReportedWait::default();
        loop {
            let rights = needed
                .iter()
                .map(|(name, resource, namespaces)| self.missing_right(account, name, resource, namespaces));
            let (state, missing_rights) = tokio::join!(self.host.gate.account(account), join_all(rights));
            let missing_rights: Vec<_> = missing_rights.into_iter().flatten().collect();
            let mut is_forbidden = missing_rights.iter().any(|it| it.is_denied);
            let mut waits_for: Vec<_> = missing_rights.into_iter().map(|it| it.text).collect();
            // A subscription and a lister may have the same name.
            waits_for.sort();
            waits_for.dedup();
            // Denied rights come last, and what to do is the same for all of them.
            if is_forbidden && let Some(last) = waits_for.last_mut() {
                *last += &format!(" ({})", subscriptions::GRANT_HINT);
            }
            let uid = match state {
                Ok(AccountState::Present { uid }) => Some(uid),
                Ok(AccountState::Missing) => {
                    waits_for.insert(0, missing(account));
                    is_forbidden = true;
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
            if is_forbidden {
                progress.forbidden(&format!("it waits for {}", waits_for.join("; ")));
            }
            self.report_wait(&mut reported, waits_for);
            tokio::time::sleep(CHECK_AGAIN).await;
            reported.is_long = true;
        }
    }

    /// Waits until the cache of each subscription and each read has synced.
    pub(super) async fn wait_for_caches(
        &self,
        identity: &Identity,
        pending: &[PendingSubscription],
        reads: &[InformerHandle],
    ) -> Result<(), RightsLost> {
        let mut reported = ReportedWait::default();
        loop {
            if identity.denial().is_some() {
                return Err(RightsLost);
            }
            let mut waits_for = Vec::new();
            for pending in pending {
                let PendingSubscription::New { plan, handle, access } = pending else { continue };
                waits_for.extend(handle.waits_for());
                match &*access.borrow() {
                    Access::Allowed(_) => {}
                    Access::Forbidden(_) => return Err(RightsLost),
                    Access::Unknown(reason) => {
                        waits_for.push(unknown_right(identity.account(), &plan.name, reason));
                    }
                }
            }
            waits_for.extend(reads.iter().filter_map(InformerHandle::waits_for));
            if waits_for.is_empty() {
                return Ok(());
            }
            waits_for.sort();
            waits_for.dedup();
            self.report_wait(&mut reported, waits_for);
            reported.is_long |= tokio::time::timeout(CHECK_AGAIN, all_ready(pending, reads)).await.is_err();
        }
    }

    /// Returns the missing right to one resource; `None` when the account has it.
    async fn missing_right(
        &self,
        account: &Account,
        name: &str,
        resource: &GroupVersionResource,
        namespaces: &Namespaces,
    ) -> Option<MissingRight> {
        let (is_denied, text) = match self.host.gate.access(account, resource, namespaces).await {
            Access::Allowed(_) => return None,
            // The missing account is reported once, not for each right.
            Access::Forbidden(Denial::NoAccount(_)) => return None,
            Access::Forbidden(denial) => (true, format!("the right to watch `{name}`: {denial}")),
            Access::Unknown(reason) => (false, unknown_right(account, name, &reason)),
        };
        Some(MissingRight { is_denied, text })
    }

    fn report_wait(&self, reported: &mut ReportedWait, waits_for: Vec<String>) {
        self.slot.status.update(|status| status.waits_for.clone_from(&waits_for));
        // Most waits end at once; only the others are worth a line.
        if reported.is_long && reported.waits_for != waits_for {
            self.reporter.report(HostEvent::PluginWaiting { waits_for: waits_for.clone() });
            reported.waits_for = waits_for;
        }
    }
}

fn unknown_right(account: &Account, name: &str, reason: &str) -> String {
    format!("the decision whether {account} may watch {name}: {reason}")
}

/// Waits until all subscriptions are allowed and all caches have synced.
async fn all_ready(pending: &[PendingSubscription], reads: &[InformerHandle]) {
    let new = pending.iter().filter_map(|pending| match pending {
        PendingSubscription::InheritsListener(_) => None,
        PendingSubscription::New { handle, access, .. } => Some((handle, access)),
    });
    let allowed = new.clone().map(|(_, access)| async {
        let mut access = access.clone();
        if access.wait_for(|access| matches!(access, Access::Allowed(_))).await.is_err() {
            std::future::pending::<()>().await;
        }
    });
    let synced = new.map(|(handle, _)| handle).chain(reads).map(|handle| async {
        handle.synced().await;
    });
    tokio::join!(join_all(allowed), join_all(synced));
}
