//! The same version of an object with another text, as after a change of a CRD's conversion or defaults.

use serde_json::json;

use super::*;
use crate::list_watch::ListPage;
use crate::names::TypeMeta;
use crate::object::Object;
use crate::testing::MetadataOnly;

fn widget(key: &str, version: &str, size: &str) -> Object {
    let draft = Draft::new(key).field("spec", json!({ "size": size }));
    draft.at(&TypeMeta::new("v1", "Pod"), "uid", version)
}

fn size(object: &Object) -> String {
    object.pointer(&"/spec/size".parse().unwrap()).unwrap()
}

/// Makes the server list these objects.
fn serve(fake: &FakeListWatch, items: Vec<Object>) {
    fake.answer_list(ListPage { resource_version: "9".into(), items, ..ListPage::default() });
}

async fn relist(fake: &FakeListWatch) {
    let n_lists = fake.lists().len();
    fake.break_watches(errors::garbage);
    fake.until_lists(n_lists + 1).await;
    settle().await;
}

/// Takes the next notification, with the sizes of the old and the new object.
async fn sizes(listener: &mut Listener) -> (Option<String>, Option<String>) {
    let delivery = listener.next().await.unwrap();
    let crate::listener::Delivery { key, notification, .. } = delivery;
    let sizes = (notification.old().map(size), notification.new().map(size));
    listener.finish(&key, Outcome::Done);
    sizes
}

#[tokio::test(start_paused = true)]
async fn another_text_at_the_same_version_reaches_cache_and_every_handler() {
    // A longer text, one of the same length, and a shorter one.
    for other in ["larger", "tiny!", "s"] {
        let fake = FakeListWatch::pods();
        fake.decline_watch_list();
        serve(&fake, vec![widget("ns/a", "7", "small"), widget("ns/b", "8", "small")]);
        let config = Config { resync_period: Duration::from_secs(3600), ..config() };
        let informer = SharedInformer::new(Arc::new(fake.clone()), config);
        let resync = |resync| ListenerConfig { resync: Some(resync), ..ListenerConfig::default() };
        let mut resyncing = informer.add_listener(resync(Duration::from_secs(3600))).unwrap();
        let mut never = informer.add_listener(resync(Duration::ZERO)).unwrap();
        let fields = vec!["/metadata/name".parse().unwrap()];
        let mut uninterested =
            informer.add_listener(ListenerConfig { fields, ..resync(Duration::ZERO) }).unwrap();
        run(&informer, async {
            for listener in [&mut resyncing, &mut never, &mut uninterested] {
                receive(listener, 2).await;
            }
            // From now on only listeners with a resync period receive updates without a change.
            tokio::time::sleep(Duration::from_secs(3601)).await;
            assert_eq!(receive(&mut resyncing, 2).await.len(), 2);
            assert!(never.next().now_or_never().is_none());

            serve(&fake, vec![widget("ns/a", "7", other), widget("ns/b", "8", "small")]);
            relist(&fake).await;
            let (small, other) = (format!("{:?}", "small"), format!("{other:?}"));
            let key = ObjectKey::new("ns", "a");
            assert_eq!(size(&informer.indexer().get(&key).unwrap()), other);
            for listener in [&mut resyncing, &mut never] {
                assert_eq!(sizes(listener).await, (Some(small.clone()), Some(other.clone())));
            }
            assert!(never.next().now_or_never().is_none(), "ns/b has not changed");
            assert!(uninterested.next().now_or_never().is_none(), "no declared field has changed");

            // The chain continues from this state.
            serve(&fake, vec![widget("ns/a", "10", "huge"), widget("ns/b", "8", "small")]);
            relist(&fake).await;
            assert_eq!(sizes(&mut never).await, (Some(other), Some("\"huge\"".to_owned())));
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_cold_object_with_another_text_is_replaced_and_one_with_the_same_stays_cold() {
    let fake = FakeListWatch::pods();
    fake.decline_watch_list();
    let pods = |size: &str| -> Vec<Object> {
        let text = "some text that compresses well, ".repeat(40);
        (0..200).map(|i| widget(&format!("ns/{i:03}"), "7", &format!("{text}{size}{i}"))).collect()
    };
    serve(&fake, pods("a"));
    let informer = informer(&fake);
    run(&informer, async {
        informer.wait_for_sync().await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let cold = informer.status().memory;
        assert!(cold.compressed > 0 && cold.plain == 0, "{cold:?}");
        serve(&fake, pods("a"));
        relist(&fake).await;
        assert_eq!(informer.status().memory.plain, 0, "unchanged objects stay compressed");
        serve(&fake, pods("b"));
        relist(&fake).await;
        let all = informer.indexer().list(None, &oarlock_label_selector::LabelSelector::everything());
        assert!(all.iter().all(|object| size(object).contains("well, b")));
    })
    .await;
}

/// Tests an object with and one without fields beside its metadata.
#[tokio::test(start_paused = true)]
async fn the_same_version_with_other_content_is_not_delivered() {
    let fake = FakeListWatch::pods();
    fake.put("ns/only-metadata");
    fake.put(Draft::new("ns/whole").field("spec", json!({ "size": "small" })));
    let informer = SharedInformer::new(Arc::new(MetadataOnly(fake.clone())), config());
    let mut listener = informer.add_listener(ListenerConfig::default()).unwrap();
    run(&informer, async {
        receive(&mut listener, 2).await;
        let full = Source { list_watch: Some(Arc::new(fake.clone())), type_meta: None };
        let number = informer.switch(full);
        assert!(informer.wait_for_source(number).await);
        settle().await;
        assert!(listener.next().now_or_never().is_none(), "nothing has changed");
        let cached = |name| informer.indexer().get(&ObjectKey::new("ns", name)).unwrap().content();
        assert_eq!(cached("only-metadata"), crate::object::Content::Full);
        assert_eq!(cached("whole"), crate::object::Content::Full);
    })
    .await;
}
