//! A call that cost the plugin its instance: what becomes of what it was for, and of the plugin; and one report of both.

use oarlock_informer::ObjectKey;
use oarlock_plugin::CallError;
use tokio::time::Instant;

use super::call::{self, Call};
use super::current::{CallKey, Current};
use super::suspects::Loss;
use super::{Dispatcher, milliseconds, queue};
use crate::report::{HostEvent, NextTry};
use crate::status;

/// What a call was for, in words: `pods default/web`.
pub(super) struct About(String);

/// What becomes of it.
pub(super) enum Fate {
    /// It is a suspect, and waits for its turn.
    Again,
    /// It had its tries: so many.
    Parked(u32),
}

/// Why it is parked.
pub(super) fn given_up(losses: u32) -> String {
    match losses {
        1 => "it cost the plugin its instance, as others do that are still tried".to_owned(),
        losses => format!("it cost the plugin its instance {losses} times"),
    }
}

// === impl Dispatcher ===

impl Dispatcher {
    /// The call cost the instance. A fresh one follows: at once if what it was for was a suspect already, else after a wait that
    /// grows while no call is answered.
    pub(super) fn lost(
        &self,
        current: &mut Current,
        call: &Call,
        what: Option<(CallKey, &str, About)>,
        error: &CallError,
    ) -> Fate {
        let (loss, about) = match what {
            Some((key, version, about)) => {
                (Some(current.suspects.lost(&key, version, &current.retry)), about.0)
            }
            None => (None, String::new()),
        };
        let is_known = loss.is_some_and(|loss| loss.was_suspect);
        self.lose(current, call.function(), about, loss, is_known, error)
    }

    /// No instance could be made.
    pub(super) fn cannot_start(&self, current: &mut Current, error: &CallError) {
        self.lose(current, "start", String::new(), None, false, error);
    }

    fn lose(
        &self,
        current: &mut Current,
        function: &'static str,
        about: String,
        loss: Option<Loss>,
        is_known: bool,
        error: &CallError,
    ) -> Fate {
        let (losses, wait) = match is_known {
            true => (current.restarts.in_a_row(), std::time::Duration::ZERO),
            false => current.restarts.lost(&self.shared.restart),
        };
        current.lose(Instant::now() + wait);
        let reason = call::loss_reason(error);
        self.shared.metrics.lost(&self.plugin, reason);
        let message = error.to_string();
        let message_of_loss = match about.as_str() {
            "" => format!("{function}: {}", error.in_full()),
            about => format!("{function} of {about}: {}", error.in_full()),
        };
        self.status.update(|status| {
            status.phase = status::Phase::Restarting;
            status.instances_lost += 1;
        });
        self.status.record_error(&message_of_loss);
        let next_try = loss.map(|Loss { losses, again_after, .. }| NextTry {
            tries: losses,
            // No sooner than there is an instance.
            after_ms: again_after.map(|after| milliseconds(after.max(wait))),
        });
        let fate = match loss {
            Some(Loss { losses, again_after: None, .. }) => Fate::Parked(losses),
            _ => Fate::Again,
        };
        current.reporter.report(HostEvent::InstanceLost {
            function,
            about,
            reason,
            message,
            output: error.output().to_owned(),
            backtrace: error.backtrace().to_owned(),
            losses,
            restart_after_ms: milliseconds(wait),
            next_try,
        });
        fate
    }
}

// === impl About ===

impl About {
    pub(super) fn object(subscription: &str, key: &ObjectKey) -> Self {
        Self(format!("{subscription} {key}"))
    }

    pub(super) fn subscription(subscription: &str) -> Self {
        Self(subscription.to_owned())
    }

    pub(super) fn key(key: &queue::Key) -> Self {
        Self(key.to_string())
    }
}
