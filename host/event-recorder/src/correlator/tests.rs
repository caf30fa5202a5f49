use k8s_openapi::api::core::v1::EventSource;
use rand::SeedableRng;
use tokio::time::advance;

use super::*;
use crate::testing::pod;

fn correlator() -> Correlator {
    correlator_with(Config::default())
}

fn correlator_with(config: Config) -> Correlator {
    Correlator::new(config, SmallRng::seed_from_u64(7))
}

/// Without the spam filter.
fn unfiltered() -> Correlator {
    correlator_with(Config { burst: 1_000_000, ..Config::default() })
}

fn event(reason: &str, message: &str) -> Event {
    Event {
        involved_object: pod("bar", ""),
        type_: Some("Normal".to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        count: Some(1),
        source: Some(EventSource { component: Some("kubelet".to_owned()), host: None }),
        ..Event::default()
    }
}

/// Correlates it; returns the message and the count.
fn outline(correlator: &mut Correlator, event: &Event) -> Option<(String, i32)> {
    let correlated = correlator.correlate(event)?;
    let Event { message, count, .. } = correlated.event;
    assert_eq!(correlated.patch.is_some(), count > Some(1), "one that was written is patched");
    Some((message.unwrap(), count.unwrap()))
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

// Conformance: 46.1
#[test]
fn event_aggregator_by_reason() {
    let (same, local) = aggregate_by_reason(&event("end-of-world", "it was fun"));
    let (similar, other_local) = aggregate_by_reason(&event("end-of-world", "till death do us part"));
    assert_eq!(same, similar);
    assert_ne!(local, other_local);
    assert_eq!(local, "it was fun");
    let (other, _) = aggregate_by_reason(&event("boom", "it was fun"));
    assert_ne!(same, other);
}

#[test]
fn similar_events_share_all_fields_but_the_message_ea_01() {
    let key = |change: fn(&mut Event)| {
        let mut event = event("Started", "m");
        change(&mut event);
        aggregate_by_reason(&event).0
    };
    let usual = key(|_| {});
    assert_eq!(usual, key(|it| it.involved_object.field_path = Some("spec.containers[0]".to_owned())));
    assert_eq!(usual, key(|it| it.involved_object.resource_version = Some("8".to_owned())));
    let changes: [fn(&mut Event); 8] = [
        |it| it.source.as_mut().unwrap().component = Some("other".to_owned()),
        |it| it.source.as_mut().unwrap().host = Some("other".to_owned()),
        |it| it.involved_object.uid = Some("other".to_owned()),
        |it| it.involved_object.kind = Some("other".to_owned()),
        |it| it.type_ = Some("Warning".to_owned()),
        |it| it.reason = Some("other".to_owned()),
        |it| it.reporting_component = Some("other".to_owned()),
        |it| it.reporting_instance = Some("other".to_owned()),
    ];
    for (n, change) in changes.into_iter().enumerate() {
        assert_ne!(usual, key(change), "change {n}");
    }
}

// Conformance: 46.2
#[test]
fn event_aggregator_message_has_a_prefix() {
    assert_eq!(
        combined_message(&event("end-of-world", "it was fun")),
        "(combined from similar events): it was fun"
    );
}

#[tokio::test(start_paused = true)]
async fn similar_events_are_aggregated_from_the_tenth_message_on_ea_03() {
    let mut correlator = unfiltered();
    for n in 0..9 {
        let seen = outline(&mut correlator, &event("Started", &n.to_string()));
        assert_eq!(seen, Some((n.to_string(), 1)));
    }
    for n in 9..1000 {
        let seen = outline(&mut correlator, &event("Started", &n.to_string()));
        assert_eq!(seen, Some((format!("(combined from similar events): {n}"), n - 8)));
    }
    let seen = outline(&mut correlator, &event("Stopped", "1000"));
    assert_eq!(seen, Some(("1000".to_owned(), 1)), "another reason is not similar");
}

#[tokio::test(start_paused = true)]
async fn repeats_of_one_message_never_aggregate_ea_03() {
    let mut correlator = unfiltered();
    for n in 1..100 {
        assert_eq!(outline(&mut correlator, &event("Started", "m")), Some(("m".to_owned(), n)));
    }
}

// Conformance: G.45
#[tokio::test(start_paused = true)]
async fn aggregation_continues_and_each_event_type_has_its_own_bucket_ea_02_es_01() {
    let mut correlator = unfiltered();
    let mut n = 0;
    let mut next = |correlator: &mut Correlator| {
        n += 1;
        outline(correlator, &event("Started", &n.to_string())).unwrap().0.starts_with("(combined")
    };
    for _ in 0..9 {
        assert!(!next(&mut correlator));
        advance(secs(590)).await;
    }
    for _ in 0..100 {
        assert!(next(&mut correlator), "EA-02: 590 s after the one before");
        advance(secs(590)).await;
    }
    advance(secs(10)).await;
    assert!(next(&mut correlator), "exactly 600 s");
    advance(secs(600) + Duration::from_nanos(1)).await;
    assert!(!next(&mut correlator), "begins again");

    let mut correlator = super::tests::correlator();
    let warning = |n: usize| Event { type_: Some("Warning".to_owned()), ..event("Started", &n.to_string()) };
    let passed = |correlator: &mut Correlator, event: &dyn Fn(usize) -> Event| {
        (0..40).filter(|&n| correlator.correlate(&event(n)).is_some()).count()
    };
    assert_eq!(passed(&mut correlator, &warning), 25, "ES-01");
    assert_eq!(passed(&mut correlator, &warning), 0);
    assert_eq!(passed(&mut correlator, &|n| event("Started", &n.to_string())), 25);
}

#[tokio::test(start_paused = true)]
async fn a_token_comes_back_in_five_minutes_and_patches_use_tokens_es_01() {
    let mut correlator = correlator();
    let same = event("Started", "m");
    let passed = (0..40).filter(|_| correlator.correlate(&same).is_some()).count();
    assert_eq!(passed, 25);
    advance(secs(300)).await;
    assert_eq!(outline(&mut correlator, &same), Some(("m".to_owned(), 41)), "ER-04: the dropped ones count");
    assert_eq!(outline(&mut correlator, &same), None);
    let other = Event { involved_object: pod("other", ""), ..same.clone() };
    assert!(outline(&mut correlator, &other).is_some(), "another object");
    let other = Event { source: None, ..same };
    assert!(outline(&mut correlator, &other).is_some(), "another source");
}

#[tokio::test(start_paused = true)]
async fn equal_events_are_counted_together_ea_04() {
    let mut correlator = unfiltered();
    let usual = event("Started", "m");
    assert_eq!(outline(&mut correlator, &usual), Some(("m".to_owned(), 1)));
    let reported = Event { reporting_component: Some("other".to_owned()), ..usual.clone() };
    assert_eq!(outline(&mut correlator, &reported), Some(("m".to_owned(), 2)), "who reports it is no part");
    let part = Event { involved_object: pod("bar", "spec.containers[0]"), ..usual.clone() };
    assert_eq!(outline(&mut correlator, &part), Some(("m".to_owned(), 1)), "the part of the object is");
    let warning = Event { type_: Some("Warning".to_owned()), ..usual };
    assert_eq!(outline(&mut correlator, &warning), Some(("m".to_owned(), 1)));
}

// Conformance: B.7
#[tokio::test(start_paused = true)]
async fn the_caches_are_bounded_as_configured_es_02() {
    let mut correlator = correlator_with(Config { lru_cache_size: 2, ..Config::default() });
    let about = |uid| Event { involved_object: pod(uid, ""), ..event("Started", "m") };
    for uid in ["a", "b", "a", "c"] {
        correlator.correlate(&about(uid)).unwrap();
    }
    assert_eq!(outline(&mut correlator, &about("a")).unwrap().1, 3);
    assert_eq!(outline(&mut correlator, &about("b")).unwrap().1, 1, "it was used longest ago");
    assert_eq!(Config::default().with_defaults().lru_cache_size, 4_096);
}
