//! The lines for people: time, level, plugin, message.
//!
//! A message says what happened, to which object, what the host does about it, and, after `Fix:`, what the
//! operator can do.

use std::fmt::{self, Display, Formatter};

use super::host_event::{HostEvent, Mode, NotificationType};
use super::terminal::{Lines, OneLine};
use super::{CallOutcome, Counted, Level, Line, NextTry, Suspender, with_object_names};
use crate::size::Size;

// === impl Line ===

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:5} ", self.time.time_of_day(), self.event.level())?;
        match (&self.plugin, self.generation) {
            (Some(plugin), Some(generation)) => write!(f, "{plugin}#{generation}: ")?,
            (Some(plugin), None) => write!(f, "{plugin}: ")?,
            (None, _) => write!(f, "oarlock: ")?,
        }
        // Most events contain text from guests, files or the API server.
        Lines(&self.event).fmt(f)?;
        if let HostEvent::PluginExample { command: Some(command), .. } = &self.event {
            // The command has lines of its own, so that it can be copied.
            command.lines().try_for_each(|line| write!(f, "\n  {}", OneLine(line)))?;
        }
        Ok(())
    }
}

// === impl HostEvent ===

impl Display for HostEvent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.fmt_message(f)?;
        self.hint().map_or(Ok(()), |hint| write!(f, ". Fix: {hint}"))
    }
}

impl HostEvent {
    fn fmt_message(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostStarted { server, version } => {
                write!(f, "oarlock {version} started, API server {server}")
            }
            Self::AdminListening { address, scheme } => {
                write!(f, "serves probes and metrics at {scheme}://{address}")
            }
            Self::AdminSelfSigned { address } => write!(
                f,
                "clients cannot verify the certificate of https://{address}, which the host has made. \
                 To change that, name one with --admin-cert-file and --admin-key-file"
            ),
            Self::ControlListening { socket } => {
                write!(f, "serves commands such as `oarlock plugins` on {socket}")
            }
            Self::ControlUnavailable { message } => {
                write!(f, "commands such as `oarlock plugins` do not reach this host: {message}")
            }
            Self::TracesNotExported { endpoint, message } => write!(
                f,
                "traces are not exported to {endpoint}: {message}. The plugins are not affected, and the host tries again"
            ),
            Self::TracesExported { endpoint } => write!(f, "traces are exported to {endpoint} again"),
            Self::StandingBy { lease, identity } => {
                write!(
                    f,
                    "stands by as {identity}: it loads the plugins, and calls none until it holds the Lease {lease}"
                )
            }
            Self::OtherLeads { identity } => write!(f, "the leader is {identity}, this host stands by"),
            Self::Leading => f.write_str("became leader, and calls the plugins"),
            Self::LeadershipLost { lease } => {
                write!(f, "lost the Lease {lease}. The host stops")
            }
            Self::HostStopping { asked: true } => {
                f.write_str("stopping. A second signal ends the host at once")
            }
            Self::HostStopping { asked: false } => f.write_str("stopping"),
            Self::HostDrained { after_ms, calls_dropped, waiting } => {
                let calls = Counted(*calls_dropped, "call");
                write!(f, "stopped after {after_ms} ms: {calls} {} dropped, ", were(*calls_dropped))?;
                match waiting {
                    1 => f.write_str("1 notification or key waits"),
                    waiting => write!(f, "{waiting} notifications and keys wait"),
                }
            }
            Self::CallsDropped { calls: 1, after_ms } => write!(
                f,
                "1 call did not end within {after_ms} ms, and was dropped. Its object is delivered again"
            ),
            Self::CallsDropped { calls, after_ms } => write!(
                f,
                "{calls} calls did not end within {after_ms} ms, and were dropped. Their objects are delivered again"
            ),
            Self::PluginLoaded { version, digest, mode, took_ms, took_us: _, stands_by } => {
                let digest = short(digest);
                match stands_by {
                    false => write!(f, "version {version} ({digest}) serves after {took_ms} ms: {mode}"),
                    true => write!(
                        f,
                        "version {version} ({digest}) is loaded after {took_ms} ms, and serves when this host leads: {mode}"
                    ),
                }
            }
            Self::GenerationState { state, reason } => write!(f, "is {state}: {reason}"),
            // The component is the same one: only the settings are others.
            Self::PluginRolledBack { version, digest, message, to_version: _, to_digest }
                if digest == to_digest =>
            {
                write!(
                    f,
                    "version {version} ({}) is rolled back to its earlier settings: {message}. Its present \
                     plugin file or object is not in effect, and the host does not try these settings again",
                    short(digest)
                )
            }
            Self::PluginRolledBack { version, digest, message, to_version, to_digest } => write!(
                f,
                "version {version} ({}) is rolled back to {to_version} ({}): {message}. \
                 The host does not try it again",
                short(digest),
                short(to_digest)
            ),
            Self::PluginLastGood { version, digest, has_passed } => {
                let which = if *has_passed { "last good version" } else { "version that was on probation" };
                let digest = short(digest);
                write!(f, "loads the {which}, {version} ({digest}), since the newest one cannot be used")
            }
            Self::VersionBeforeRefused { message, hint: _ } => f.write_str(&with_object_names(message)),
            Self::StateTrouble { message, hint: _ } => write!(
                f,
                "{message}. The host continues; after a restart it may lack the last good version or the \
                 quarantine of this plugin"
            ),
            Self::StatusNotWritten { message } => write!(f, "{message}. The host tries again"),
            Self::CodeNotStored { message } => write!(
                f,
                "its compiled code cannot be stored: {message}. It runs, but is compiled again after a restart of the \
                 host (--cache-dir names the folder)"
            ),
            Self::RecordLimitReached { file, limit } => write!(
                f,
                "the files of its record, {file} and those with a number, have reached the {} of --record-limit. \
                 The host calls it as before, and records no further call of it",
                Size(*limit)
            ),
            Self::RecordFailed { file, message, hint: _ } => write!(
                f,
                "its record {file} has failed: {message}. The host calls it as before, and records no further \
                 call of it"
            ),
            Self::PluginRefused { file, message, hint: _, older_version_serves } => {
                let shown = with_object_names(message);
                match message.strip_prefix(file.as_str()) {
                    // The message begins with the place in the file.
                    Some(_) => write!(f, "refused: {shown}")?,
                    None => write!(f, "{} refused: {shown}", with_object_names(file))?,
                }
                f.write_str(full_stop(message))?;
                f.write_str(match older_version_serves {
                    true => " The version before keeps serving",
                    false => " No version serves",
                })
            }
            Self::PluginCompiling { bytes, before } => {
                write!(f, "compiles its component ({})", Size(*bytes))?;
                if *before > 0 { write!(f, ", after {}", Counted(*before, "other component")) } else { Ok(()) }
            }
            Self::ComponentUnfinished { file, message } => {
                let stop = full_stop(message);
                write!(
                    f,
                    "{file} cannot be used: {message}{stop} It has just changed, so the host reads it again"
                )
            }
            Self::PluginAccepted { file, serves: true } => {
                write!(f, "{} is valid again. The version that serves was made from it", with_object_names(file))
            }
            Self::PluginAccepted { file, serves: false } => {
                write!(f, "{} is valid again. No version serves yet", with_object_names(file))
            }
            Self::SourceReadable { file } => write!(f, "{file} can be read again"),
            // The command follows, each of its lines on a line of its own.
            Self::PluginExample { text, command: _ } => f.write_str(text),
            Self::PluginWaiting { waits_for } => {
                write!(f, "does not serve yet, waits for {}", waits_for.join("; "))
            }
            Self::PluginPanicked { doing, message } => {
                write!(f, "the host panicked in {doing}: {message}. The host loads the plugin again")
            }
            Self::PluginUnloaded { reason } => write!(f, "unloaded: {reason}"),
            Self::PluginSuspended { by: Suspender::Operator } => f.write_str(
                "suspended by `oarlock suspend`: it is not called until `oarlock resume`. Its notifications and keys wait",
            ),
            Self::PluginSuspended { by: Suspender::Definition } => f.write_str(
                "suspended: its file or object has `suspend: true`. Its notifications and keys wait",
            ),
            Self::PluginResumed { by, stays_suspended } => f.write_str(match (by, stays_suspended) {
                (Suspender::Operator, false) => "resumed by `oarlock resume`",
                (Suspender::Operator, true) => {
                    "resumed by `oarlock resume`, and stays suspended: its file or object has `suspend: true`"
                }
                (Suspender::Definition, false) => "resumed: its file or object does not suspend it any more",
                (Suspender::Definition, true) => {
                    "its file or object does not suspend it any more. It stays suspended until `oarlock resume`"
                }
            }),
            Self::ExistingDelivered { subscription, objects, at_most } => {
                let at_most = if *at_most { "at most " } else { "" };
                let objects = Counted(*objects, "existing object");
                write!(f, "delivers {at_most}{objects} again, for `oarlock redeliver --existing`")?;
                match subscription {
                    Some(subscription) => write!(f, " of subscription {subscription}"),
                    None => Ok(()),
                }
            }
            Self::SubscriptionOpened { subscription, resource, namespaces } => {
                write!(f, "subscription {subscription} watches {resource} in ")?;
                match namespaces {
                    None => f.write_str("all namespaces"),
                    Some(namespaces) if namespaces.is_empty() => f.write_str("no namespace"),
                    Some(namespaces) => f.write_str(&namespaces.join(", ")),
                }
            }
            Self::SubscriptionForbidden { subscription, resource, message, hint: _ } => {
                write!(f, "subscription {subscription} of {resource} closed, Forbidden: {message}")
            }
            Self::SubscriptionPaused { subscription, resource, message } => write!(
                f,
                "subscription {subscription} of {resource} paused: {message}. \
                 Nothing is delivered until the host knows the rights of the plugin's account"
            ),
            Self::SyncedFailed { subscription, outcome } => {
                write!(f, "on-synced of {subscription}")?;
                outcome_of(f, outcome, 0)
            }
            Self::SubscriptionSynced { subscription, remaining } => match remaining {
                0 => write!(f, "subscription {subscription} synced, all are synced"),
                remaining => write!(f, "subscription {subscription} synced, {remaining} not synced yet"),
            },
            Self::Delivered {
                subscription,
                notification,
                namespace,
                name,
                attempts,
                took_us,
                outcome,
                ..
            } => {
                write!(f, "on-{notification} of {}", Named(subscription, namespace, name))?;
                if *attempts > 0 {
                    write!(f, " (call {})", attempts.saturating_add(1))?;
                }
                outcome_of(f, outcome, *took_us)
            }
            Self::Reconciled { kind, namespace, name, took_us, outcome } => {
                write!(f, "reconcile of {}", Named(kind, namespace, name))?;
                outcome_of(f, outcome, *took_us)
            }
            Self::GuestLog { level, object: _, message, pairs } => {
                match level {
                    // A panic or an exception has several lines.
                    Level::Error => write!(f, "{}", message.trim_end())?,
                    _ => write!(f, "{}", OneLine(message))?,
                }
                pairs
                    .0
                    .iter()
                    .try_for_each(|(name, value)| write!(f, " {}={}", OneLine(name), OneLine(value)))
            }
            Self::InstanceLost {
                function,
                about,
                reason,
                message,
                output,
                backtrace,
                losses,
                restart_after_ms,
                next_try,
            } => {
                match about.as_str() {
                    "" => write!(f, "instance lost in {function} ({reason}): {message}. ")?,
                    about => write!(f, "instance lost in {function} of {about} ({reason}): {message}. ")?,
                }
                match restart_after_ms {
                    None => f.write_str("The version that serves gets the call, if it watches the object")?,
                    Some(0) => f.write_str("A fresh instance starts at once")?,
                    Some(wait) => {
                        let losses = Counted(*losses, "loss");
                        write!(f, "A fresh instance starts in {wait} ms, after {losses} in a row")?;
                    }
                }
                next_try.iter().try_for_each(|NextTry { tries, after_ms }| match after_ms {
                    Some(after) => write!(
                        f,
                        ". The next call for {about} is made in {after} ms or later, when no other work is ready \
                         (calls so far: {tries})"
                    ),
                    None => write!(f, ". {about} is parked after {}: {PARKED}", Counted(*tries, "call")),
                })?;
                indented(f, output.lines())?;
                if output.is_empty() {
                    return indented(f, backtrace.lines());
                }
                // A frame without a name adds nothing to what the guest wrote itself.
                let named = || backtrace.lines().filter(|frame| !frame.contains("<wasm function"));
                // The first line is a title.
                if named().nth(1).is_some() { indented(f, named()) } else { Ok(()) }
            }
            Self::InstanceRestarted { mode, took_us: _ } => write!(f, "a fresh instance serves: {mode}"),
            Self::ResourceAbsent { resource, message, hint: _, wanted_by } => {
                write!(f, "{resource} is absent: {message}. The host asks again at least every 5 s")?;
                wanted(f, wanted_by)
            }
            Self::ResourceOverBudget { resource, message, hint: _, wanted_by } => {
                write!(f, "the budget has no room for {resource}: {message}. The host tries again later")?;
                wanted(f, wanted_by)
            }
            Self::ResourceWithinBudget { resource } => write!(f, "the budget has room for {resource} now"),
            Self::OverBudget { message, hint: _ } => {
                write!(f, "the caches exceed the budget: {message}. They stay, no new informer is started")
            }
            Self::WithinBudget => f.write_str("the caches are within the budget again"),
            Self::ResourceServed { resource } => write!(f, "the API server serves {resource} now"),
            Self::ResourceForbidden { resource, message, hint: _ } => {
                write!(f, "the host's account may not watch {resource}: {message}. The host tries again")
            }
            Self::WatchTrouble { resource, message } => {
                write!(f, "the watch of {resource} fails: {message}. The host tries again")
            }
            Self::WatchRecovered { resource } => write!(f, "the watch of {resource} works again"),
            Self::FileWatchTrouble { message } => write!(
                f,
                "the system does not report changes of the plugin files: {message}. \
                 The host reads the files every few seconds instead"
            ),
            Self::ReportsDropped { count } => {
                let lines = Counted(*count, "line");
                write!(f, "{lines} of this output {} dropped, because it was read too slowly", were(*count))
            }
        }
    }
}

/// What happens to a parked object or key.
const PARKED: &str = "the host calls again at its next event, when another version of the plugin loads, \
                      after `oarlock redeliver`, and within `retry.parkedDelay` (default 5m)";

fn were(n: u64) -> &'static str {
    if n == 1 { "was" } else { "were" }
}

/// Returns as much of a digest as identifies it among a few.
fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn outcome_of(f: &mut Formatter<'_>, outcome: &CallOutcome, took_us: u64) -> fmt::Result {
    match outcome {
        CallOutcome::Done => write!(f, ": done in {took_us} µs"),
        CallOutcome::Retry { message, after_ms } => {
            write!(f, " failed: {message}. The next call is made in {after_ms} ms")
        }
        CallOutcome::Parked { message } => write!(f, " failed: {message}. It is parked: {PARKED}"),
    }
}

/// Writes each line of a guest on a line of its own, which [`Lines`] indents.
fn indented<'a>(f: &mut Formatter<'_>, lines: impl Iterator<Item = &'a str>) -> fmt::Result {
    for line in lines {
        write!(f, "\n{}", Lines(line.trim_end()))?;
    }
    Ok(())
}

fn wanted(f: &mut Formatter<'_>, by: &[String]) -> fmt::Result {
    if by.is_empty() { Ok(()) } else { write!(f, ". Wanted by {}", by.join(", ")) }
}

/// Returns what ends the sentence of a message: nothing if it has an end.
fn full_stop(message: &str) -> &'static str {
    if message.ends_with(['?', '.', '!']) { "" } else { "." }
}

/// The kind of a key, or a subscription, with the namespace and the name of the object. A key may have
/// neither.
pub(crate) struct Named<'a>(pub(crate) &'a str, pub(crate) &'a str, pub(crate) &'a str);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self(kind, "", "") => f.write_str(kind),
            Self(kind, "", name) => write!(f, "{kind} {name}"),
            Self(kind, namespace, name) => write!(f, "{kind} {namespace}/{name}"),
        }
    }
}

// === impl NotificationType, Mode ===

impl Display for NotificationType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Add => "add",
            Self::Update => "update",
            Self::Delete => "delete",
        })
    }
}

impl Display for Mode {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::First => "the first version",
            Self::Replay => "all objects are delivered again",
            Self::TakeOver => "unchanged subscriptions continue where they stopped",
        })
    }
}
