//! A line for people: time, plugin, what happened.

use std::fmt::{self, Display, Formatter};

use super::Line;
use super::host_event::{CallOutcome, HostEvent, Level, Mode, NextTry, NotificationType};
use super::terminal::{Lines, OneLine};
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
        // Guests, files and the API server have a word in most events.
        Lines(&self.event).fmt(f)?;
        if let HostEvent::PluginExample { command: Some(command), .. } = &self.event {
            // To be copied: nothing but the command stands on its lines.
            command.lines().try_for_each(|line| write!(f, "\n  {}", OneLine(line)))?;
        }
        Ok(())
    }
}

// === impl HostEvent ===

impl Display for HostEvent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::HostStarted { server, version } => write!(f, "oarlock {version} works with {server}"),
            Self::AdminListening { address } => write!(f, "probes and metrics at http://{address}"),
            Self::AdminExposed { address } => write!(
                f,
                "the pages at http://{address} can be read from other machines, by everyone and without credentials: \
                 name an address of 127.0.0.1 with --admin-addr, or let a firewall or NetworkPolicy keep others out"
            ),
            Self::StandingBy { lease, identity } => {
                write!(f, "waits to lead by the Lease {lease}, as {identity}")
            }
            Self::OtherLeads { identity } => write!(f, "{identity} leads"),
            Self::Leading => f.write_str("leads, and runs plugins"),
            Self::LeadershipLost { lease } => write!(f, "lost the Lease {lease}, and ends"),
            Self::HostStopping => f.write_str("ending"),
            Self::PluginLoaded { version, digest, mode, took_ms } => {
                let digest = digest.get(..12).unwrap_or(digest);
                write!(f, "version {version} ({digest}) serves, {mode}, after {took_ms} ms")
            }
            Self::PluginRefused { file, message, hint, older_version_serves } => {
                match message.strip_prefix(file.as_str()) {
                    // The message says where in the file.
                    Some(_) => write!(f, "not used: {message}")?,
                    None => write!(f, "{file} is not used: {message}")?,
                }
                if let Some(hint) = hint {
                    write!(f, "; {hint}")?;
                }
                if *older_version_serves {
                    f.write_str(" (the version before goes on)")?;
                }
                Ok(())
            }
            Self::PluginCompiling { bytes, before } => {
                write!(f, "compiling its component, {}", Size(*bytes))?;
                if *before > 0 { write!(f, ", after {before} others") } else { Ok(()) }
            }
            Self::ComponentUnfinished { file, message } => {
                write!(f, "{file} has just changed and is looked at again: {message}")
            }
            Self::PluginAccepted { file } => {
                write!(f, "{file} is in order again; the version that serves stays")
            }
            // The command follows on lines of its own.
            Self::PluginExample { text, command: _ } => f.write_str(text),
            Self::PluginWaiting { waits_for } => write!(f, "waits for {}", waits_for.join(", ")),
            Self::PluginPanicked { doing, message } => {
                write!(
                    f,
                    "the host panicked in {doing}: {message}; this is a bug of the host, which goes on without it"
                )
            }
            Self::PluginUnloaded => f.write_str("unloaded"),
            Self::SubscriptionOpened { subscription, resource, namespaces } => {
                write!(f, "watches {resource} as {subscription}")?;
                match namespaces {
                    None => f.write_str(" in all namespaces"),
                    Some(namespaces) => write!(f, " in {}", namespaces.join(", ")),
                }
            }
            Self::SubscriptionForbidden { subscription, resource, message, hint } => {
                write!(f, "Forbidden: {subscription} (of {resource}) is closed: {message}; {hint}")
            }
            Self::SubscriptionPaused { subscription, resource, message } => {
                write!(f, "{subscription} (of {resource}) pauses: {message}")
            }
            Self::SyncedFailed { subscription, outcome } => {
                write!(f, "on-synced {subscription}")?;
                outcome_of(f, outcome, 0)
            }
            Self::SubscriptionSynced { subscription, remaining } => {
                write!(f, "{subscription} synced, {remaining} to go")
            }
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
                write!(f, "{notification} {subscription} {}", Named(namespace, name))?;
                outcome_of(f, outcome, *took_us)?;
                if *attempts > 0 { write!(f, ", tried {attempts} times before") } else { Ok(()) }
            }
            Self::Reconciled { kind, namespace, name, took_us, outcome } => {
                write!(f, "reconcile {kind} {}", Named(namespace, name))?;
                outcome_of(f, outcome, *took_us)
            }
            Self::GuestLog { level, message, pairs } => {
                match level {
                    // A panic or an exception, which are only readable as they were written.
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
                    "" => write!(f, "instance lost in {function} ({reason}): {message}; ")?,
                    about => write!(f, "instance lost in {function} of {about} ({reason}): {message}; ")?,
                }
                match restart_after_ms {
                    0 => f.write_str("a fresh one starts at once")?,
                    wait => write!(f, "loss {losses} in a row, a fresh one starts in {wait} ms")?,
                }
                next_try.iter().try_for_each(|NextTry { tries, after_ms }| match after_ms {
                    Some(after) => write!(
                        f,
                        "; {about} is tried again in {after} ms, when nothing else waits (tries: {tries})"
                    ),
                    None => write!(f, "; {about} is parked (tries: {tries})"),
                })?;
                indented(f, output.lines())?;
                // Where the guest said itself what happened, frames without names add nothing.
                let is_worth_showing = |frame: &&str| output.is_empty() || !frame.contains("<wasm function");
                indented(f, backtrace.lines().filter(is_worth_showing))
            }
            Self::InstanceRestarted { mode } => write!(f, "fresh instance, {mode}"),
            Self::ResourceAbsent { resource, message, wanted_by } => {
                write!(f, "{resource}: {message}")?;
                wanted(f, wanted_by)
            }
            Self::ResourceOverBudget { resource, message, hint, wanted_by } => {
                write!(f, "no room for {resource}: {message}; {hint}")?;
                wanted(f, wanted_by)
            }
            Self::ResourceWithinBudget { resource } => write!(f, "there is room for {resource}"),
            Self::OverBudget { message, hint } => {
                write!(f, "over budget: {message}; what is cached stays, nothing new is begun; {hint}")
            }
            Self::WithinBudget => f.write_str("the caches are within the budget again"),
            Self::ResourceServed { resource } => write!(f, "{resource} is served"),
            Self::ResourceForbidden { resource, message, hint } => {
                write!(f, "Forbidden: the host may not watch {resource}: {message}; {hint}")
            }
            Self::WatchTrouble { resource, message } => write!(f, "watch of {resource}: {message}"),
            Self::WatchRecovered { resource } => write!(f, "watch of {resource} works"),
            Self::FileWatchTrouble { message } => {
                write!(f, "changed files are found by looking every few seconds only: {message}")
            }
            Self::ReportsDropped { count } => {
                write!(f, "{count} lines were lost: nobody read the output in time")
            }
        }
    }
}

fn outcome_of(f: &mut Formatter<'_>, outcome: &CallOutcome, took_us: u64) -> fmt::Result {
    match outcome {
        CallOutcome::Done => write!(f, ": done in {took_us} µs"),
        CallOutcome::Retry { message, after_ms } => write!(f, ": {message}; again in {after_ms} ms"),
        CallOutcome::Parked { message } => write!(
            f,
            ": {message}; parked: tried again at its next event, at a swap of the plugin, and every few minutes"
        ),
    }
}

/// A guest's lines, each on a line of its own: [`Lines`] indents them.
fn indented<'a>(f: &mut Formatter<'_>, lines: impl Iterator<Item = &'a str>) -> fmt::Result {
    for line in lines {
        write!(f, "\n{}", OneLine(line.trim_end()))?;
    }
    Ok(())
}

fn wanted(f: &mut Formatter<'_>, by: &[String]) -> fmt::Result {
    if by.is_empty() { Ok(()) } else { write!(f, "; wanted by {}", by.join(", ")) }
}

struct Named<'a>(&'a str, &'a str);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self("", name) => f.write_str(name),
            Self(namespace, name) => write!(f, "{namespace}/{name}"),
        }
    }
}

// === impl Level, NotificationType, Mode ===

impl Display for Level {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

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
            Self::First => "its first version",
            Self::Replay => "all objects are delivered to it again",
            Self::TakeOver => "it continues where the one before stopped",
        })
    }
}
