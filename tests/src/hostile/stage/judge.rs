//! Compares what plugins received with the history.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::Value;

use super::{GOOD, Stage};
use crate::chain_check::{Ends, Subscription, Violation, ViolationKind, check_from};
use crate::received::ReceivedNotification;
use crate::recorder::History;

/// How long plugins may take to report what was changed.
const JUDGE_LIMIT: Duration = Duration::from_secs(300);

/// The time between two checks, each of which reads everything since the last checkpoint.
const PAUSE: Duration = Duration::from_millis(500);

/// What one check compares.
struct Evidence {
    received: Vec<ReceivedNotification>,
    history: History,
}

// === impl Stage ===

impl Stage {
    /// Waits until each good plugin has received what the history says, and nothing else.
    ///
    /// # Errors
    ///
    /// At once when something was repeated, reordered or invented, and after a long time when something is
    /// missing.
    pub async fn judge(&self) -> anyhow::Result<()> {
        self.judge_plugins(&GOOD, false).await
    }

    /// The same for these plugins.
    ///
    /// # Errors
    ///
    /// As for [`Stage::judge`].
    pub async fn judge_plugins(&self, plugins: &[&str], stateless: bool) -> anyhow::Result<()> {
        let all: Vec<_> = plugins.iter().map(|name| (*name, stateless)).collect();
        self.checked(&all).await.map(drop)
    }

    /// Judges the good plugins and these, each with whether it is stateless, then forgets what they received.
    /// No other plugin may report notifications. Returns how many notifications these were.
    ///
    /// A long run that does this now and then needs no more memory than a short one.
    ///
    /// # Errors
    ///
    /// As for [`Stage::judge`].
    pub async fn checkpoint(&mut self, plugins: &[(&str, bool)]) -> anyhow::Result<usize> {
        let all: Vec<_> = GOOD.iter().map(|name| (*name, false)).chain(plugins.iter().copied()).collect();
        let (ends, Evidence { received, history }) = self.checked(&all).await?;
        self.ends = ends;
        self.host.forget_notifications(received.len());
        self.recorder.forget(&history);
        self.written.clear();
        Ok(received.len())
    }

    /// Waits until all these plugins have received what the history says.
    async fn checked(&self, plugins: &[(&str, bool)]) -> anyhow::Result<(HashMap<String, Ends>, Evidence)> {
        let begun = Instant::now();
        loop {
            let evidence = self.evidence()?;
            let violations = match self.check(plugins, &evidence) {
                Ok(ends) => return Ok((ends, evidence)),
                Err(violations) => violations,
            };
            // The recorder may be behind the host.
            let is_new = |violation: &Violation| {
                matches!(violation.kind, ViolationKind::UnknownVersion { .. } | ViolationKind::UnknownObject)
            };
            let may_resolve = violations.iter().any(is_new) || violations.iter().all(Violation::may_resolve);
            if !may_resolve || begun.elapsed() > JUDGE_LIMIT {
                let evidence = of_first_violation(&violations, &evidence);
                let violations: Vec<_> = violations.iter().map(ToString::to_string).collect();
                bail!("notifications differ from the history: {violations:#?}\n{evidence}");
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns what there is since the last checkpoint.
    fn evidence(&self) -> anyhow::Result<Evidence> {
        // First what was received, then the history: the recorder is seldom behind.
        let received = self.host.printed().received();
        Ok(Evidence { received, history: self.recorder.history()? })
    }

    fn check(
        &self,
        plugins: &[(&str, bool)],
        evidence: &Evidence,
    ) -> Result<HashMap<String, Ends>, Vec<Violation>> {
        let Evidence { received, history } = evidence;
        let matches = |object: &Value| object["metadata"]["labels"]["app"] == "hello";
        let mut history = history.clone();
        history.retain(|_, versions| versions.iter().any(|version| matches(&version.object)));
        let (mut ends, mut violations) = (HashMap::new(), Vec::new());
        for (plugin, stateless) in plugins.iter().copied() {
            let subscription = Subscription { plugin, name: "configmaps", matches: &matches, stateless };
            let before = self.ends.get(plugin).cloned().unwrap_or_default();
            match check_from(&before, &subscription, &history, received) {
                Ok(end) => drop(ends.insert(plugin.to_owned(), end)),
                Err(found) => violations.extend(found),
            }
        }
        if violations.is_empty() { Ok(ends) } else { Err(violations) }
    }
}

/// Returns what was received of the object of the first violation, after what its history has.
fn of_first_violation(violations: &[Violation], evidence: &Evidence) -> String {
    let is_serious = |violation: &&Violation| !violation.may_resolve();
    let Some(Violation { plugin, key, .. }) =
        violations.iter().find(is_serious).or_else(|| violations.first())
    else {
        return String::new();
    };
    let mut text = format!("the history of {key}:");
    for version in evidence.history.get(key).into_iter().flatten() {
        let deleted = if version.deleted { " deleted" } else { "" };
        text += &format!(" {}{deleted}", version.resource_version());
    }
    text += &format!("\nwhat {plugin} received of it:");
    for it in evidence.received.iter().filter(|it| it.plugin == *plugin && it.key == *key) {
        let old = it.old_resource_version.as_ref().map(|old| format!(" from {old}")).unwrap_or_default();
        text += &format!(" [{} {:?}{old} {}]", it.generation, it.kind, it.resource_version);
    }
    text
}
