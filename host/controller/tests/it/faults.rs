use oarlock_controller::runtime::Config;
use oarlock_dev_cluster::faults::{Action, Fault, Match};
use oarlock_informer::reflector::ConsistencyCheck;

use crate::received;
use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn promise_3_a_plugin_converges_after_its_watch_is_closed_dropped_and_expired() {
    let rig = Rig::start().await;
    rig.plugin("hello", "hello-rust");
    rig.create("a").await;
    rig.create("b").await;
    rig.serves("hello", 1).await;
    received::until_current(&rig, "hello", 1).await;

    rig.cluster.faults().close_watches(Match::watch("configmaps"));
    rig.change("a", "closed").await;
    received::until_current(&rig, "hello", 1).await;

    rig.cluster.faults().drop_connections();
    rig.delete("b").await;
    received::until_current(&rig, "hello", 1).await;

    rig.cluster.faults().expire_watches(Match::watch("configmaps"));
    rig.change("a", "expired").await;
    rig.create("c").await;
    received::until_current(&rig, "hello", 1).await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_3_a_plugin_converges_after_an_outage_and_no_chain_breaks() {
    let rig = Rig::start().await;
    rig.plugin("hello", "hello-rust");
    rig.create("a").await;
    rig.create("b").await;
    rig.serves("hello", 1).await;
    received::until_current(&rig, "hello", 1).await;

    rig.cluster.faults().set_away(true);
    rig.line(|line| line["event"] == "watch-trouble" && line["resource"] == "v1/configmaps").await;
    // The host cannot ask what the plugin may see, either.
    rig.event("hello", "subscription-paused").await;
    rig.cluster.faults().set_away(false);
    rig.delete("b").await;
    rig.create("c").await;
    received::until_current(&rig, "hello", 1).await;
    rig.line(|line| line["event"] == "watch-recovered" && line["resource"] == "v1/configmaps").await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn promise_1_two_plugins_share_one_watch() {
    // The consistency check would list the objects that were streamed.
    let rig = Rig::start_with(|config| Config { consistency_check: ConsistencyCheck::Off, ..config }).await;
    // These faults apply to no request; they count the requests at the server.
    let count = |on| rig.cluster.faults().add(Fault::times(on, Action::Expired, 0));
    let (lists, watches) = (count(Match::list("configmaps")), count(Match::watch("configmaps")));
    let asked = || [lists, watches].map(|id| rig.cluster.faults().matched(id));
    rig.plugin("one", "hello-rust");
    rig.create("a").await;
    rig.serves("one", 1).await;
    assert_eq!(asked(), [0, 1], "one watch streams the initial objects");
    rig.plugin("two", "hello-rust");
    rig.serves("two", 1).await;
    rig.create("b").await;
    for plugin in ["one", "two"] {
        rig.line(|line| line["plugin"] == plugin && line["event"] == "delivered" && line["name"] == "b")
            .await;
    }
    assert_eq!(asked(), [0, 1], "the second plugin costs the server nothing");
    received::until_current(&rig, "one", 1).await;
    received::until_current(&rig, "two", 1).await;
    assert_eq!(asked()[1], 1, "no watch was restarted");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fault_hook_makes_a_plugin_miss_an_object() {
    let rig =
        Rig::start_with(|config| oarlock_controller::runtime::Config { fault_swallow: Some(2), ..config })
            .await;
    rig.plugin("hello", "hello-rust");
    rig.create("a").await;
    rig.create("b").await;
    rig.create("c").await;
    rig.event("hello", "subscription-synced").await;
    assert_eq!(received::state(&rig.lines(), "hello", 1).len(), 2);
    rig.end().await;
}
