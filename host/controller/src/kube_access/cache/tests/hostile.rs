//! Hostile readers: they try to delay other tasks, or to learn about objects that they may not read.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;

/// Returns the largest possible list of fields, none of which exists.
fn absent_pointers() -> Projection {
    Projection::Fields((0..64).map(|n| format!("/spec/absent-{n}")).collect())
}

/// Returns a text of so many bytes with many small fields: the worst case for a search of names.
fn large(bytes: usize) -> serde_json::Value {
    (0..bytes / 16).map(|n| (format!("k{n:07}"), json!("v"))).collect()
}

fn pages(limit: u32, token: String) -> PageRequest {
    PageRequest { limit, continue_token: token }
}

/// Awaits an answer; returns it, and how often another task ran meanwhile.
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
async fn a_list_of_large_objects_yields_to_other_tasks_and_is_divided_into_pages() {
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
        // A slice is about a millisecond of work, which is well below a megabyte of text.
        assert!(turns >= bytes >> 20, "{turns} turns while {bytes} bytes were read");
        (rows, token, n_pages) = (rows + page.rows.len(), page.continue_token, n_pages + 1);
        assert!(n_pages < 100, "the pages do not end");
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
async fn a_selector_that_matches_nothing_yields_to_other_tasks() {
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
    let values = values.unwrap();
    assert!(values.len() == 5_003 && values.is_sorted());
    assert!(turns >= 5, "{turns} turns");
}

#[tokio::test(start_paused = true)]
async fn promise_4_too_many_index_values_are_refused() {
    let rig = Rig::new(&[None]).await;
    for n in 0..MOST_INDEX_VALUES {
        rig.api.put(Draft::new(&format!("many/{n:05}")).label("app", "other"));
    }
    rig.has(MOST_INDEX_VALUES + 5).await;
    let Err(Error::LimitExceeded(message)) = rig.cache.index_values("by-name").await else {
        panic!("it returns more than {MOST_INDEX_VALUES} values")
    };
    insta::assert_snapshot!(message, @"index by-name has more than 10000 values");
}

#[tokio::test(start_paused = true)]
async fn a_page_of_whole_objects_has_a_bounded_length_and_the_next_page_continues() {
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
        assert!(lengths.len() < 100, "the pages do not end: {lengths:?}");
        token = page.continue_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(lengths, [3, 3, 3, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_namespace_has_the_cost_and_answers_of_a_missing_one() {
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
async fn waiting_reveals_no_change_in_a_forbidden_namespace() {
    let rig = Rig::new(&[Some("a")]).await;
    let informer = rig.cache.readers["pods"].handle.informer().unwrap();
    let next = || (informer.last_resource_version().parse::<u64>().unwrap() + 1).to_string();
    let wait = async |version: &str| {
        let began = tokio::time::Instant::now();
        let answer = rig.cache.wait_until_seen("pods", version, Duration::from_secs(5)).await;
        assert_eq!(began.elapsed(), Duration::ZERO, "the answer comes at once");
        format!("{answer:?}").replace(version, "?")
    };
    let version = next();
    let before = wait(&version).await;
    rig.api.put("b/secret");
    informer.wait_until_seen(&version).await.unwrap();
    assert_eq!(wait(&version).await, before);
    assert!(before.contains("Invalid"), "{before}");

    // The plugin may wait for versions of objects that it may read.
    let version = next();
    rig.api.put("a/four");
    informer.wait_until_seen(&version).await.unwrap();
    assert_eq!(wait(&version).await, "Ok(())");
    // A version of a write to another resource does not count for this one.
    let config_maps = contract::GroupVersionResource {
        group: String::new(),
        version: "v1".to_owned(),
        plural: "configmaps".to_owned(),
    };
    let version = next();
    rig.cache.own_versions.record(&config_maps, &version);
    assert!(wait(&version).await.contains("Invalid"));
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_index_is_an_error_only_for_readers_of_the_affected_namespaces() {
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
    let left_out = || match informer.indexer().index_status("hello#1/by-part").unwrap().left_out {
        n_objects if n_objects > 1 => Err(n_objects),
        n_objects => Ok(n_objects),
    };
    yield_until("the index to have the object", LIMIT, left_out).await;
    assert_eq!(rig.by_part("1").await.unwrap(), ["c/many"]);
}
