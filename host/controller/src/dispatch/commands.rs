//! What people tell the dispatcher of one plugin: suspend, resume, redeliver, and show what is parked.

use futures::channel::mpsc;
use tokio::sync::oneshot;

use oarlock_informer::object::ObjectKey;
use oarlock_plugin::contract::{self, WorkKey};

use super::active_generation::ActiveGeneration;
use super::due_call::CallKey;
use super::existing::ExistingOf;
use super::parked::Parked;
use super::queue::Key;
use super::{Dispatcher, PluginQueue};
use crate::report::{HostEvent, Suspender};

/// Sends commands to the dispatcher of one plugin. Cheap to clone. When the plugin is gone, commands do
/// nothing.
#[derive(Clone, Debug)]
pub(crate) struct Commands {
    sender: mpsc::Sender<Command>,
}

/// Whether the calls of a plugin are stopped, and how often they were.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Suspension {
    pub(crate) is_suspended: bool,
    /// Whether an operator has suspended the plugin.
    pub(crate) by_operator: bool,
    /// Also counts one that ended before a follower of this looked.
    pub(crate) times: u32,
}

/// What is to be delivered again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Redeliver {
    /// One parked object of a subscription.
    Object { subscription: String, namespace: String, name: String },
    /// One parked key of the work queue.
    Key { kind: String, namespace: String, name: String },
    /// Everything that is parked.
    All,
}

/// Why nothing was delivered again.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum RedeliverError {
    /// The object or key is not parked.
    #[error("it is not parked")]
    NotParked,
    /// The plugin has no subscription of this name.
    #[error("the plugin has no such subscription; it has {}", if .0.is_empty() { "none".to_owned() } else { .0.join(", ") })]
    UnknownSubscription(Vec<String>),
    /// No version of the plugin serves.
    #[error("no version of the plugin serves")]
    NotServing,
    /// The calls of the plugin are stopped.
    #[error("it is suspended")]
    Suspended,
    /// The plugin declares no subscription.
    #[error("the plugin has no subscription")]
    NoSubscription,
    /// A fresh instance of a plugin with state needs the objects of all subscriptions.
    #[error("the plugin is not stateless: its fresh instance receives the objects of all subscriptions")]
    KeepsState,
}

/// What [`Commands::resume`] has done.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Resumption {
    /// No one stops the calls any more.
    #[default]
    Resumed,
    /// The suspension by an operator is over. The plugin's definition still stops the calls.
    StaysSuspended,
    /// Nothing: only the plugin's definition stops the calls.
    Refused,
}

/// A command, and where its answer goes.
#[derive(Debug)]
pub(super) enum Command {
    Suspend(oneshot::Sender<()>),
    Resume(oneshot::Sender<Resumption>),
    /// What the plugin's definition says about its suspension.
    Declare {
        is_suspended: bool,
        done: oneshot::Sender<()>,
    },
    Redeliver(Redeliver, oneshot::Sender<Result<u64, RedeliverError>>),
    /// Delivers every existing object again, of one subscription or of all.
    DeliverExisting(Option<String>, oneshot::Sender<Result<Vec<ExistingOf>, RedeliverError>>),
    Parked(oneshot::Sender<Vec<Parked>>),
}

// === impl Commands ===

impl Commands {
    pub(super) fn new() -> (Self, mpsc::Receiver<Command>) {
        let (sender, receiver) = mpsc::channel(0);
        (Self { sender }, receiver)
    }

    /// Stops the calls of the plugin. A call in progress ends as usual. What comes meanwhile waits in the
    /// backlogs, which merge beyond their bounds as always. Another version does not end it. Returns when it
    /// is done.
    pub(crate) async fn suspend(&self) {
        self.ask(Command::Suspend).await;
    }

    /// Calls the plugin again after [`Commands::suspend`], unless its definition stops its calls too.
    pub(crate) async fn resume(&self) -> Resumption {
        self.ask(Command::Resume).await.unwrap_or_default()
    }

    /// Stops the calls of the plugin or allows them, as its definition says. A plugin is called when neither
    /// its definition nor [`Commands::suspend`] stops its calls.
    pub(crate) async fn declare(&self, is_suspended: bool) {
        self.ask(|done| Command::Declare { is_suspended, done }).await;
    }

    /// Tries parked objects and keys again, now. Returns how many.
    pub(crate) async fn redeliver(&self, what: Redeliver) -> Result<u64, RedeliverError> {
        let answer = self.ask(|answer| Command::Redeliver(what, answer)).await;
        answer.unwrap_or(Err(RedeliverError::NotServing))
    }

    /// Delivers every existing object again as an add, of one subscription or of all, as if its declaration
    /// had changed. A plugin with state gets a fresh instance. Returns how many, for each subscription.
    pub(crate) async fn deliver_existing(
        &self,
        subscription: Option<String>,
    ) -> Result<Vec<ExistingOf>, RedeliverError> {
        let answer = self.ask(|answer| Command::DeliverExisting(subscription, answer)).await;
        answer.unwrap_or(Err(RedeliverError::NotServing))
    }

    /// Returns what is parked, the oldest first: at most [`MAX_NOTES`](super::parked::MAX_NOTES) entries. The
    /// status has their number.
    pub(crate) async fn parked(&self) -> Vec<Parked> {
        self.ask(Command::Parked).await.unwrap_or_default()
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Command) -> Option<T> {
        let (sender, answer) = oneshot::channel();
        // Each clone has a place in the channel. Operators ask, and wait for the answer, so few commands
        // are in it. One whose caller went away stays until the dispatcher takes it.
        self.sender.clone().try_send(command(sender)).ok()?;
        answer.await.ok()
    }
}

// === impl Dispatcher ===

impl Dispatcher {
    pub(super) fn obey(&mut self, active: Option<&mut ActiveGeneration>, command: Command) {
        // A sender of commands that does not wait for the answer does not matter.
        match command {
            Command::Suspend(done) => {
                self.decide_suspension(active, Suspender::Operator, true);
                let _ = done.send(());
            }
            Command::Resume(done) => {
                let resumption = match (self.is_declared_suspended, self.is_suspended) {
                    (false, _) => Resumption::Resumed,
                    (true, true) => Resumption::StaysSuspended,
                    (true, false) => Resumption::Refused,
                };
                self.decide_suspension(active, Suspender::Operator, false);
                let _ = done.send(resumption);
            }
            Command::Declare { is_suspended, done } => {
                self.decide_suspension(active, Suspender::Definition, is_suspended);
                let _ = done.send(());
            }
            Command::Redeliver(what, answer) => {
                let redelivered = match active {
                    Some(active) => active.redeliver(what, &self.queue),
                    None => Err(RedeliverError::NotServing),
                };
                let _ = answer.send(redelivered);
            }
            // An operator whose command ended without an answer may have given it again.
            Command::DeliverExisting(_, answer) if answer.is_closed() => {}
            Command::DeliverExisting(subscription, answer) => {
                let _ = answer.send(self.deliver_existing(active, subscription.as_deref()));
            }
            Command::Parked(answer) => {
                let parked = active.map(|active| active.list_parked(&self.queue)).unwrap_or_default();
                let _ = answer.send(parked);
            }
        }
    }

    /// Notes and applies what one of the two who may stop the calls has decided, and reports it if it is
    /// another decision than before.
    fn decide_suspension(
        &mut self,
        active: Option<&mut ActiveGeneration>,
        by: Suspender,
        is_suspended: bool,
    ) {
        let decision = match by {
            Suspender::Operator => &mut self.is_suspended,
            Suspender::Definition => &mut self.is_declared_suspended,
        };
        let was_suspended = std::mem::replace(decision, is_suspended);
        let generation = active.as_ref().map_or(0, |active| active.number);
        self.apply_suspension(active);
        if is_suspended != was_suspended {
            let event = match is_suspended {
                true => HostEvent::PluginSuspended { by },
                false => HostEvent::PluginResumed { by, stays_suspended: self.is_suspended() },
            };
            self.shared.reporter.about(&self.plugin, generation).report(event);
        }
    }

    /// Stops or allows the calls after one of the two who may stop them has decided. What changes nothing
    /// also changes no times of the lanes.
    fn apply_suspension(&self, active: Option<&mut ActiveGeneration>) {
        let mut active = active;
        let Suspension { is_suspended: was_suspended, times, .. } = self.suspension.get();
        let is_suspended = self.is_suspended();
        let times = times.wrapping_add(u32::from(is_suspended && !was_suspended));
        let by_operator = self.is_suspended;
        self.suspension.update(|it| *it = Suspension { is_suspended, by_operator, times });
        if let Some(active) = active.as_mut().filter(|_| was_suspended && !is_suspended) {
            active.lanes.resumed();
        }
        self.show_phase(active.as_deref());
    }
}

// === impl ActiveGeneration ===

impl ActiveGeneration {
    fn redeliver(&mut self, what: Redeliver, queue: &PluginQueue) -> Result<u64, RedeliverError> {
        let is_parked = match what {
            Redeliver::All => return Ok(self.retry_parked(queue)),
            Redeliver::Key { kind, namespace, name } => {
                let key = Key::from(WorkKey { kind, object: contract::ObjectKey { namespace, name } });
                self.crash_backoff.release(&CallKey::Work(key.clone()));
                queue.retry_parked_key(&key)
            }
            Redeliver::Object { subscription, namespace, name } => {
                let index = self.subscriptions.iter().position(|it| it.plan.name == subscription);
                let Some(index) = index else {
                    let names = self.subscriptions.iter().map(|it| it.plan.name.clone()).collect();
                    return Err(RedeliverError::UnknownSubscription(names));
                };
                let key = ObjectKey::new(namespace, name);
                self.crash_backoff.release(&CallKey::Object(index, key.clone()));
                self.subscriptions[index].listener.retry_parked_object(&key)
            }
        };
        if is_parked { Ok(1) } else { Err(RedeliverError::NotParked) }
    }
}
