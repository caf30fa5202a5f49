//! The informers and the access that a new generation's subscriptions and reads need.

use std::sync::Arc;
use std::time::Duration;

use oarlock_informer::{GroupVersionResource, listener::BacklogAccount, object::Content};
use tokio::sync::watch;

use super::{Error, Preparation};
use crate::access::Access;
use crate::dispatch::{GenerationSubscription, GenerationView};
use crate::identity::Identity;
use crate::informers::{InformerHandle, Purpose, Refused};
use crate::kube_access::{Reader, Readers};
use crate::plan::{self, Plan, ReadPlan, SubscriptionPlan};
use crate::subscriptions;

/// How often the host checks whether its memory budget has room for informers that it refused.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// The subscriptions and readers of a generation, with their informers.
pub(super) struct Acquired {
    pub(super) subscriptions: Vec<PendingSubscription>,
    /// The readers of the declared reads, by the plugin's name for them.
    pub(super) readers: Readers,
}

/// A subscription before its listener is open.
pub(super) enum PendingSubscription {
    InheritsListener(Arc<SubscriptionPlan>),
    New { plan: Arc<SubscriptionPlan>, handle: InformerHandle, access: watch::Receiver<Access> },
}

// === impl Preparation ===

impl Preparation<'_> {
    /// Acquires the informers of all new subscriptions and of all reads, and follows the access of the
    /// subscriptions.
    pub(super) async fn acquire(
        &self,
        plan: &Plan,
        active: Option<&GenerationView>,
        identity: &Identity,
    ) -> Acquired {
        let inherits =
            |plan: &SubscriptionPlan| active.is_some_and(|it| it.can_inherit_listener(plan, identity));
        let of_subscription =
            |plan: &Arc<SubscriptionPlan>| (!inherits(plan)).then(|| (plan.resource.clone(), plan.content));
        let of_read = |read: &ReadPlan| Some((read.resource.clone(), plan::cached_content(read.content)));
        let wanted: Vec<_> =
            plan.subscriptions.iter().map(of_subscription).chain(plan.reads.iter().map(of_read)).collect();
        let mut handles = self.acquire_informers(&wanted).await;
        let handles_of_reads = handles.split_off(plan.subscriptions.len());
        let pending = |(plan, handle): (Arc<SubscriptionPlan>, Option<InformerHandle>)| {
            let Some(handle) = handle else { return PendingSubscription::InheritsListener(plan) };
            let access = identity.access_to(&plan.resource, &plan.namespaces);
            PendingSubscription::New { plan, handle, access }
        };
        let reader = |(read, handle): (ReadPlan, Option<InformerHandle>)| {
            let ReadPlan { name, resource, namespaces, content, wakes: _ } = read;
            Some((name, Box::new(Reader { target: resource, namespaces, content, handle: handle? })))
        };
        Acquired {
            subscriptions: plan.subscriptions.iter().cloned().zip(handles).map(pending).collect(),
            readers: plan.reads.iter().cloned().zip(handles_of_reads).filter_map(reader).collect(),
        }
    }

    /// Acquires all of the wanted informers, or none. While the host's memory budget has no room for one of
    /// them, the version is refused, and the host tries again.
    async fn acquire_informers(
        &self,
        wanted: &[Option<(GroupVersionResource, Content)>],
    ) -> Vec<Option<InformerHandle>> {
        let Self { host, slot, file, .. } = self;
        let mut reported = None;
        loop {
            let purpose = || Purpose::Plugin(slot.name.clone());
            let handles: Result<Vec<_>, Refused> = wanted
                .iter()
                .map(|wanted| {
                    let acquire =
                        |(resource, content): &(_, _)| host.informers.acquire(resource, purpose(), *content);
                    wanted.as_ref().map(acquire).transpose()
                })
                .collect();
            match handles {
                Ok(handles) => {
                    if reported.is_some() {
                        slot.status.update(|status| status.refused = None);
                    }
                    return handles;
                }
                Err(refused) if reported.as_ref() == Some(&refused.wanted) => {}
                Err(refused) => {
                    reported = Some(refused.wanted.clone());
                    slot.refuse(&host.reporter, file, &Error::Budget(refused));
                }
            }
            tokio::time::sleep(TRY_AGAIN).await;
        }
    }
}

// === impl PendingSubscription ===

impl PendingSubscription {
    /// Opens the subscription's listener, unless it inherits one.
    pub(super) fn open(self, account: &BacklogAccount) -> Result<GenerationSubscription, Error> {
        let (plan, handle, access) = match self {
            Self::InheritsListener(plan) => return Ok(GenerationSubscription::InheritsListener(plan)),
            Self::New { plan, handle, access } => (plan, handle, access),
        };
        let stopped = || Error::Stopped { resource: plan.resource.to_string() };
        let informer = handle.informer().ok_or_else(stopped)?;
        let subscription = subscriptions::open(plan.clone(), &informer, access, handle, account.clone())
            .ok_or_else(stopped)?;
        Ok(GenerationSubscription::New(Box::new(subscription)))
    }
}
