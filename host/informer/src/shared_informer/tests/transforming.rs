//! Transformers in an informer.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// In client-go such a transformer makes each update look like a resync, and some listeners receive no
/// updates.
// Conformance: G.4
#[tokio::test(start_paused = true)]
async fn listeners_receive_updates_from_a_transformer_that_removes_the_version_pd_42_pd_43() {
    let fake = FakeListWatch::pods();
    fake.put("ns/a");
    let transformer: Transformer = Arc::new(|object| {
        let text = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"NAME","namespace":"ns"}}"#;
        let text = text.replace("NAME", object.key().name());
        crate::object::Object::parse(text.as_bytes(), None)
            .map_err(|error| delta_fifo::TransformError(error.into()))
    });
    let config =
        Config { resync_period: Duration::from_secs(10), transformer: Some(transformer), ..config() };
    let informer = SharedInformer::new(Arc::new(fake.clone()), config);
    let resync =
        |seconds| ListenerConfig { resync: Some(Duration::from_secs(seconds)), ..ListenerConfig::default() };
    let mut often = informer.add_listener(resync(10)).unwrap();
    let mut never = informer.add_listener(resync(0)).unwrap();
    run(&informer, async {
        assert_eq!(receive(&mut often, 2).await, ["add ns/a@2 (initial)", "update ns/a@2→2"]);
        assert_eq!(receive(&mut never, 1).await, ["add ns/a@2 (initial)"]);
        fake.put("ns/a");
        assert_eq!(receive(&mut never, 1).await, ["update ns/a@2→3"], "the update is delivered");
        assert_eq!(receive(&mut often, 2).await, ["update ns/a@2→3", "update ns/a@3→3"]);
        assert!(never.next().now_or_never().is_none(), "this listener requested no resync");
    })
    .await;
}

/// Marks each object, and rejects objects named `bad`.
fn marking(n_calls: &Arc<AtomicUsize>) -> Transformer {
    let n_calls = n_calls.clone();
    Arc::new(move |object| {
        n_calls.fetch_add(1, Ordering::Relaxed);
        if object.key().name() == "bad" {
            return Err(delta_fifo::TransformError("no".into()));
        }
        let text = object.json().replacen('{', r#"{"marked":true,"#, 1);
        crate::object::Object::parse(text.as_bytes(), None)
            .map_err(|error| delta_fifo::TransformError(error.into()))
    })
}

/// Tests lists and streamed lists.
#[tokio::test(start_paused = true)]
async fn a_relist_transforms_each_object_once_and_keeps_the_cached_one_if_equal_rl_71() {
    for lists in [false, true] {
        let fake = FakeListWatch::pods();
        if lists {
            fake.refuse_watch_lists();
        }
        let written = fake.put("ns/a");
        let n_calls = Arc::default();
        let config = Config { transformer: Some(marking(&n_calls)), ..config() };
        let informer = SharedInformer::new(Arc::new(fake.clone()), config);
        run(&informer, async {
            informer.wait_for_sync().await;
            let cached = informer.indexer().get(written.key()).unwrap();
            assert!(cached.json().starts_with(r#"{"marked":true,"#));
            assert_eq!((cached.json().matches("marked").count(), n_calls.load(Ordering::Relaxed)), (1, 1));
            fake.until_watches(1).await;
            fake.put_unseen("ns/b");
            fake.expire_history();
            fake.close_watches();
            fake.until_listings(2).await;
            informer.wait_until_seen("3").await.unwrap();
            assert!(informer.indexer().get(written.key()).unwrap().is_same(&cached), "lists: {lists}");
            assert_eq!(n_calls.load(Ordering::Relaxed), 3);
        })
        .await;
    }
}

/// ST-21: a list is stored whole or not at all.
#[tokio::test(start_paused = true)]
async fn a_list_that_the_transformer_rejects_changes_nothing_and_is_retried() {
    let fake = FakeListWatch::pods();
    fake.refuse_watch_lists();
    fake.put("ns/a");
    fake.put("ns/bad");
    let config = Config { transformer: Some(marking(&Arc::default())), ..config() };
    let informer = SharedInformer::new(Arc::new(fake.clone()), config);
    run(&informer, async {
        fake.until_listings(2).await;
        assert!(informer.indexer().is_empty() && !informer.has_synced());
        let error = informer.status().last_error.unwrap().message;
        assert_eq!(error, "unable to sync list result: transforming: no");
        fake.delete("ns/bad");
        assert!(informer.wait_for_sync().await);
        assert_eq!(informer.indexer().len(), 1);
    })
    .await;
}
