//! Objects that cost the plugin its instance.
//!
//! A fresh instance is told everything anew, the object that broke the last one included. Were it called with
//! that at once, nobody else would ever be served. So the table remembers who it was and in which version: the next try
//! waits, and after a number of tries that version is parked unseen until the slow timer lets it try again.
//! A new version of the object gets a try of its own, but no sooner than the back-off allows.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::retry::RetryPolicy;

/// The suspects of one plugin, by what was called for them.
#[derive(Debug)]
pub(super) struct Suspects<K> {
    entries: HashMap<K, Suspect>,
}

/// What to do with a call that is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// Make it.
    Call,
    /// Not yet.
    Wait(Duration),
    /// Not in this version.
    Park,
}

#[derive(Debug)]
struct Suspect {
    /// Changes with every change of what is called for.
    version: String,
    losses: u32,
    lost_at: Instant,
}

// === impl Suspects ===

impl<K: Eq + Hash> Suspects<K> {
    pub(super) fn new() -> Self {
        Self { entries: HashMap::new() }
    }

    /// Whether the call may be made now.
    pub(super) fn judge(&self, key: &K, version: &str, policy: &RetryPolicy) -> Verdict {
        let Some(suspect) = self.entries.get(key) else { return Verdict::Call };
        let waited = suspect.lost_at.elapsed();
        let (wait, is_parked) = match policy.after(suspect.losses) {
            Some(wait) => (wait, false),
            None if suspect.version == version => (policy.parked_again, true),
            None => (policy.cap, false),
        };
        match wait.checked_sub(waited) {
            None | Some(Duration::ZERO) => Verdict::Call,
            Some(_) if is_parked => Verdict::Park,
            Some(rest) => Verdict::Wait(rest),
        }
    }

    /// The call cost the instance. Returns when to try again; none when it is parked.
    pub(super) fn lost(&mut self, key: K, version: &str, policy: &RetryPolicy) -> Option<Duration> {
        let lost_at = Instant::now();
        let suspect =
            self.entries.entry(key).or_insert_with(|| Suspect { version: String::new(), losses: 0, lost_at });
        suspect.losses = suspect.losses.saturating_add(1);
        suspect.lost_at = lost_at;
        version.clone_into(&mut suspect.version);
        policy.after(suspect.losses)
    }

    /// The call came back with an answer, whichever: it breaks nothing now.
    pub(super) fn clear(&mut self, key: &K) {
        if !self.entries.is_empty() {
            self.entries.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_breaker_is_parked_and_its_next_version_waits_its_turn() {
        let policy = RetryPolicy { tries: 3, ..RetryPolicy::default() };
        let mut suspects = Suspects::new();
        assert_eq!(suspects.judge(&"a", "1", &policy), Verdict::Call);
        assert_eq!(suspects.lost("a", "1", &policy), Some(policy.base));
        assert_eq!(suspects.judge(&"a", "1", &policy), Verdict::Wait(policy.base));
        assert_eq!(suspects.judge(&"b", "1", &policy), Verdict::Call);
        tokio::time::advance(policy.base).await;
        assert_eq!(suspects.judge(&"a", "1", &policy), Verdict::Call);
        suspects.lost("a", "1", &policy);
        assert_eq!(suspects.lost("a", "1", &policy), None);
        assert_eq!(suspects.judge(&"a", "1", &policy), Verdict::Park);
        assert_eq!(suspects.judge(&"a", "2", &policy), Verdict::Wait(policy.cap));
        tokio::time::advance(policy.parked_again).await;
        assert_eq!(suspects.judge(&"a", "1", &policy), Verdict::Call);
        suspects.clear(&"a");
        assert_eq!(suspects.judge(&"a", "2", &policy), Verdict::Call);
    }
}
