use crate::reflector::{Phase, Source};
use crate::testing::{FakeListWatch, MetadataOnly, errors};
use std::sync::Arc;

use super::support::{listed, play};

fn two_pods() -> FakeListWatch {
    let server = FakeListWatch::pods();
    server.put("x/a");
    server.put("x/b");
    server
}

fn source(server: &FakeListWatch) -> Source {
    Source { list_watch: Some(Arc::new(server.clone())), type_meta: None }
}

#[tokio::test(start_paused = true)]
async fn a_new_source_is_listed_at_once_and_not_older_than_the_last_version() {
    play(two_pods(), listed(), async |scene| {
        scene.settle().await;
        scene.server.put("x/a");
        scene.settle().await;
        scene.store_calls();
        let metadata_only = Arc::new(MetadataOnly(scene.server.clone()));
        let generation = scene.sources.switch(Source { list_watch: Some(metadata_only), type_meta: None });
        assert_eq!(generation.get(), 1);
        scene.settle().await;
        assert_eq!(
            scene.requests(),
            ["list 500 at \"0\"", "watch \"3\"", "list all at \"4\"", "watch \"4\""],
            "the switch needs no wait"
        );
        assert_eq!(scene.store_calls(), ["source 1", "replace [x/a@4 x/b@3] at 4"]);
        assert_eq!(scene.server.n_open_watches(), 1, "the watch of the old source is closed");
        scene.server.put("x/b");
        scene.settle().await;
        assert_eq!(scene.store_calls(), ["update x/b@5", "version 5"]);
        assert_eq!(scene.phase(), Phase::Watching);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_switch_ends_a_hanging_list_and_a_back_off() {
    let server = two_pods();
    server.hang_list();
    play(server, listed(), async |scene| {
        scene.settle().await;
        scene.sources.switch(source(&scene.server));
        scene.settle().await;
        assert_eq!(scene.store_calls().last().unwrap(), "replace [x/a@2 x/b@3] at 3");
        // After many failures the back-off is half a minute.
        for _ in 0..10 {
            scene.server.fail_list(errors::not_found().into());
        }
        scene.server.break_watches(errors::garbage);
        scene.pass(60_000).await;
        assert_eq!(scene.phase(), Phase::Absent);
        let n_lists = scene.server.lists().len();
        scene.sources.switch(source(&scene.server));
        scene.settle().await;
        assert_eq!(scene.server.lists().len(), n_lists + 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn without_a_source_the_reflector_makes_no_request() {
    play(two_pods(), listed(), async |scene| {
        scene.settle().await;
        scene.sources.switch(Source::none());
        scene.settle().await;
        assert_eq!(scene.server.n_open_watches(), 0);
        let n_requests = scene.server.requests().len();
        scene.pass(3_600_000).await;
        assert_eq!(scene.server.requests().len(), n_requests);
        scene.server.put_unseen("x/c");
        scene.sources.switch(source(&scene.server));
        scene.settle().await;
        assert_eq!(scene.store_calls().last().unwrap(), "replace [x/a@2 x/b@3 x/c@4] at 4");
    })
    .await;
}
