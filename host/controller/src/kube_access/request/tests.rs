use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};

use oarlock_fake_api::{FakeApi, Reply};
use oarlock_plugin::contract::{PatchKind, Preconditions};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::*;
use crate::kube_access::testing::{core_v1, requester, requester_of};

/// The time for which a renewal of the Lease counts.
const LASTS: Duration = Duration::from_secs(10);

/// A host that renews its Lease whenever the test says so.
struct Host {
    api: FakeApi,
    leadership: Leadership,
    renewed: Arc<Mutex<Option<Instant>>>,
    requester: Requester,
}

impl Host {
    fn new() -> Self {
        let api = FakeApi::new(|request| {
            if request.path == "/api/v1" { core_v1() } else { Reply::json(200, r#"{"metadata":{}}"#) }
        });
        let leadership = Leadership::standby();
        let renewed: Arc<Mutex<Option<Instant>>> = Arc::default();
        let until = renewed.clone();
        leadership.lasts_until(move || until.lock().map(|at| at + LASTS));
        let identity = Identity::unfollowed("ns/p".parse().expect("an account"));
        let requester = requester_of(&api, identity, leadership.clone());
        Self { api, leadership, renewed, requester }
    }

    fn renew(&self) {
        *self.renewed.lock() = Some(Instant::now());
    }

    async fn patch(&self) -> Result<(), Error> {
        let (target, key) = (target(), key());
        let none = Preconditions { uid: None, resource_version: None };
        let patch = self.requester.patch(&target, &key, "", PatchKind::MergePatch, "{}".to_owned(), &none);
        patch.await.map(drop)
    }

    /// Returns how many writes the API server has seen.
    fn n_writes(&self) -> usize {
        self.api.requests().iter().filter(|it| it.method != "GET").count()
    }
}

fn target() -> GroupVersionResource {
    GroupVersionResource { group: String::new(), version: "v1".to_owned(), plural: "configmaps".to_owned() }
}

fn key() -> ObjectKey {
    ObjectKey { namespace: "n".to_owned(), name: "a".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a_host_on_standby_sends_no_write_and_may_read() {
    let host = Host::new();
    assert!(
        matches!(host.patch().await, Err(Error::Unavailable(why)) if why.contains("does not hold the Lease"))
    );
    host.requester.get(&target(), &key(), "").await.unwrap();
    assert_eq!(host.n_writes(), 0);
    host.renew();
    host.leadership.lead();
    host.patch().await.unwrap();
    assert_eq!(host.n_writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_did_not_renew_in_time_sends_no_write_until_it_has() {
    let host = Host::new();
    host.renew();
    host.leadership.lead();
    host.patch().await.unwrap();
    // The process was stopped meanwhile: no task of the election has run.
    tokio::time::advance(LASTS).await;
    assert!(host.patch().await.is_err());
    assert_eq!(host.n_writes(), 1);
    host.renew();
    host.patch().await.unwrap();
    assert_eq!(host.n_writes(), 2);
    host.leadership.end();
    assert!(host.patch().await.is_err(), "it released the Lease");
    assert_eq!(host.n_writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waits_is_not_polled_again_when_leadership_is_over() {
    let host = Host::new();
    host.renew();
    host.leadership.lead();
    let polls = AtomicUsize::new(0);
    // It waits for a connection, and would be sent at its last poll.
    let mut waits = pin!(tokio::time::sleep(LASTS * 2));
    let write = poll_fn(|cx| {
        polls.fetch_add(1, Ordering::Relaxed);
        waits.as_mut().poll(cx)
    });
    let result = host.requester.fenced("patch configmaps n/a", write).await;
    assert!(matches!(result, Err(Error::Timeout(why)) if why.contains("another one may lead")));
    assert_eq!(polls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_refusal_that_quotes_a_value_of_a_secret_comes_without_it() {
    let api = FakeApi::new(|request| match &*request.path {
        "/api/v1" => core_v1(),
        // As a webhook may answer.
        _ => Reply::json(
            422,
            r#"{"reason": "Invalid", "message": "settings is invalid: the password hunter2 is weak", "code": 422}"#,
        ),
    });
    let requester = requester(&api);
    let none = Preconditions { uid: None, resource_version: None };
    let refused = async |plural: &str| {
        let target = GroupVersionResource { plural: plural.to_owned(), ..target() };
        let patch = r#"{"stringData":{"password":"hunter2"}}"#.to_owned();
        requester.patch(&target, &key(), "", PatchKind::MergePatch, patch, &none).await.unwrap_err()
    };
    let said = |what, password| {
        Error::Invalid(format!("patch {what} n/a: settings is invalid: the password {password} is weak"))
    };
    assert_eq!(refused("secrets").await, said("secrets", "<hidden>"));
    assert_eq!(refused("configmaps").await, said("configmaps", "hunter2"));
}
