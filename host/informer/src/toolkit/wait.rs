//! Waits until several caches or listeners have synced (client-go: `cache.WaitForCacheSync`).

use std::collections::BTreeMap;
use std::error::Error;

use async_trait::async_trait;
use futures::future;
use tokio_util::sync::CancellationToken;

use crate::listener::ListenerHandle;
use crate::names::GroupVersionResource;
use crate::shared_informer::SharedInformer;

/// The reason why a wait ended early: a text or an error.
pub type Cause = Box<dyn Error + Send + Sync>;

/// An informer or a listener: it syncs once.
#[async_trait]
pub trait Syncing: Send + Sync {
    /// Returns its name for logs and errors.
    fn sync_name(&self) -> String;
    /// Returns true if it has synced.
    fn is_synced(&self) -> bool;
    /// Waits until it has synced; returns false if it has ended before.
    async fn until_synced(&self) -> bool;
}

/// At least one of them has not synced.
#[derive(Debug, thiserror::Error)]
#[error("failed to sync all caches: {}: {cause}", names.join(", "))]
pub struct NotSynced {
    /// The names of those that have not synced, sorted.
    pub names: Vec<String>,
    /// The reason why the wait ended.
    #[source]
    pub cause: Cause,
}

/// The caches that have synced, and the reason why the wait ended early.
#[derive(Debug, Default)]
pub struct SyncResult {
    /// For each cache, true if it has synced.
    pub synced: BTreeMap<GroupVersionResource, bool>,
    /// The reason, if the wait ended early.
    pub cause: Option<Cause>,
}

/// Waits until all have synced; returns false if the token is cancelled first, or if one ends before it has
/// synced.
///
/// It logs nothing; [`wait_for`] logs and returns the missing names.
pub async fn wait_for_cache_sync(token: &CancellationToken, all: &[&dyn Syncing]) -> bool {
    wait_for(None, all, cancelled(token)).await.is_ok()
}

/// Waits until all have synced, or until `stop` ends with a cause.
///
/// If all have synced and `stop` has ended too, the call succeeds. With a purpose it logs the start and the
/// end.
///
/// # Errors
///
/// When `stop` ends first, or one ends before it has synced.
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
            tracing::info!(purpose, unfinished = names.join(", "), %cause, "stopped waiting");
        }
        (None, _) => {}
    }
    result
}

/// Ends when the token is cancelled, with a cause for [`wait_for`].
pub async fn cancelled(token: &CancellationToken) -> &'static str {
    token.cancelled().await;
    "the wait was cancelled"
}

// === impl SyncResult ===

impl SyncResult {
    /// Returns true if all caches have synced.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.synced.values().all(|is_synced| *is_synced)
    }

    /// Returns an error if the wait ended early.
    ///
    /// # Errors
    ///
    /// The cause and the names of the caches that have not synced.
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
    async fn the_wait_is_true_when_all_have_synced_and_false_when_stopped_si_30() {
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
        assert!(wait_for_cache_sync(&token, &both).await, "SI-31: a finished sync wins over the token");
        assert!(!wait_for_cache_sync(&token, &[&first, &fake("never", None)]).await);
        let token = CancellationToken::new();
        assert!(!wait_for_cache_sync(&token, &[&fake("stopped", Some(false))]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn the_error_names_the_unsynced_sorted_with_the_cause_si_31() {
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
    fn a_result_with_a_cause_is_an_error_si_32() {
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
