//! An index over HTTP: the Pods of an app, from the cache.
//!
//! `cargo run -p oarlock-informer --example indexer_http [ADDRESS]`, against the cluster of your kubeconfig;
//! then `curl 127.0.0.1:8080/app/NAME` lists the keys of the Pods whose label `app` is NAME. Ends on Ctrl-C.

#![allow(clippy::print_stdout, reason = "an example talks to its reader")]

#[path = "support/scratch.rs"]
mod scratch;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use oarlock_informer::shared_informer::Config;
use oarlock_informer::{
    GroupVersionResource, SharedInformer,
    indexer::{IndexSource, Indexer},
    list_watch::{
        api::{self, ApiListWatch},
        transport,
    },
};
use scratch::Result;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let client = transport::client(kube::Config::infer().await?)?;
    let pods = GroupVersionResource::new("", "v1", "pods");
    let list_watch = ApiListWatch::new(client, api::Config::new(pods.clone(), None));
    let informer = SharedInformer::new(Arc::new(list_watch), Config::new(pods));
    informer.add_index("app", IndexSource::Label("app".to_owned()))?;

    let token = CancellationToken::new();
    let serve = async {
        // Before the cache has synced, "no such Pod" could be wrong.
        informer.wait_for_sync().await;
        let listener = tokio::net::TcpListener::bind(&address).await?;
        println!(
            "the cache holds {} Pods; try: curl {}/app/NAME",
            informer.indexer().len(),
            listener.local_addr()?
        );
        let router =
            Router::new().route("/app/{app}", get(keys_of_app)).with_state(informer.indexer().clone());
        let ctrl_c = async { drop(tokio::signal::ctrl_c().await) };
        axum::serve(listener, router).with_graceful_shutdown(ctrl_c).await?;
        Ok(())
    };
    let serve = async {
        let served = serve.await;
        token.cancel();
        served
    };
    tokio::join!(informer.run(token.clone()), serve).1
}

/// Answers with one key per line. Sends no request to the API server, and reads no Pod.
async fn keys_of_app(State(indexer): State<Indexer>, Path(app): Path<String>) -> String {
    let keys = indexer.index_keys("app", &app).unwrap_or_default();
    keys.iter().map(|key| format!("{key}\n")).collect()
}
