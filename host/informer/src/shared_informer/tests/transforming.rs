//! What a transformer cannot do: take an object's identity away.

use super::*;

/// Upstream, a transformer that blanks the version makes every update look like a resync, and then some listeners are told of none.
// Conformance: G.4
#[tokio::test(start_paused = true)]
async fn pd_42_pd_43_a_transformer_that_blanks_the_version_starves_nobody() {
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
        assert_eq!(told(&mut often, 2).await, ["add ns/a@2 (initial)", "update ns/a@2→2"]);
        assert_eq!(told(&mut never, 1).await, ["add ns/a@2 (initial)"]);
        fake.put("ns/a");
        assert_eq!(told(&mut never, 1).await, ["update ns/a@2→3"], "an update is an update");
        assert_eq!(told(&mut often, 2).await, ["update ns/a@2→3", "update ns/a@3→3"]);
        assert!(never.next().now_or_never().is_none(), "a resync is for those who asked");
    })
    .await;
}
