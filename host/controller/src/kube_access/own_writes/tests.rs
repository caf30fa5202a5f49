use oarlock_informer::testing::FakeListWatch;
use oarlock_informer::{Listener, ListenerConfig, object::Namespaces, shared_informer::Config};
use oarlock_wait_until::{LIMIT, yield_until};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::tasks::{Criticality, Tasks};

/// A listener of Pods, and the writes of a plugin that ignores its own.
struct Rig {
    api: FakeListWatch,
    informer: SharedInformer,
    listener: Listener,
    own: OwnWrites,
    _tasks: Tasks,
}

impl Rig {
    async fn new() -> Self {
        let api = FakeListWatch::pods();
        api.put("n/a");
        let (tasks, _) = Tasks::new(CancellationToken::new());
        let informer = SharedInformer::new(Arc::new(api.clone()), Config::new(pods()));
        let running = informer.clone();
        tasks.spawn("informer", Criticality::Essential, |token| async move { running.run(token).await });
        assert!(informer.wait_for_sync().await);
        let config = ListenerConfig { namespaces: Namespaces::All, ..ListenerConfig::default() };
        let listener = informer.add_listener(config).unwrap();
        let own = OwnWrites::default();
        own.set_informers([(pods(), informer.clone())]);
        let mut rig = Self { api, informer, listener, own, _tasks: tasks };
        assert_eq!(rig.next().await, Decision::Deliver, "an initial add");
        rig
    }

    /// Writes the Pod as the plugin. `learns` says whether the answer arrives.
    fn write(&self, key: &str, learns: bool) {
        let (namespace, name) = key.split_once('/').unwrap();
        let in_flight = self.own.begins(&target(), namespace, name);
        let object = self.api.put(key);
        if learns {
            in_flight.ends(&answer(&object), &other());
        }
    }

    /// Decides about the next notification, and ends its delivery unless it is held.
    async fn next(&mut self) -> Decision {
        let delivery = self.listener.next().await.unwrap();
        let decision = self.own.decide(&pods(), &delivery, &self.listener);
        self.listener
            .finish(&delivery.key, if decision == Decision::Hold { Outcome::Defer } else { Outcome::Done });
        decision
    }
}

fn pods() -> Resource {
    Resource::new("", "v1", "pods")
}

fn target() -> GroupVersionResource {
    GroupVersionResource { group: String::new(), version: "v1".into(), plural: "pods".into() }
}

/// The write demanded another version than it returned.
fn other() -> Before {
    Before::Version("1".to_owned())
}

fn answer(object: &Object) -> Result<Written, Error> {
    Ok(Written {
        name: object.key().name().to_owned(),
        uid: object.uid().to_owned(),
        resource_version: object.resource_version().to_owned(),
    })
}

#[tokio::test(start_paused = true)]
async fn adds_and_updates_of_own_writes_are_skipped_and_those_of_others_are_not() {
    let mut rig = Rig::new().await;
    rig.write("n/a", true);
    assert_eq!(rig.next().await, Decision::Skip);
    rig.api.put("n/a");
    assert_eq!(rig.next().await, Decision::Deliver, "another writer");
    rig.write("n/new", true);
    assert_eq!(rig.next().await, Decision::Skip);
    rig.api.delete("n/new");
    assert_eq!(rig.next().await, Decision::Deliver, "a delete");
}

#[tokio::test(start_paused = true)]
async fn promise_3_a_write_that_may_have_changed_nothing_skips_no_change_of_another_writer() {
    let mut rig = Rig::new().await;
    let version = |version: &str| Before::Version(version.to_owned());
    // What the write demanded of the version, `=` for the returned one, and whether it is proven to be its
    // change.
    for (before, is_proven) in [
        (version(""), false),
        (version("0"), false),
        (version("="), false),
        (version("0="), false),
        (version("1"), true),
        (Before::NoObject, true),
    ] {
        let in_flight = rig.own.begins(&target(), "n", "a");
        // Another writer's change, which the write finds, or its own.
        let object = rig.api.put("n/a");
        let demanded = match &before {
            Before::Version(it) => version(&it.replace('=', &object.resource_version())),
            Before::NoObject => Before::NoObject,
        };
        in_flight.ends(&answer(&object), &demanded);
        let expected = if is_proven { Decision::Skip } else { Decision::Deliver };
        assert_eq!(rig.next().await, expected, "{before:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn promise_3_a_write_without_an_answer_is_delivered() {
    let mut rig = Rig::new().await;
    rig.write("n/a", false);
    assert_eq!(rig.next().await, Decision::Deliver);
}

#[tokio::test(start_paused = true)]
async fn a_notification_waits_for_the_answer_of_a_write_of_its_object() {
    let mut rig = Rig::new().await;
    let in_flight = rig.own.begins(&target(), "n", "a");
    let object = rig.api.put("n/a");
    assert_eq!(rig.next().await, Decision::Hold);
    // Another object does not wait.
    rig.api.put("n/b");
    assert_eq!(rig.next().await, Decision::Deliver);
    in_flight.ends(&answer(&object), &other());
    assert_eq!(rig.next().await, Decision::Skip);
    // The name of a created object may be the API server's choice.
    let in_flight = rig.own.begins(&target(), "n", "");
    let object = rig.api.put("n/generated-7");
    assert_eq!(rig.next().await, Decision::Hold);
    in_flight.ends(&answer(&object), &other());
    assert_eq!(rig.next().await, Decision::Skip);
}

#[tokio::test(start_paused = true)]
async fn promise_3_the_answer_of_a_write_releases_the_listeners_of_two_versions() {
    let mut rig = Rig::new().await;
    let in_flight = rig.own.begins(&target(), "n", "a");
    rig.api.put("n/a");
    assert_eq!(rig.next().await, Decision::Hold);
    // A swap with another declaration has a listener of the same name.
    let config = ListenerConfig { namespaces: Namespaces::All, ..ListenerConfig::default() };
    let mut before = std::mem::replace(&mut rig.listener, rig.informer.add_listener(config).unwrap());
    assert_eq!(before.name(), rig.listener.name());
    assert_eq!(rig.next().await, Decision::Deliver, "an initial add");
    rig.api.put("n/a");
    assert_eq!(rig.next().await, Decision::Hold);
    drop(in_flight);
    let both = async {
        assert_eq!(rig.next().await, Decision::Deliver);
        before.next().await
    };
    assert!(tokio::time::timeout(LIMIT, both).await.is_ok(), "a listener still defers the object");
}

#[tokio::test(start_paused = true)]
async fn promise_3_what_merged_with_another_change_is_delivered() {
    let mut rig = Rig::new().await;
    let in_flight = rig.own.begins(&target(), "n", "a");
    rig.api.put("n/a");
    assert_eq!(rig.next().await, Decision::Hold);
    let object = rig.api.put("n/a");
    yield_until("both changes to merge", LIMIT, || match rig.listener.stats().merged {
        1 => Ok(()),
        n => Err(n),
    })
    .await;
    in_flight.ends(&answer(&object), &other());
    assert_eq!(rig.next().await, Decision::Deliver, "the first change was another writer's");
}

#[tokio::test(start_paused = true)]
async fn promise_3_what_a_list_shows_is_delivered() {
    let mut rig = Rig::new().await;
    let in_flight = rig.own.begins(&target(), "n", "a");
    // Another writer's change and the plugin's own, in one step.
    rig.api.put_unseen("n/a");
    let object = rig.api.put_unseen("n/a");
    in_flight.ends(&answer(&object), &other());
    rig.api.expire_history();
    rig.api.close_watches();
    assert_eq!(rig.next().await, Decision::Deliver);
    assert!(rig.informer.status().relists > 0);
}

#[tokio::test(start_paused = true)]
async fn promise_4_the_number_of_known_writes_is_bounded() {
    let rig = Rig::new().await;
    let account = HostBytes::default();
    rig.own.charge_to(&account);
    let write = |uid: &str, resource_version: String| {
        let written = Written { name: "a".into(), uid: uid.into(), resource_version };
        rig.own.begins(&target(), "n", "a").ends(&Ok(written), &Before::NoObject);
    };
    for n in 0..2 * CAPACITY {
        write("u", n.to_string());
    }
    let n_known = || {
        let state = rig.own.state.lock();
        assert!(state.in_flight.is_empty() && state.held.is_empty());
        assert_eq!(state.known.len(), state.order.len());
        state.known.len()
    };
    assert_eq!(n_known(), CAPACITY);
    // The longest texts do not exceed the share of the account.
    for n in 0..CAPACITY {
        write(&"u".repeat(LONGEST), format!("{n:0LONGEST$}"));
    }
    assert_eq!(n_known(), CAPACITY);
    let most = (CAPACITY * (4 * LONGEST + PER_WRITE)) as u64;
    assert_eq!((account.view().own_writes, account.view().refused), (most, 0));
    // The same write once more.
    write(&"u".repeat(LONGEST), format!("{:0LONGEST$}", CAPACITY - 1));
    assert_eq!((n_known(), account.view().own_writes), (CAPACITY, most));

    // Without room in the account it is not known, and its notification is delivered.
    let mut rig = Rig::new().await;
    rig.own.charge_to(&HostBytes::new(100));
    rig.write("n/a", true);
    assert_eq!(rig.next().await, Decision::Deliver);
}
