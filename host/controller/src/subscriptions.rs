//! Subscriptions: the listener that a plugin's declared watch gets, and the access that it follows.
//!
//! For as long as a subscription lives, a task asks the gate every few seconds and publishes its decision
//! ([`Access`]). **Allowed**: the listener sees the namespaces that the account may read. **Forbidden**: the
//! plugin receives nothing, not even deletes. **Unknown**: notifications wait until the API server can be
//! asked again, so that an outage breaks no chain. Without its ServiceAccount a subscription is forbidden,
//! whatever RBAC grants.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use oarlock_flow_control::clock;
use oarlock_informer::{
    GroupVersionResource, Listener, ListenerConfig, SharedInformer, listener::BacklogAccount,
    object::Namespaces,
};
use oarlock_plugin::contract;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::access::{Access, Gate};
use crate::account::Account;
use crate::identity::Identity;
use crate::plan::SubscriptionPlan;
use crate::tasks::Tasks;

/// How often a subscription asks the gate, which uses its answers for as long or longer.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// How many notifications wait for a plugin separately; beyond it, those of one object merge.
const BACKLOG_LIMIT: usize = 4_096;

/// How many bytes of superseded states a plugin's backlogs hold before notifications merge. The contract
/// states it, too.
const BACKLOG_BYTES: usize = 64 << 20;

/// A subscription with a listener of its own.
pub(crate) struct Subscription {
    pub(crate) plan: Arc<SubscriptionPlan>,
    pub(crate) listener: Listener,
    pub(crate) access: watch::Receiver<Access>,
    /// The informer's handle, which lives as long as the subscription.
    pub(crate) informer_handle: Box<dyn Any + Send>,
}

/// Returns the gate's decision, which a task keeps up to date: it asks the gate now and every few seconds for
/// as long as a receiver exists.
pub(crate) fn follow_access(
    tasks: &Tasks,
    gate: Arc<Gate>,
    mut identity: Identity,
    resource: GroupVersionResource,
    namespaces: contract::Namespaces,
    task_name: String,
) -> watch::Receiver<Access> {
    let (sender, decision) =
        watch::channel(Access::Unknown("the API server has not been asked yet".to_owned()));
    tasks.spawn_unattended(task_name, |token| async move {
        let asking = async {
            loop {
                let access = match identity.denial() {
                    Some(denial) => Access::Forbidden(denial),
                    // In a box, so that a task that waits for its next question is small.
                    None => Box::pin(gate.access(identity.account(), &resource, &namespaces)).await,
                };
                sender.send_if_modified(|before| {
                    let has_changed = !before.has_same_effect(&access);
                    if has_changed {
                        *before = access;
                    }
                    has_changed
                });
                tokio::select! {
                    () = tokio::time::sleep_until(next_question(identity.account())) => {}
                    _ = identity.changed() => {}
                }
            }
        };
        tokio::select! {
            biased;
            () = token.cancelled() => {}
            () = sender.closed() => {}
            () = asking => {}
        }
    });
    decision
}

/// Returns when the gate is asked again about an account.
fn next_question(account: &Account) -> Instant {
    clock::next_tick(Instant::now(), ASK_AGAIN, account)
}

/// Returns the hint for the operator about a forbidden subscription.
pub(crate) fn forbidden_hint() -> String {
    "grant what `oarlock rbac` prints for this plugin, or remove the subscription from the plugin".to_owned()
}

/// Returns the configuration of a subscription's listener.
pub(crate) fn listener_config(plan: &SubscriptionPlan, namespaces: Namespaces) -> ListenerConfig {
    ListenerConfig {
        name: plan.name.clone(),
        namespaces,
        label_selector: plan.selector.clone(),
        conditions: plan.conditions.clone(),
        fields: plan.fields.clone(),
        resync: Some(plan.resync.unwrap_or(Duration::ZERO)),
        backlog_limit: BACKLOG_LIMIT,
        account: BacklogAccount::default(),
    }
}

/// Returns the account that bounds what all backlogs of a plugin hold of states that no cache holds any more.
pub(crate) fn backlog_account() -> BacklogAccount {
    BacklogAccount::new(BACKLOG_BYTES)
}

/// Opens a subscription's listener; `None` when the informer has stopped.
pub(crate) fn open(
    plan: Arc<SubscriptionPlan>,
    informer: &SharedInformer,
    access: watch::Receiver<Access>,
    informer_handle: impl Any + Send,
    account: BacklogAccount,
) -> Option<Subscription> {
    let namespaces = match &*access.borrow() {
        Access::Allowed(namespaces) => namespaces.clone(),
        Access::Forbidden(_) | Access::Unknown(_) => Namespaces::Only(BTreeSet::new()),
    };
    let config = ListenerConfig { account, ..listener_config(&plan, namespaces) };
    let listener = informer.add_listener(config).ok()?;
    Some(Subscription { plan, listener, access, informer_handle: Box::new(informer_handle) })
}

#[cfg(test)]
mod tests {
    use oarlock_wait_until::{LIMIT, yield_until};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::access::testing::{FakeReviewer, Known};

    #[tokio::test(start_paused = true)]
    async fn the_gate_is_asked_for_as_long_as_a_receiver_of_the_decision_exists() {
        let (tasks, _supervisor) = Tasks::new(CancellationToken::new());
        let reviewer = Arc::new(FakeReviewer::default());
        let gate = Gate::with_reviewer(reviewer.clone(), Arc::new(Known(None)), reviewer.clone());
        let identity = Identity::unfollowed("ns/p".parse().unwrap());
        let pods = GroupVersionResource::new("", "v1", "pods");
        let all = contract::Namespaces::All;
        let decision = follow_access(&tasks, Arc::new(gate), identity, pods, all, "access".to_owned());
        let clone = decision.clone();
        drop(decision);
        tokio::time::sleep(3 * ASK_AGAIN).await;
        assert!(reviewer.asked() >= 2, "a clone is in use");
        drop(clone);
        yield_until("the task to end", LIMIT, || match tasks.names() {
            names if names.is_empty() => Ok(()),
            names => Err(names),
        })
        .await;
    }
}
