//! A dispatcher that waits for its slice.

use std::time::Duration;

use oarlock_plugin::contract::{Enqueue, OwnerKind, Scope};

use super::rig::{Rig, done};
use crate::dispatch::slice::{PER_WORKER, Slice, SliceOwner};
use crate::plan::Exported;
use crate::status::Phase;

const OWNER: SliceOwner = SliceOwner { has_call: false, weight: 100 };

/// The deadline of a wait, by the paused clock.
const HOUR: Duration = Duration::from_secs(3_600);

/// Returns a plugin with a backlog whose dispatcher waits for its slice, and the other slices. It has that
/// many notifications without a call: no Pod has the owner whose key it asks for.
async fn waits_for_its_slice() -> (Rig, Vec<Slice>) {
    let pods: Vec<_> = (0..1_000).map(|n| format!("n/{n}")).collect();
    let mut rig = Rig::new(&pods.iter().map(String::as_str).collect::<Vec<_>>()).await;
    rig.exported = Exported { handler: false, reconciler: true };
    rig.enqueue = Enqueue::ControllerOwner(OwnerKind {
        group: "apps".to_owned(),
        kind: "ReplicaSet".to_owned(),
        scope: Scope::SameNamespace,
    });
    let mut others: Vec<_> = (0..PER_WORKER).map(|_| Slice::new(rig.busy_limit.clone())).collect();
    for other in &mut others {
        other.end_early(OWNER).await;
    }
    rig.serve(|_| done()).await;
    rig.pass(HOUR).await;
    assert!(n_pending(&rig) > 0, "it waits");
    (rig, others)
}

fn n_pending(rig: &Rig) -> u64 {
    rig.status().subscriptions[0].backlog.pending
}

/// Fails unless the wait ends within an hour, in which other plugins are busy.
async fn in_time<T>(what: &str, wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(HOUR, wait).await.unwrap_or_else(|_| panic!("{what} waits for the slice"))
}

#[tokio::test(start_paused = true)]
async fn commands_and_switches_do_not_wait_for_the_slice_of_the_dispatcher() {
    let (rig, others) = waits_for_its_slice().await;
    in_time("suspend", rig.commands.suspend()).await;
    assert_eq!(rig.status().phase, Phase::Suspended);
    in_time("resume", rig.commands.resume()).await;
    in_time("a switch", rig.serve(|_| done())).await;
    rig.pass(HOUR).await;
    assert_eq!(rig.status().generation, 2);
    assert!(n_pending(&rig) > 0, "it still waits");
    drop(others);
    rig.pass(HOUR).await;
    assert_eq!(n_pending(&rig), 0);
}

#[tokio::test(start_paused = true)]
async fn a_dispatcher_ends_while_it_waits_for_its_slice() {
    let (rig, others) = waits_for_its_slice().await;
    in_time("the end", rig.end()).await;
    drop(others);
    let [mut first, mut second] = [(); PER_WORKER].map(|()| Slice::new(rig.busy_limit.clone()));
    in_time("another plugin", first.end_early(OWNER)).await;
    in_time("a further one", second.end_early(OWNER)).await;
}
