//! Many objects and many events, as in the tests of the host.

use crate::client::start;
use http::Method;
use http_body_util::BodyExt;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_objects_are_listed_and_watched() {
    const N: usize = 2_000;
    let (_cluster, client) = start().await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let padding = "x".repeat(4_000);
    let map = |i: usize| json!({"metadata": {"name": format!("m{i:05}")}, "data": {"v": padding}});
    let mut connections = Vec::new();
    for lane in 0..8 {
        let client = client.clone();
        let bodies: Vec<Value> = (0..N).filter(|i| i % 8 == lane).map(map).collect();
        connections.push(async move {
            for body in bodies {
                client.create(maps, &body).await;
            }
        });
    }
    let mut watch = client.watch(&format!("{maps}?watch=1&resourceVersion=0")).await;
    let seen = async {
        for _ in 0..N {
            watch.next().await.unwrap();
        }
    };
    futures::join!(futures::future::join_all(connections), seen);
    let response = client.send(Method::GET, maps, "").await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let list: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), N);
}
