//! Waiting until several caches, or those who are told of them, have synced.

use std::collections::BTreeMap;
use std::error::Error;

use async_trait::async_trait;
use futures::future;
use tokio_util::sync::CancellationToken;

use crate::listener::ListenerHandle;
use crate::names::GroupVersionResource;
use crate::shared_informer::SharedInformer;

/// Why a wait was given up. Made from a text or from any error.
pub type Cause = Box<dyn Error + Send + Sync>;

/// Something that syncs once: an informer, or one who is told by it.
#[async_trait]
pub trait Syncing: Send + Sync {
    /// Names it in logs and errors.
    fn sync_name(&self) -> String;
    /// Whether it has synced.
    fn is_synced(&self) -> bool;
    /// Waits until it has synced; answers false when it has ended and never will.
    async fn until_synced(&self) -> bool;
}

/// Not everything has synced.
#[derive(Debug, thiserror::Error)]
#[error("failed to sync all caches: {}: {cause}", names.join(", "))]
pub struct NotSynced {
    /// What has not, sorted by name.
    pub names: Vec<String>,
    /// Why it was not waited for any longer.
    #[source]
    pub cause: Cause,
}

/// Which of several caches have synced, and why they were not waited for any longer.
#[derive(Debug, Default)]
pub struct SyncResult {
    /// Whether each that was waited for has synced.
    pub synced: BTreeMap<GroupVersionResource, bool>,
    /// Why the wait ended early, if it did.
    pub cause: Option<Cause>,
}

/// Waits until all have synced; answers false when `token` was cancelled first, or when one has ended and never will.
///
/// Says nothing in the logs; [`wait_for`] does, and says what is missing.
pub async fn wait_for_cache_sync(token: &CancellationToken, all: &[&dyn Syncing]) -> bool {
    wait_for(None, all, cancelled(token)).await.is_ok()
}

/// Waits until all have synced, or until `stop` ends, which says why.
///
/// What has synced already counts, even if `stop` has ended too. With a purpose, beginning and end are logged.
///
/// # Errors
///
/// When it was stopped, or one has ended and never will sync.
pub async fn wait_for<C: Into<Cause>>(
    purpose: Option<&str>,
    all: &[&dyn Syncing],
    stop: impl Future<Output = C>,
) -> Result<(), NotSynced> {
    if let Some(purpose) = purpose {
        tracing::info!(purpose, "waiting");
    }
    let until_synced = all
        .iter()
        .map(|one| async move { if one.until_synced().await { Ok(()) } else { Err("it has stopped") } });
    let result = tokio::select! {
        biased;
        result = future::try_join_all(until_synced) => result.map(|_| ()).map_err(Cause::from),
        cause = stop => Err(cause.into()),
    };
    let result = result.map_err(|cause| {
        let mut names: Vec<_> =
            all.iter().filter(|one| !one.is_synced()).map(|one| one.sync_name()).collect();
        names.sort();
        NotSynced { names, cause }
    });
    match (purpose, &result) {
        (Some(purpose), Ok(())) => tracing::info!(purpose, "done waiting"),
        (Some(purpose), Err(NotSynced { names, cause })) => {
            tracing::info!(purpose, unfinished = names.join(", "), %cause, "gave up waiting");
        }
        (None, _) => {}
    }
    result
}

/// Ends when the token is cancelled, with words for [`wait_for`].
pub async fn cancelled(token: &CancellationToken) -> &'static str {
    token.cancelled().await;
    "the wait was cancelled"
}

// === impl SyncResult ===

impl SyncResult {
    /// Whether all that were waited for have synced.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.synced.values().all(|is_synced| *is_synced)
    }

    /// Returns an error if the wait ended early.
    ///
    /// # Errors
    ///
    /// With the cause, and the names of those that have not synced.
    pub fn into_result(self) -> Result<(), NotSynced> {
        let Self { synced, cause } = self;
        let Some(cause) = cause else { return Ok(()) };
        let unfinished = synced.iter().filter(|(_, is_synced)| !**is_synced);
        let mut names: Vec<_> = unfinished.map(|(resource, _)| resource.to_string()).collect();
        names.sort();
        Err(NotSynced { names, cause })
    }
}

#[async_trait]
impl Syncing for SharedInformer {
    fn sync_name(&self) -> String {
        self.resource().to_string()
    }

    fn is_synced(&self) -> bool {
        self.has_synced()
    }

    async fn until_synced(&self) -> bool {
        self.wait_for_sync().await
    }
}

#[async_trait]
impl Syncing for ListenerHandle {
    fn sync_name(&self) -> String {
        self.name().to_owned()
    }

    fn is_synced(&self) -> bool {
        self.has_synced()
    }

    async fn until_synced(&self) -> bool {
        self.wait_for_sync().await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::watch;

    use super::*;

    struct Fake(&'static str, watch::Sender<Option<bool>>);

    #[async_trait]
    impl Syncing for Fake {
        fn sync_name(&self) -> String {
            self.0.to_owned()
        }

        fn is_synced(&self) -> bool {
            *self.1.borrow() == Some(true)
        }

        async fn until_synced(&self) -> bool {
            let mut is_synced = self.1.subscribe();
            is_synced.wait_for(Option::is_some).await.is_ok_and(|is_synced| *is_synced == Some(true))
        }
    }

    fn fake(name: &'static str, is_synced: Option<bool>) -> Fake {
        Fake(name, watch::channel(is_synced).0)
    }

    #[tokio::test(start_paused = true)]
    async fn true_once_all_have_synced_false_only_when_stopped_si_30() {
        let (first, second) = (fake("first", Some(true)), fake("second", None));
        let token = CancellationToken::new();
        let both: [&dyn Syncing; 2] = [&first, &second];
        let wait = wait_for_cache_sync(&token, &both);
        let (has_synced, ()) = tokio::join!(wait, async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            second.1.send_replace(Some(true));
        });
        assert!(has_synced);
        token.cancel();
        assert!(wait_for_cache_sync(&token, &both).await, "SI-31: what is done wins");
        assert!(!wait_for_cache_sync(&token, &[&first, &fake("never", None)]).await);
        let token = CancellationToken::new();
        assert!(!wait_for_cache_sync(&token, &[&fake("stopped", Some(false))]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_unfinished_are_named_sorted_with_the_cause_si_31() {
        let (b, a, done) = (fake("b", None), fake("a", None), fake("done", Some(true)));
        let stop = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            "out of patience"
        };
        let error = wait_for(Some("the test"), &[&b, &a, &done], stop).await.unwrap_err();
        assert_eq!(error.names, ["a", "b"]);
        insta::assert_snapshot!(error, @"failed to sync all caches: a, b: out of patience");
        let error = wait_for(None, &[&fake("stopped", Some(false))], future::pending::<Cause>()).await;
        insta::assert_snapshot!(error.unwrap_err(), @"failed to sync all caches: stopped: it has stopped");
    }

    #[test]
    fn a_result_is_an_error_with_its_cause_or_none_si_32() {
        let pods = GroupVersionResource::new("", "v1", "pods");
        let deployments = GroupVersionResource::new("apps", "v1", "deployments");
        let synced = BTreeMap::from([(pods.clone(), false), (deployments.clone(), false)]);
        let cause: Cause = std::io::Error::from(std::io::ErrorKind::TimedOut).into();
        let result = SyncResult { synced, cause: Some(cause) };
        assert!(!result.is_synced());
        let error = result.into_result().unwrap_err();
        insta::assert_snapshot!(error, @"failed to sync all caches: apps/v1/deployments, v1/pods: timed out");
        let cause = Error::source(&error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
        assert_eq!(cause.map(std::io::Error::kind), Some(std::io::ErrorKind::TimedOut));
        assert!(SyncResult { synced: BTreeMap::from([(pods, true)]), cause: None }.into_result().is_ok());
    }
}
