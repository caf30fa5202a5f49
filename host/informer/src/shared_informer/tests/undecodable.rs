//! Objects that cannot be decoded, from the bytes of a response to cache, listeners and status.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::StreamBody;
use kube::client::Body;
use parking_lot::Mutex;

use super::*;
use crate::api_list_watch::{self, ApiListWatch};
use crate::names::TypeMeta;
use crate::reflector::Phase;

/// A server with scripted responses: lists, and watches that stay open after their events.
struct Server {
    lists: Arc<Mutex<Vec<String>>>,
    n_lists: Arc<Mutex<usize>>,
    watch: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Returns an informer of this server, which lists instead of streaming.
    fn informer(&self) -> SharedInformer {
        let (lists, n_lists, watch) = (self.lists.clone(), self.n_lists.clone(), self.watch.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default();
            let (text, stays_open) = if query.contains("sendInitialEvents") {
                (String::new(), false)
            } else if query.contains("watch=true") {
                (std::mem::take(&mut *watch.lock()).concat(), true)
            } else {
                *n_lists.lock() += 1;
                let mut lists = lists.lock();
                let items = if lists.len() > 1 { lists.remove(0) } else { lists[0].clone() };
                let head =
                    r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":["#;
                (format!("{head}{items}]}}"), false)
            };
            let body =
                futures::stream::iter([Ok::<_, Infallible>(http_body::Frame::data(Bytes::from(text)))]);
            let rest = futures::StreamExt::take(futures::stream::pending(), usize::from(stays_open));
            async {
                Ok::<_, Infallible>(Response::new(StreamBody::new(futures::StreamExt::chain(body, rest))))
            }
        });
        let client = kube::Client::new(service, "default");
        let resource = GroupVersionResource::new("", "v1", "pods");
        let source = api_list_watch::Config::new(resource, Some(TypeMeta::new("v1", "Pod")));
        SharedInformer::new(Arc::new(ApiListWatch::new(client, source)), config())
    }

    fn new(lists: &[&str], events: &[&str]) -> Self {
        let texts =
            |texts: &[&str]| Arc::new(Mutex::new(texts.iter().map(|text| (*text).to_owned()).collect()));
        Self { lists: texts(lists), n_lists: Arc::default(), watch: texts(events) }
    }
}

const B: &str = r#"{"metadata":{"name":"b","namespace":"ns","uid":"ub","resourceVersion":"8"}}"#;
const BAD_A: &str =
    r#"{"metadata":{"name":"a","namespace":"ns","uid":"ua","resourceVersion":"9","labels":{"n":1}}}"#;
const A_AND_B: &str = r#"{"metadata":{"name":"a","namespace":"ns","uid":"ua","resourceVersion":"7"}},
    {"metadata":{"name":"b","namespace":"ns","uid":"ub","resourceVersion":"8"}}"#;

#[tokio::test(start_paused = true)]
async fn a_delete_that_cannot_be_decoded_is_delivered_after_the_next_list() {
    let deleted = format!("{{\"type\":\"DELETED\",\"object\":{BAD_A}}}\n");
    let server = Server::new(&[A_AND_B, B], &[&deleted]);
    let informer = server.informer();
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        receive(&mut listener, 2).await;
        assert_eq!(receive(&mut listener, 2).await, ["update ns/b@8→8", "delete ns/a@7 (unknown)"]);
        assert_eq!(informer.indexer().keys(), [ObjectKey::new("ns", "b")]);
        settle().await;
        let status = informer.status();
        assert_eq!((status.phase, status.undecodable, status.undecodable_events), (Phase::Watching, 0, 1));
        let error = status.last_error.unwrap().message;
        assert!(error.contains("ns/a") && error.contains("listed again"), "{error}");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_keeps_its_last_state_and_is_not_deleted() {
    let listed = format!("{BAD_A},{B}");
    let broken = "{\"type\":\"MODIFIED\",\"object\":{\n".to_owned();
    let server = Server::new(&[A_AND_B, &listed], &[&broken]);
    let informer = server.informer();
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        receive(&mut listener, 2).await;
        // The relist changes nothing, so these updates are from one version to the same.
        assert_eq!(receive(&mut listener, 2).await, ["update ns/a@7→7", "update ns/b@8→8"]);
        settle().await;
        let status = informer.status();
        assert_eq!((&status.phase, status.objects, status.undecodable), (&Phase::Watching, 2, 1));
        let [bad] = &status.undecodable_objects[..] else { panic!("{status:?}") };
        assert_eq!(bad.key, Some(ObjectKey::new("ns", "a")));
        assert!(bad.message.contains("malformed metadata"), "{}", bad.message);
        assert_eq!(*server.n_lists.lock(), 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_first_list_with_an_undecodable_object_syncs_with_all_others() {
    let listed = format!("{BAD_A},{B}");
    let server = Server::new(&[&listed], &[]);
    let informer = server.informer();
    run(&informer, async {
        assert!(informer.wait_for_sync().await);
        assert_eq!(informer.indexer().keys(), [ObjectKey::new("ns", "b")]);
        assert_eq!(informer.status().undecodable, 1);
    })
    .await;
}
