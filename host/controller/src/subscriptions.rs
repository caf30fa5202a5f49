//! From what a plugin wants to watch to an open Listener, and what the gate says about it from then on.
//!
//! The gate is asked again every few seconds for as long as the subscription lives. **Open** follows the namespaces that the account
//! may see; **Forbidden** when it may see none, and then the plugin hears nothing, not even a delete; **unknown** while the
//! API server cannot be asked: what comes waits, so that a chain does not break for an outage. Without its account a subscription is
//! Forbidden, whatever RBAC says.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use oarlock_informer::{
    BacklogAccount, GroupVersionResource, Listener, ListenerConfig, Namespaces, SharedInformer,
};
use oarlock_plugin::contract;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::access::{self, Gate, Readable};
use crate::account::Account;
use crate::identity::Identity;
use crate::plan::SubscriptionPlan;
use crate::tasks::{Criticality, Tasks};

/// How often the gate is asked again. It keeps its answers for longer than this, so most of these cost nothing.
const ASK_AGAIN: Duration = Duration::from_secs(3);

/// How many notifications wait for a plugin one by one; beyond it, those of one object merge.
const BACKLOG_LIMIT: usize = 4_096;

/// How many bytes of old states a plugin's backlogs hold before the same happens. The contract says so, too.
const BACKLOG_BYTES: usize = 64 << 20;

/// What the gate says about one subscription.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Access {
    /// The account may see these namespaces.
    Open(Namespaces),
    /// Nobody can say.
    Unknown(String),
    /// The account may see nothing of it.
    Forbidden(String),
}

/// One subscription with a Listener of its own.
pub(crate) struct Subscription {
    pub(crate) plan: Arc<SubscriptionPlan>,
    pub(crate) listener: Listener,
    pub(crate) access: watch::Receiver<Access>,
    /// What lives as long as the subscription: the informer's handle, the asking of the gate.
    pub(crate) guards: Vec<Box<dyn Any + Send>>,
}

/// What the gate says, followed by a task for as long as this lives.
pub(crate) struct Following {
    pub(crate) access: watch::Receiver<Access>,
    pub(crate) guard: DropGuard,
}

/// Asks the gate, now and from then on.
pub(crate) fn follow(
    tasks: &Tasks,
    gate: Arc<Gate>,
    mut identity: Identity,
    resource: GroupVersionResource,
    namespaces: contract::Namespaces,
    task_name: String,
) -> Following {
    let (sender, access) =
        watch::channel(Access::Unknown("the API server has not been asked yet".to_owned()));
    let guard = CancellationToken::new();
    let ended = guard.clone();
    tasks.spawn(task_name, Criticality::Finite, |token| async move {
        let asking = async {
            loop {
                let access = match identity.refusal() {
                    Some(refusal) => Access::Forbidden(refusal),
                    None => match ask(&gate, identity.account(), &resource, &namespaces).await {
                        Ok(access) => access,
                        Err(error @ access::Error::NoAccount { .. }) => Access::Forbidden(error.to_string()),
                        Err(error) => Access::Unknown(crate::chain::text(&error)),
                    },
                };
                sender.send_if_modified(|before| {
                    let is_news = !before.is_like(&access);
                    if is_news {
                        *before = access;
                    }
                    is_news
                });
                tokio::select! {
                    () = tokio::time::sleep(ASK_AGAIN) => {}
                    _ = identity.changed() => {}
                }
            }
        };
        tokio::select! {
            biased;
            () = token.cancelled() => {}
            () = ended.cancelled() => {}
            () = asking => {}
        }
    });
    Following { access, guard: guard.drop_guard() }
}

/// What to do about a subscription that is Forbidden.
pub(crate) fn forbidden_hint() -> String {
    "grant what `oarlock rbac` prints for this plugin, or take the subscription out of it".to_owned()
}

/// What to open the Listener of a subscription with.
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

/// Returns the account of a plugin: what all its backlogs together may hold of states that the caches have not any more.
pub(crate) fn backlog_account() -> BacklogAccount {
    BacklogAccount::new(BACKLOG_BYTES)
}

/// Opens a subscription's Listener; none when the informer has stopped.
pub(crate) fn open(
    plan: Arc<SubscriptionPlan>,
    informer: &SharedInformer,
    following: Following,
    handle: impl Any + Send,
    account: BacklogAccount,
) -> Option<Subscription> {
    let namespaces = match &*following.access.borrow() {
        Access::Open(namespaces) => namespaces.clone(),
        Access::Unknown(_) | Access::Forbidden(_) => Namespaces::Only(Default::default()),
    };
    let config = ListenerConfig { account, ..listener_config(&plan, namespaces) };
    let listener = informer.add_listener(config).ok()?;
    let Following { access, guard } = following;
    Some(Subscription { plan, listener, access, guards: vec![Box::new(guard), Box::new(handle)] })
}

/// Asks the gate once.
///
/// # Errors
///
/// When it cannot answer.
pub(crate) async fn ask(
    gate: &Gate,
    account: &Account,
    resource: &GroupVersionResource,
    namespaces: &contract::Namespaces,
) -> Result<Access, access::Error> {
    Ok(match gate.readable(account, resource, namespaces).await? {
        readable if readable.is_nowhere() => {
            Access::Forbidden(format!("{account} may not list and watch {resource}{}", place(namespaces)))
        }
        Readable::All => Access::Open(Namespaces::All),
        Readable::Only(namespaces) => Access::Open(Namespaces::Only(namespaces)),
    })
}

fn place(namespaces: &contract::Namespaces) -> String {
    match namespaces {
        contract::Namespaces::All => " in any namespace".to_owned(),
        contract::Namespaces::One(namespace) => format!(" in namespace {namespace}"),
    }
}

// === impl Access ===

impl Access {
    /// Whether it makes no difference. Why nobody can say may read differently each time.
    fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown(_), Self::Unknown(_)) | (Self::Forbidden(_), Self::Forbidden(_)) => true,
            _ => self == other,
        }
    }
}
