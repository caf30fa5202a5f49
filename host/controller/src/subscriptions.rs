//! Subscriptions: the listener that a plugin's declared watch gets, and the access that it follows.
//!
//! For as long as a subscription lives, the task of its [account](crate::identity) asks the gate every few
//! seconds and publishes its decision ([`Access`]). **Allowed**: the listener sees the namespaces that the
//! account may read. **Forbidden**: the plugin receives nothing, not even deletes. **Unknown**: notifications
//! wait until the API server can be asked again, so that an outage breaks no chain. Without its
//! ServiceAccount a subscription is forbidden, whatever RBAC grants.

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use oarlock_informer::{
    Listener, ListenerConfig, Object, SharedInformer,
    listener::{BacklogAccount, NamedKey},
    object::Namespaces,
};
use oarlock_plugin::contract::{ObjectKey, WorkKey};
use tokio::sync::watch;

use crate::access::Access;
use crate::plan::SubscriptionPlan;

/// The hint for the operator about a right that a plugin lacks.
pub(crate) const GRANT_HINT: &str = "grant what `oarlock rbac` prints for this plugin (for a Plugin object: for its component, with \
                              --service-account), or remove the subscription from the plugin";

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

/// Returns what merged notifications must show: the keys that are queued, and of a lister that wakes, that
/// something has merged.
fn keys(plan: &SubscriptionPlan) -> Option<NamedKey> {
    if plan.wakes.is_some() {
        return Some(NamedKey::new(|_| None));
    }
    let rule = plan.enqueue.clone();
    let key = move |object: &Object| {
        let WorkKey { object: ObjectKey { namespace, name }, .. } = rule.key(object)?;
        Some(format!("{namespace}/{name}"))
    };
    (!plan.enqueue.is_nothing()).then(|| NamedKey::new(key))
}

/// Returns the configuration of a subscription's listener.
pub(crate) fn listener_config(plan: &SubscriptionPlan, namespaces: Namespaces) -> ListenerConfig {
    ListenerConfig {
        name: plan.name.clone(),
        namespaces,
        label_selector: plan.selector.clone(),
        conditions: plan.conditions.to_vec(),
        fields: plan.fields.to_vec(),
        resync: Some(plan.resync.unwrap_or(Duration::ZERO)),
        backlog_limit: BACKLOG_LIMIT,
        account: BacklogAccount::default(),
        keys: keys(plan),
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
