use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use futures::FutureExt as _;
use oarlock_informer::object::Namespaces;
use oarlock_plugin::contract::Enqueue;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::rig::{ReceivedCall, Rig, done, terminal, trap};
use crate::access::{Access, Denial};
use crate::dispatch::{ExistingOf, LaneConfig, RedeliverError};
use crate::report::{CallOutcome, HostEvent};

const CALL: Duration = Duration::from_secs(1);

fn existing(name: &str, objects: usize) -> ExistingOf {
    ExistingOf { name: name.to_owned(), objects, at_most: false, forbidden: false, paused: false }
}

fn two_lanes(mut rig: Rig) -> Rig {
    rig.stateless = true;
    rig.lanes = LaneConfig { concurrency: 2, ..LaneConfig::single() };
    rig
}

/// Returns the calls after the first ones, each with its instance.
fn calls_after(rig: &Rig, n_before: usize) -> Vec<(String, usize)> {
    rig.calls().split_off(n_before).into_iter().map(|it| (it.text, it.instance)).collect()
}

fn calls_of(instance: usize, texts: &[&str]) -> Vec<(String, usize)> {
    texts.iter().map(|text| ((*text).to_owned(), instance)).collect()
}

/// Asks the control socket. Returns the status and the answer.
async fn ask(rig: &Rig, body: Value) -> (u16, Value) {
    let request = Request::post("/v1/plugins/p/redeliver").header(header::CONTENT_TYPE, "application/json");
    let request = request.body(Body::from(body.to_string())).unwrap();
    let response = crate::control::all(rig.control()).oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

#[tokio::test(start_paused = true)]
async fn every_existing_object_is_delivered_again_once_beside_changes() {
    let pods = ["n/a", "n/b", "n/c", "n/d", "n/e", "n/f", "n/g", "n/h"];
    let rig = two_lanes(Rig::new(&pods).await);
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    *rig.guests.takes.lock() = CALL;
    rig.api.put("n/a");
    rig.api.put("n/b");
    // These two wait.
    rig.api.put("n/c");
    rig.api.delete("n/d");
    rig.pass(CALL / 2).await;
    let n_before = rig.received().len();
    assert_eq!(rig.received()[n_before - 2..], ["update a@2-10", "update b@3-11"]);
    assert_eq!(rig.commands.deliver_existing(None).await, Ok(vec![existing("pods", 7)]));
    assert!(!rig.status().subscriptions[0].synced);
    rig.api.put("n/e");
    rig.pass(CALL).await;
    rig.api.delete("n/g");
    rig.api.put("n/h");
    rig.until_times("synced 0", 2).await;
    rig.pass(CALL * 10).await;
    let mut chains = BTreeMap::<String, Vec<String>>::new();
    for call in &rig.received()[n_before..] {
        let (function, about) = call.split_once(' ').unwrap();
        let Some((name, versions)) = about.split_once('@') else { continue };
        chains.entry(name.to_owned()).or_default().push(format!("{function} {versions}"));
    }
    let chains: Vec<_> = chains.iter().map(|(name, chain)| format!("{name}: {}", chain.join(", "))).collect();
    insta::assert_snapshot!(chains.join("\n"), @"
    a: add 10
    b: add 11
    c: add 12
    d: delete 13
    e: add 6, update 6-14
    f: add 7
    g: add 8, delete 15
    h: add 9, update 9-16
    ");
    assert_eq!(rig.most_at_once(), 2);
    assert!(rig.status().subscriptions[0].synced);
}

#[tokio::test(start_paused = true)]
async fn what_is_parked_is_delivered_with_all_others() {
    for (enqueue, call) in [(Enqueue::Nothing, "add"), (Enqueue::Itself, "reconcile pods")] {
        let mut rig = Rig::new(&["n/a", "n/b", "n/c"]).await;
        rig.stateless = true;
        rig.enqueue = enqueue;
        rig.serve(move |received| {
            let name = received.text.strip_prefix(call).unwrap_or_default().trim_start();
            match name.chars().next() {
                Some('a') if received.n_before == 0 => terminal(),
                Some('b') if received.n_before < 3 => trap(),
                _ => done(),
            }
        })
        .await;
        rig.pass(Duration::from_secs(60)).await;
        assert_eq!(rig.commands.parked().await.len(), 2);
        let n_before = rig.received().len();
        assert_eq!(rig.commands.deliver_existing(None).await, Ok(vec![existing("pods", 3)]));
        rig.pass(Duration::from_secs(60)).await;
        let mut again = rig.received().split_off(n_before);
        again.sort();
        let expected = match call {
            "add" => ["add a@2", "add b@3", "add c@4", "synced 0"].to_vec(),
            _ => ["reconcile pods a", "reconcile pods b", "reconcile pods c", "synced 0"].to_vec(),
        };
        assert_eq!(again, expected);
        assert_eq!(rig.commands.parked().await, []);
    }
}

#[tokio::test(start_paused = true)]
async fn on_synced_is_called_again_although_one_is_in_progress() {
    let rig = two_lanes(Rig::new(&["n/a"]).await);
    *rig.guests.takes.lock() = CALL;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    assert_eq!(rig.commands.deliver_existing(None).await, Ok(vec![existing("pods", 1)]));
    let received = rig.until_times("synced 0", 2).await;
    assert_eq!(received, ["add a@2", "synced 0", "add a@2", "synced 0"]);
    assert!(!rig.status().subscriptions[0].synced, "the second call has not ended");
    rig.pass(CALL * 2).await;
    assert!(rig.status().subscriptions[0].synced);
}

#[tokio::test(start_paused = true)]
async fn a_plugin_with_state_gets_a_fresh_instance_for_it() {
    let rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    *rig.guests.takes.lock() = CALL;
    rig.api.put("n/a");
    rig.until("update a@2-4").await;
    for instance in [2, 3] {
        let n_before = rig.calls().len();
        assert_eq!(rig.commands.deliver_existing(None).await, Ok(vec![existing("pods", 2)]));
        rig.until_times("synced 0", instance).await;
        rig.pass(CALL).await;
        let again: Vec<_> = rig.calls().split_off(n_before);
        let again: Vec<_> = again.iter().map(|it| (it.text.as_str(), it.instance)).collect();
        assert_eq!(again, [("add a@4", instance), ("add b@3", instance), ("synced 0", instance)]);
        assert_eq!((rig.instances(), rig.alive()), (instance, 1));
    }
    assert_eq!(rig.status().instances_lost, 0);
}

#[tokio::test(start_paused = true)]
async fn one_subscription_of_a_stateless_plugin_can_be_chosen() {
    for stateless in [true, false] {
        let mut rig = Rig::new(&["n/a"]).await;
        rig.stateless = stateless;
        rig.more = vec!["more"];
        rig.wakes = true;
        rig.serve(|_| done()).await;
        rig.until("synced 0").await;
        let unknown = rig.commands.deliver_existing(Some("wakes:pods".to_owned())).await;
        let names = vec!["pods".to_owned(), "more".to_owned()];
        assert_eq!(unknown, Err(RedeliverError::UnknownSubscription(names)));
        let n_before = rig.received().len();
        let one = rig.commands.deliver_existing(Some("more".to_owned())).await;
        if stateless {
            assert_eq!(one, Ok(vec![existing("more", 1)]));
            rig.pass(CALL).await;
            assert_eq!(rig.received()[n_before..], ["add a@2", "synced 0"]);
        } else {
            assert_eq!(one, Err(RedeliverError::KeepsState));
        }
        let all = rig.commands.deliver_existing(None).await;
        assert_eq!(all, Ok(vec![existing("pods", 1), existing("more", 1)]));
    }
}

#[tokio::test(start_paused = true)]
async fn the_control_socket_has_existing_objects_delivered_or_says_why_not() {
    let mut rig = Rig::new(&["n/a", "n/b"]).await;
    let (status, answer) = ask(&rig, json!({"existing": {}})).await;
    let error = "every existing object of plugin p: no version of the plugin serves";
    assert_eq!((status, &answer["error"]), (409, &error.into()));
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;

    let asked = [json!({"existing": {}}), json!({"existing": {"subscription": "pods"}})];
    for (n, body) in asked.into_iter().enumerate() {
        let done = json!({
            "plugin": "p", "redelivered": 2, "subscriptions": [{"name": "pods", "objects": 2}],
        });
        assert_eq!(ask(&rig, body).await, (200, done));
        rig.until_times("synced 0", n + 2).await;
    }
    let said: Vec<_> = rig.lines().filter(|it| it.event.to_string().starts_with("delivers ")).collect();
    assert_eq!(said.len(), 2, "{said:?}");

    let (status, answer) = ask(&rig, json!({"existing": {"subscription": "x"}})).await;
    let error = "every existing object of subscription \"x\" of plugin p: the plugin has no such \
                 subscription; it has pods";
    assert_eq!((status, &answer["error"]), (404, &error.into()));
    rig.commands.suspend().await;
    let (status, answer) = ask(&rig, json!({"existing": {}})).await;
    assert_eq!(
        (status, &answer["error"]),
        (409, &"every existing object of plugin p: it is suspended".into())
    );
    assert!(answer["hint"].as_str().unwrap().starts_with("`oarlock resume p`"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn on_synced_that_fails_for_good_is_not_parked_if_another_one_follows() {
    let mut rig = two_lanes(Rig::new(&["n/a"]).await);
    *rig.guests.takes.lock() = CALL;
    rig.serve(|call| if call.text == "synced 0" && call.n_before == 0 { terminal() } else { done() }).await;
    rig.until("synced 0").await;
    assert_eq!(rig.commands.deliver_existing(None).await, Ok(vec![existing("pods", 1)]));
    let received = rig.until_times("synced 0", 2).await;
    assert_eq!(received, ["add a@2", "synced 0", "add a@2", "synced 0"]);
    let failed: Vec<_> = rig
        .lines()
        .filter_map(|line| match line.event {
            HostEvent::SyncedFailed { outcome, .. } => Some(outcome),
            _ => None,
        })
        .collect();
    assert!(matches!(failed[..], [CallOutcome::Retry { after_ms: 0, .. }]), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn on_synced_that_costs_its_last_instance_is_not_parked_if_another_one_follows() {
    let mut rig = two_lanes(Rig::new(&["n/a"]).await);
    *rig.guests.takes.lock() = CALL;
    rig.serve(|call| if call.text == "synced 0" && call.n_before < 3 { trap() } else { done() }).await;
    rig.until_times("synced 0", 3).await;
    let began = rig.now();
    assert_eq!(rig.commands.deliver_existing(None).await, Ok(vec![existing("pods", 1)]));
    rig.until_times("synced 0", 4).await;
    assert!(rig.now() - began < Duration::from_secs(60), "not with the slow timer: {:?}", rig.now() - began);
    rig.pass(CALL * 2).await;
    assert!(rig.status().subscriptions[0].synced);
    assert_eq!((rig.received().len(), rig.commands.parked().await), (6, Vec::new()));
    let next_tries: Vec<_> = rig
        .lines()
        .filter_map(|line| match line.event {
            HostEvent::InstanceLost { next_try, .. } => Some(next_try?.after_ms.is_some()),
            HostEvent::SyncedFailed { .. } => Some(false),
            _ => None,
        })
        .collect();
    assert_eq!(next_tries, [true; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_fresh_instance_stays_although_the_one_that_it_replaces_was_lost_in_its_last_call() {
    let rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|call| if call.text == "update a@2-4" { trap() } else { done() }).await;
    rig.until("synced 0").await;
    *rig.guests.takes.lock() = CALL;
    rig.api.put("n/a");
    rig.until("update a@2-4").await;
    let n_before = rig.received().len();
    assert_eq!(rig.commands.deliver_existing(None).await, Ok(vec![existing("pods", 2)]));
    rig.until_times("synced 0", 2).await;
    rig.api.put("n/b");
    rig.until("update b@3-5").await;
    // The call that cost an instance comes last.
    let expected = calls_of(2, &["add b@3", "add a@4", "synced 0", "update b@3-5"]);
    assert_eq!(calls_after(&rig, n_before), expected);
    assert_eq!((rig.instances(), rig.alive()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_is_being_made_is_replaced_too() {
    let rig = Rig::new(&["n/a", "n/b"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    *rig.guests.making_takes.lock() = CALL;
    let n_before = rig.received().len();
    for _ in 0..2 {
        assert_eq!(rig.commands.deliver_existing(None).await, Ok(vec![existing("pods", 2)]));
        rig.pass(CALL / 2).await;
    }
    rig.until_times("synced 0", 2).await;
    rig.api.put("n/b");
    rig.until("update b@3-4").await;
    let mut expected = calls_of(2, &["add a@2"]);
    expected.extend(calls_of(3, &["add a@2", "add b@3", "synced 0", "update b@3-4"]));
    assert_eq!(calls_after(&rig, n_before), expected);
    assert_eq!((rig.instances(), rig.alive()), (3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_fresh_instance_receives_the_objects_of_all_subscriptions() {
    let mut rig = Rig::new(&["n/a", "n/b"]).await;
    rig.more = vec!["more"];
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    let n_before = rig.received().len();
    let all = rig.commands.deliver_existing(None).await;
    assert_eq!(all, Ok(vec![existing("pods", 2), existing("more", 2)]));
    rig.until_times("synced 0", 2).await;
    rig.api.put("n/a");
    rig.until_times("update a@2-4", 2).await;
    let again = rig.calls().split_off(n_before);
    assert!(again.iter().all(|it| it.instance == 2), "{again:#?}");
    for name in ["pods", "more"] {
        let of = |it: &ReceivedCall| (it.subscription == name).then(|| it.text.clone());
        let received: Vec<_> = again.iter().filter_map(of).collect();
        assert_eq!(received.len(), 4, "{received:?}");
        assert_eq!(received[..2], ["add a@2", "add b@3"]);
        assert!(received[2].starts_with("synced "), "{received:?}");
        assert_eq!(received[3], "update a@2-4");
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_serves_right_after_the_command_receives_what_it_asked_for() {
    for in_progress in ["synced 0", "update a@2-4"] {
        let mut rig = Rig::new(&["n/a", "n/b"]).await;
        rig.stateless = true;
        *rig.guests.takes.lock() = CALL;
        rig.serve(|_| done()).await;
        rig.until("synced 0").await;
        let a = match in_progress {
            "synced 0" => "add a@2",
            _ => {
                rig.pass(CALL).await;
                rig.api.put("n/a");
                rig.until(in_progress).await;
                "add a@4"
            }
        };
        let n_before = rig.received().len();
        assert_eq!(rig.commands.deliver_existing(None).await, Ok(vec![existing("pods", 2)]));
        rig.serve(|_| done()).await;
        rig.until_times("synced 0", 2).await;
        rig.pass(CALL * 5).await;
        let mut again = calls_after(&rig, n_before);
        // An object whose call is in progress comes after the others.
        again.sort();
        assert_eq!(again, calls_of(2, &[a, "add b@3", "synced 0"]));
        assert!(rig.status().subscriptions[0].synced);
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_says_which_subscriptions_are_paused_or_forbidden() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    rig.access.send_replace(Access::Unknown("the API server is away".to_owned()));
    rig.pass(CALL).await;
    let paused = ExistingOf { paused: true, ..existing("pods", 1) };
    assert_eq!(rig.commands.deliver_existing(None).await, Ok(vec![paused]));
    rig.pass(CALL * 60).await;
    assert_eq!(rig.received().len(), 2);
    rig.access.send_replace(Access::Allowed(Namespaces::All));
    rig.until_times("synced 0", 2).await;
    rig.access.send_replace(Access::Forbidden(Denial::NoAccount("ns/p".parse().unwrap())));
    rig.pass(CALL).await;
    let forbidden = ExistingOf { forbidden: true, ..existing("pods", 0) };
    assert_eq!(rig.commands.deliver_existing(None).await, Ok(vec![forbidden]));
    let (status, answer) = ask(&rig, json!({"existing": {}})).await;
    let subscriptions = json!([{"name": "pods", "objects": 0, "forbidden": true}]);
    assert_eq!((status, &answer["subscriptions"]), (200, &subscriptions));
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_caller_is_gone_is_not_carried_out() {
    let rig = Rig::new(&["n/a"]).await;
    rig.serve(|_| done()).await;
    rig.until("synced 0").await;
    assert_eq!(rig.commands.deliver_existing(None).now_or_never(), None);
    rig.pass(CALL * 60).await;
    assert_eq!(rig.received(), ["add a@2", "synced 0"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_parked_of_other_subscriptions_than_the_chosen_one_stays_parked() {
    let mut rig = Rig::new(&["n/a", "n/b"]).await;
    rig.stateless = true;
    rig.more = vec!["more"];
    rig.serve(|call| if call.text == "add a@2" && call.n_before < 6 { trap() } else { done() }).await;
    rig.until_times("add a@2", 6).await;
    rig.pass(CALL).await;
    assert_eq!(rig.commands.parked().await.len(), 2);
    let one = rig.commands.deliver_existing(Some("more".to_owned())).await;
    assert_eq!(one, Ok(vec![existing("more", 2)]));
    rig.until_times("add a@2", 7).await;
    let n_before = rig.received().len();
    // All objects become visible again, in the version that was lost.
    rig.access.send_replace(Access::Allowed(Namespaces::Only(Default::default())));
    rig.pass(CALL).await;
    rig.access.send_replace(Access::Allowed(Namespaces::All));
    rig.pass(Duration::from_secs(60)).await;
    let again: Vec<_> = rig.calls().split_off(n_before);
    let of_a = again.iter().filter(|it| it.text == "add a@2").map(|it| it.subscription.as_str());
    assert_eq!(of_a.collect::<Vec<_>>(), ["more"], "{again:#?}");
}
