use std::collections::BTreeMap;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use oarlock_plugin::contract::Enqueue;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::rig::{Rig, done, terminal, trap};
use crate::dispatch::{ExistingOf, LaneConfig, RedeliverError};

const CALL: Duration = Duration::from_secs(1);

fn existing(name: &str, objects: usize) -> ExistingOf {
    ExistingOf { name: name.to_owned(), objects, at_most: false }
}

fn two_lanes(mut rig: Rig) -> Rig {
    rig.stateless = true;
    rig.lanes = LaneConfig { concurrency: 2, ..LaneConfig::single() };
    rig
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
