//! The operations of `oarlock plugins`, `top`, `logs`, `suspend` and their like against a running host: JSON
//! over HTTP, under `/v1`.
//!
//! All of them are served on a [unix socket](socket) that only the host's user can open. The admin address
//! serves those that read, without what may quote secrets: the lines of plugins' logs, and the last output of
//! a guest before an error. Over HTTPS it also serves operations about Plugin objects, to users whom
//! Kubernetes allows them (`crate::admin`).

mod refusal;
mod routes;
mod socket;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::refusal::Refusal;
pub(crate) use self::routes::{
    LinesQuery, RedeliverRequest, all, lines, reading, redeliver, release, roll_back,
};
pub(crate) use self::socket::LAST_ANSWERS;
pub use self::socket::{ControlSocket, Error, bind, folder};
use crate::dispatch::{Commands, ExistingOf, Parked, Redeliver, Resumption};
use crate::leadership::{Leadership, LeadershipView, State};
use crate::metrics::{Metrics, PluginUsage};
use crate::reload::{Rollback, RolledBack};
use crate::report::{Reporter, Timestamp};
use crate::status::{PluginStatus, RefusedFile, StatusRegistry};

/// How long a command waits for a plugin's dispatcher, which answers between two calls.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// How long a list waits for each dispatcher.
const LIST_LIMIT: Duration = Duration::from_secs(5);

/// The operations. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Control {
    pub(crate) statuses: StatusRegistry,
    pub(crate) metrics: Metrics,
    pub(crate) reporter: Reporter,
    pub(crate) rollback: Rollback,
    pub(crate) host: Arc<HostFacts>,
    pub(crate) leadership: Leadership,
    /// Cancelled when the host ends, which ends streams.
    pub(crate) token: CancellationToken,
}

/// Whether the errors of plugins have the last output of the guest before them, which may quote secrets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum GuestOutput {
    Shown,
    Withheld,
}

/// Tells one host from another.
#[derive(Debug)]
pub(crate) struct HostFacts {
    /// The address of the API server.
    pub(crate) server: String,
    pub(crate) started: Timestamp,
    /// The start of the clock for samples.
    pub(crate) began: Instant,
}

/// A host, for a list of hosts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct HostView {
    version: &'static str,
    pid: u32,
    server: String,
    started: Timestamp,
    plugins: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    leadership: Option<LeadershipView>,
}

/// All plugins.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PluginsView {
    /// When the host began. What the host counts, it counts since then.
    started: Timestamp,
    /// When the page was made, in microseconds of a clock that only runs forward: for rates.
    sampled_us: u64,
    plugins: Vec<PluginView>,
    refused_files: Vec<RefusedFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leadership: Option<LeadershipView>,
}

/// One plugin: its status, and what it has used.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PluginView {
    #[serde(flatten)]
    status: PluginStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<PluginUsage>,
}

/// What is parked.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ParkedView {
    parked: Vec<ParkedOf>,
    /// How many objects and keys are parked. The list may be shorter.
    total: u64,
    /// Plugins whose dispatcher did not answer in time.
    unanswered: Vec<Arc<str>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ParkedOf {
    plugin: Arc<str>,
    #[serde(flatten)]
    parked: Parked,
}

// === impl HostFacts ===

impl Default for HostFacts {
    fn default() -> Self {
        Self { server: String::new(), started: Timestamp::now(), began: Instant::now() }
    }
}

// === impl Control ===

impl Control {
    fn host(&self) -> HostView {
        HostView {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            server: self.host.server.clone(),
            started: self.host.started,
            plugins: self.statuses.names().len(),
            leadership: self.leadership.view(),
        }
    }

    fn plugins(&self, output: GuestOutput) -> PluginsView {
        PluginsView {
            started: self.host.started,
            sampled_us: u64::try_from(self.host.began.elapsed().as_micros()).unwrap_or(u64::MAX),
            plugins: self.snapshot(output).into_iter().map(|status| self.view(status)).collect(),
            refused_files: self.statuses.refused_files(),
            leadership: self.leadership.view(),
        }
    }

    /// Returns the plugins with these names, and nothing about others.
    pub(crate) fn plugins_where(&self, is_shown: impl Fn(&str) -> bool) -> PluginsView {
        let mut view = self.plugins(GuestOutput::Withheld);
        view.plugins.retain(|plugin| is_shown(&plugin.status.name));
        PluginsView { refused_files: Vec::new(), ..view }
    }

    fn plugin(&self, name: &str, output: GuestOutput) -> Result<PluginView, Refusal> {
        let status = self.snapshot(output).into_iter().find(|status| *status.name == *name);
        status.map(|status| self.view(status)).ok_or_else(|| self.unknown(name))
    }

    fn snapshot(&self, output: GuestOutput) -> Vec<PluginStatus> {
        match output {
            GuestOutput::Shown => self.statuses.snapshot_in_full(),
            GuestOutput::Withheld => self.statuses.snapshot(),
        }
    }

    fn view(&self, status: PluginStatus) -> PluginView {
        let usage = self.metrics.usage(&status.name);
        PluginView { status, usage }
    }

    /// Lists what is parked, of one plugin or of all.
    async fn parked(&self, plugin: Option<&str>) -> Result<ParkedView, Refusal> {
        // A host on standby has nothing that could be parked.
        self.check_leads()?;
        if let Some(name) = plugin {
            self.commands(name)?;
        }
        Ok(self.parked_where(|name| plugin.is_none_or(|plugin| plugin == name)).await)
    }

    /// Lists what is parked of the plugins with these names.
    pub(crate) async fn parked_where(&self, is_shown: impl Fn(&str) -> bool) -> ParkedView {
        let statuses = self.statuses.snapshot().into_iter().filter(|status| is_shown(&status.name));
        let asked = statuses.filter(|status| status.n_parked() > 0).map(|status| async move {
            let commands = self.commands(&status.name).ok()?;
            let parked = tokio::time::timeout(LIST_LIMIT, commands.parked()).await;
            Some((status, parked.ok()))
        });
        let mut view = ParkedView::default();
        for (status, parked) in futures::future::join_all(asked).await.into_iter().flatten() {
            view.total += status.n_parked();
            match parked {
                Some(parked) => {
                    let of = |parked| ParkedOf { plugin: status.name.clone(), parked };
                    view.parked.extend(parked.into_iter().map(of));
                }
                None => view.unanswered.push(status.name.clone()),
            }
        }
        view
    }

    async fn suspend(&self, plugin: &str) -> Result<(), Refusal> {
        self.check_leads()?;
        let commands = self.commands(plugin)?;
        answered(plugin, commands.suspend()).await
    }

    /// Ends the suspension by an operator. Returns whether the plugin's definition still suspends it.
    async fn resume(&self, plugin: &str) -> Result<bool, Refusal> {
        self.check_leads()?;
        let commands = self.commands(plugin)?;
        match answered(plugin, commands.resume()).await? {
            Resumption::Resumed => Ok(false),
            Resumption::StaysSuspended => Ok(true),
            Resumption::Refused => Err(Refusal::suspended_by_definition(plugin)),
        }
    }

    /// Makes the host try parked objects or keys again. Returns how many.
    async fn redeliver(&self, plugin: &str, what: Redeliver) -> Result<u64, Refusal> {
        self.check_leads()?;
        let commands = self.commands(plugin)?;
        let answer = answered(plugin, commands.redeliver(what.clone())).await?;
        answer.map_err(|error| Refusal::redeliver(plugin, &what, error))
    }

    /// Makes the host deliver every existing object again. Returns how many, for each subscription.
    async fn deliver_existing(
        &self,
        plugin: &str,
        subscription: Option<String>,
    ) -> Result<Vec<ExistingOf>, Refusal> {
        self.check_leads()?;
        let commands = self.commands(plugin)?;
        let answer = tokio::time::timeout(ANSWER_LIMIT, commands.deliver_existing(subscription.clone()));
        let answer = answer.await.map_err(|_| Refusal::busy_and_forgotten(plugin, ANSWER_LIMIT))?;
        answer.map_err(|error| Refusal::existing(plugin, subscription.as_deref(), error))
    }

    /// Goes back to the version that served before.
    async fn roll_back(&self, plugin: &str) -> Result<RolledBack, Refusal> {
        self.check_leads()?;
        self.commands(plugin)?;
        let answer = answered(plugin, self.rollback.rollback(plugin)).await?;
        answer.map_err(|error| Refusal::roll_back(plugin, &error))
    }

    /// Lets the host try versions again that were rolled back. Returns how many.
    async fn release(&self, plugin: &str) -> Result<usize, Refusal> {
        self.check_leads()?;
        self.commands(plugin)?;
        let answer = answered(plugin, self.rollback.release(plugin)).await?;
        answer.map_err(|error| Refusal::roll_back(plugin, &error))
    }

    /// Refuses operations that only the leader carries out.
    pub(crate) fn check_leads(&self) -> Result<(), Refusal> {
        match self.leadership.view() {
            Some(LeadershipView { state, leader }) if state != State::Leading => {
                Err(Refusal::standby(&leader))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the host has loaded a plugin with this name.
    pub(crate) fn knows(&self, plugin: &str) -> bool {
        self.statuses.handle(plugin).is_some()
    }

    fn commands(&self, plugin: &str) -> Result<Commands, Refusal> {
        let handle = self.statuses.handle(plugin).ok_or_else(|| self.unknown(plugin))?;
        handle.commands().ok_or_else(|| self.unknown(plugin))
    }

    fn unknown(&self, plugin: &str) -> Refusal {
        match self.statuses.refused_object(plugin) {
            Some(refused) => Refusal::refused_object(plugin, &refused),
            None => Refusal::unknown_plugin(plugin, &self.statuses.names()),
        }
    }
}

async fn answered<T>(plugin: &str, answer: impl Future<Output = T>) -> Result<T, Refusal> {
    tokio::time::timeout(ANSWER_LIMIT, answer).await.map_err(|_| Refusal::busy(plugin, ANSWER_LIMIT))
}

#[cfg(test)]
mod tests;
