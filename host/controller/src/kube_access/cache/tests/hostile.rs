//! Readers that want to hurt others, or to learn what they may not read.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;

/// As many as a `fields` takes, none of which is in any object.
fn absent_pointers() -> Projection {
    Projection::Fields((0..64).map(|n| format!("/spec/absent-{n}")).collect())
}

/// A text of so many bytes, as many small fields: the worst for those who look for names.
fn large(bytes: usize) -> serde_json::Value {
    (0..bytes / 16).map(|n| (format!("k{n:07}"), json!("v"))).collect()
}

fn pages(limit: u32, token: String) -> PageRequest {
    PageRequest { limit, continue_token: token }
}

/// Awaits an answer; returns how often others got their turn meanwhile, too.
async fn with_turns<T>(answer: impl Future<Output = T>) -> (T, usize) {
    let turns = AtomicUsize::new(0);
    let others = async {
        loop {
            turns.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        answer = answer => (answer, turns.load(Ordering::Relaxed)),
        () = others => unreachable!("it never ends"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_of_large_objects_lets_others_have_their_turn_and_goes_on_page_by_page() {
    let rig = Rig::new(&[None]).await;
    let n_objects = 24;
    for n in 0..n_objects {
        rig.api.put(Draft::new(&format!("big/{n:02}")).field("spec", large(900 << 10)));
    }
    rig.has(n_objects + 5).await;
    let (mut rows, mut token, mut n_pages) = (0, String::new(), 0);
    loop {
        let page = pages(1000, token);
        let (big, absent) = (one("big"), absent_pointers());
        let (page, turns) = with_turns(rig.cache.list("pods", &big, "", &absent, &page)).await;
        let page = page.unwrap();
        let bytes = page.rows.len() * (900 << 10);
        assert!(bytes <= 17 << 20, "{} rows were read for one page", page.rows.len());
        // A slice is about a millisecond's work, which is well below a megabyte of text.
        assert!(turns >= bytes >> 20, "{turns} turns while {bytes} bytes were read");
        (rows, token, n_pages) = (rows + page.rows.len(), page.continue_token, n_pages + 1);
        if token.is_empty() {
            break;
        }
    }
    assert!(rows == n_objects && n_pages >= 2, "{rows} rows in {n_pages} pages");
}

#[tokio::test(start_paused = true)]
async fn one_large_object_is_read_in_slices() {
    let rig = Rig::new(&[None]).await;
    rig.api.put(Draft::new("big/one").field("spec", large(900 << 10)));
    rig.has(6).await;
    let (key, absent) = (key("big", "one"), absent_pointers());
    let (row, turns) = with_turns(rig.cache.get("pods", &key, &absent)).await;
    assert_eq!(row.unwrap().fields, vec![None; 64]);
    assert!(turns >= 4, "{turns} turns");
}

#[tokio::test(start_paused = true)]
async fn a_selector_that_matches_nothing_lets_others_have_their_turn() {
    let rig = Rig::new(&[None]).await;
    for n in 0..5_000 {
        rig.api.put(Draft::new(&format!("many/{n:04}")).label("app", "other"));
    }
    rig.has(5_005).await;
    let page = pages(1000, String::new());
    let listing = rig.cache.list("pods", &Namespaces::All, "app=none", &Projection::Keys, &page);
    let (page, turns) = with_turns(listing).await;
    assert_eq!(page.unwrap().rows.len(), 0);
    assert!(turns >= 5, "{turns} turns");
    let (values, turns) = with_turns(rig.cache.index_values("by-name")).await;
    assert_eq!(values.unwrap().len(), 5_003);
    assert!(turns >= 5, "{turns} turns");
}

#[tokio::test(start_paused = true)]
async fn a_page_of_whole_objects_ends_before_it_is_too_long_and_the_next_goes_on() {
    let rig = Rig::new(&[None]).await;
    for n in 0..10 {
        rig.api.put(Draft::new(&format!("big/{n}")).field("spec", json!("x".repeat(1 << 20))));
    }
    rig.has(15).await;
    let mut lengths = Vec::new();
    let mut token = String::new();
    loop {
        let page = pages(1000, token);
        let page = rig.cache.list("pods", &one("big"), "", &Projection::Json, &page).await.unwrap();
        lengths.push(page.rows.len());
        token = page.continue_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(lengths, [3, 3, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_namespace_costs_what_one_costs_that_does_not_exist_and_is_answered_alike() {
    for is_fresh in [true, false] {
        let mut seen = BTreeSet::new();
        for namespace in ["b", "nowhere", ""] {
            let rig = Rig::new(&[Some("a")]).await;
            if !is_fresh {
                rig.list("pods", Namespaces::All, 9, "").await.unwrap();
            }
            let before = rig.reviewer.asked();
            let answers = [
                format!("{:?}", rig.cache.get("pods", &key(namespace, "one"), &Projection::Keys).await),
                format!("{:?}", rig.list("pods", one(namespace), 9, "").await),
                format!(
                    "{:?}",
                    rig.list("pods", Namespaces::All, 9, &format!("1:{namespace}/one")).await.is_ok()
                ),
            ];
            let answers = answers.map(|it| it.replace(&format!("{namespace:?}").replace('"', "\\\""), "?"));
            assert!(answers[0].contains("Forbidden"), "{answers:?}");
            seen.insert((answers, rig.reviewer.asked() - before));
        }
        assert_eq!(seen.len(), 1, "{seen:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_hears_of_no_change_in_a_namespace_that_one_may_not_read() {
    let rig = Rig::new(&[Some("a")]).await;
    let informer = rig.cache.readers["pods"].handle.informer().unwrap();
    let next = || (informer.last_resource_version().parse::<u64>().unwrap() + 1).to_string();
    let wait = async |version: &str| {
        let began = tokio::time::Instant::now();
        let answer = rig.cache.wait_until_seen("pods", version, Duration::from_secs(5)).await;
        assert_eq!(began.elapsed(), Duration::ZERO, "nothing is waited for");
        format!("{answer:?}").replace(version, "?")
    };
    let version = next();
    let before = wait(&version).await;
    rig.api.put("b/secret");
    informer.wait_until_seen(&version).await.unwrap();
    assert_eq!(wait(&version).await, before);
    assert!(before.contains("Invalid"), "{before}");

    // What it may read, it may know of.
    let version = next();
    rig.api.put("a/four");
    informer.wait_until_seen(&version).await.unwrap();
    assert_eq!(wait(&version).await, "Ok(())");
    // The version of a write to another resource says nothing about this one.
    let config_maps = contract::GroupVersionResource {
        group: String::new(),
        version: "v1".to_owned(),
        plural: "configmaps".to_owned(),
    };
    let version = next();
    rig.cache.own_versions.answered(&config_maps, &version);
    assert!(wait(&version).await.contains("Invalid"));
}

#[tokio::test(start_paused = true)]
async fn an_index_that_lacks_objects_says_so_to_those_whom_it_concerns() {
    let rig = Rig::new(&[Some("a"), Some("c")]).await;
    let values: Vec<_> = (0..300).map(|n| json!(n.to_string())).collect();
    rig.api.put(Draft::new("b/many").field("spec", json!({ "parts": values.clone() })));
    rig.has(6).await;
    assert_eq!(rig.by_part("1").await.unwrap(), [""; 0]);
    assert!(rig.cache.index_values("by-part").await.is_ok());
    rig.api.put(Draft::new("c/many").field("spec", json!({ "parts": values })));
    rig.has(7).await;
    let lacks = rig.by_part("1").await.unwrap_err();
    assert!(
        matches!(&lacks, Error::LimitExceeded(text) if text.contains("1 objects of namespace \"c\"")),
        "{lacks:?}"
    );
    assert!(matches!(rig.cache.index_values("by-part").await, Err(Error::LimitExceeded(_))));
    rig.api.put(Draft::new("c/many").field("spec", json!({ "parts": ["1"] })));
    let informer = rig.cache.readers["pods"].handle.informer().unwrap();
    while informer.indexer().index_status("hello#1/by-part").unwrap().left_out > 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(rig.by_part("1").await.unwrap(), ["c/many"]);
}
