//! Events of both API versions, stored in an API server.

use k8s_openapi::api::core::v1::{ConfigMap, Event};
use k8s_openapi::api::events::v1::Event as SeriesEvent;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use oarlock_event_recorder::{
    Broadcaster, EventRecorder, EventType, KubeSink, Recording, RecordingConfig,
    reference::{field_selector, reference},
    series::{self, Said, SeriesRecorder, SeriesRecording},
};
use oarlock_wait_until::{LIMIT, wait_until};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::rig;

#[tokio::test]
async fn repeated_events_are_stored_once_with_a_count() {
    let (cluster, client) = rig::cluster().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let map = serde_json::from_value(json!({"metadata": {"name": "web"}})).unwrap();
    let map = maps.create(&PostParams::default(), &map).await.unwrap();
    let about = reference(&map);

    let broadcaster = Broadcaster::new();
    let recording =
        Recording::new(broadcaster.watch(), KubeSink::new(client.clone()), RecordingConfig::default());
    let stats = recording.stats();
    let recorder = EventRecorder::new(broadcaster.clone(), "oarlock", "node-1");
    for message in ["small", "small", "smaller", "small"] {
        recorder.event(about.clone(), EventType::Warning, "TooSmall", message).unwrap();
    }
    broadcaster.shut_down();
    recording.run(CancellationToken::new()).await;
    assert_eq!((stats.recorded(), stats.abandoned()), (4, 0));

    let uid = map.metadata.uid.as_deref().unwrap();
    let selector = field_selector("v1", "ConfigMap", "web", "default", uid).unwrap();
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let mut stored = events.list(&ListParams::default().fields(&selector)).await.unwrap().items;
    stored.sort_by_key(|event| event.message.clone());
    let outline: Vec<_> =
        stored.iter().map(|it| (it.message.as_deref().unwrap(), it.count.unwrap())).collect();
    assert_eq!(outline, [("small", 3), ("smaller", 1)]);
    assert_eq!(stored[0].reporting_component.as_deref(), Some("oarlock"));
    assert_eq!(stored[0].involved_object, about);
    cluster.shut_down().await;
}

#[tokio::test]
async fn an_event_that_expired_is_stored_again() {
    let (cluster, client) = rig::cluster().await;
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let about = reference(&namespaces.get("default").await.unwrap());
    let broadcaster = Broadcaster::new();
    let recording = Recording::new(broadcaster.watch(), KubeSink::new(client), RecordingConfig::default());
    let recorder = EventRecorder::new(broadcaster.clone(), "oarlock", "node-1");
    let stats = recording.stats();
    let work = async {
        recorder.event(about.clone(), EventType::Normal, "Seen", "m").unwrap();
        wait_until("the first event to be recorded", LIMIT, || match stats.recorded() {
            0 => Err(0),
            _ => Ok(()),
        })
        .await;
        events.delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
        recorder.event(about.clone(), EventType::Normal, "Seen", "m").unwrap();
        broadcaster.shut_down();
    };
    tokio::join!(work, recording.run(CancellationToken::new()));
    let stored = events.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(stored.len(), 1);
    assert_eq!((stored[0].count, stats.recorded()), (Some(2), 2));
    cluster.shut_down().await;
}

#[tokio::test]
async fn repeated_events_of_the_new_api_become_a_series() {
    let (cluster, client) = rig::cluster().await;
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let about = reference(&namespaces.get("default").await.unwrap());
    let broadcaster = Broadcaster::with_capacity(series::QUEUE);
    let sink = KubeSink::new(client.clone());
    let recording = SeriesRecording::new(broadcaster.watch(), sink, series::Config::default());
    let stats = recording.stats();
    let recorder = SeriesRecorder::new(broadcaster.clone(), "oarlock.example.com/host", "node-1");
    let said = |action| Said { event_type: EventType::Normal, reason: "Seen", action, note: "m" };
    let work = async {
        for (action, recorded) in [("Look", 1), ("Look", 2), ("Look", 2), ("Listen", 3)] {
            recorder.event(about.clone(), None, &said(action)).unwrap();
            wait_until("the event to be recorded", LIMIT, || {
                let n_done = stats.recorded() + stats.abandoned();
                if n_done >= recorded { Ok(()) } else { Err(n_done) }
            })
            .await;
        }
        broadcaster.shut_down();
    };
    tokio::join!(work, recording.run(CancellationToken::new()));
    assert_eq!((stats.recorded(), stats.abandoned()), (3, 0));
    let events: Api<SeriesEvent> = Api::namespaced(client, "default");
    let selector = field_selector("events.k8s.io/v1", "Namespace", "default", "", "").unwrap();
    let mut stored = events.list(&ListParams::default().fields(&selector)).await.unwrap().items;
    stored.sort_by_key(|event| event.action.clone());
    let outline: Vec<_> = stored
        .iter()
        .map(|it| (it.action.as_deref().unwrap(), it.series.as_ref().map(|series| series.count)))
        .collect();
    assert_eq!(outline, [("Listen", None), ("Look", Some(2))]);
    assert_eq!(stored[0].reporting_instance.as_deref(), Some("oarlock.example.com/host-node-1"));
    cluster.shut_down().await;
}
