use super::*;

fn refusal(result: Result<(), Error>) -> String {
    match result {
        Err(Error::Invalid(message)) => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_counter_has_one_series_with_and_without_its_suffix() {
    let metrics = GuestMetrics::new();
    metrics.counter_add("jobs", 1.0, Vec::new()).unwrap();
    metrics.counter_add("jobs_total", 2.0, Vec::new()).unwrap();
    assert_eq!(metrics.kinds().into_keys().collect::<Vec<_>>(), ["jobs_total"]);
    assert_eq!(metrics.family("jobs_total").unwrap().series[&Vec::new()], 3.0);
    assert_eq!(metrics.family("jobs"), None);
}

#[test]
fn a_gauge_and_a_counter_cannot_have_the_same_name() {
    for gauge in ["x", "x_total"] {
        let metrics = GuestMetrics::new();
        metrics.counter_add("x", 1.0, Vec::new()).unwrap();
        let message = refusal(metrics.gauge_set(gauge, 1.0, Vec::new()));
        assert_eq!(message, format!("metric {gauge:?}: \"x_total\" is a counter"));
        let metrics = GuestMetrics::new();
        metrics.gauge_set(gauge, 1.0, Vec::new()).unwrap();
        for counter in ["x", "x_total"] {
            let message = refusal(metrics.counter_add(counter, 1.0, Vec::new()));
            assert_eq!(message, format!("metric {counter:?}: {gauge:?} is a gauge"));
        }
        metrics.counter_add("y", 1.0, Vec::new()).unwrap();
    }
}

#[test]
fn names_and_label_values_have_a_maximum() {
    let metrics = GuestMetrics::new();
    let set = |name: usize, label: usize, value: usize| {
        let labels = vec![Entry { name: "l".repeat(label), value: "v".repeat(value) }];
        metrics.gauge_set(&"n".repeat(name), 1.0, labels)
    };
    set(128, 128, 256).unwrap();
    assert!(refusal(set(129, 1, 1)).ends_with("at most 128 characters"));
    assert!(refusal(set(1, 129, 1)).ends_with("at most 128 characters"));
    let message = "metric \"n\": the value of label \"l\" has more than 256 bytes".to_owned();
    assert_eq!(set(1, 1, 257), Err(Error::LimitExceeded(message)));
    assert_eq!(metrics.kinds().len(), 1);
}

#[test]
fn series_are_charged_to_the_plugin() {
    let account = HostBytes::new(3 * (SERIES_COST as u64 + 10));
    let metrics = GuestMetrics::charged_to(account.clone());
    let set = |name: &str| metrics.gauge_set(name, 1.0, Vec::new());
    for name in ["one", "two", "three", "one"] {
        set(name).unwrap();
    }
    assert!(matches!(set("four"), Err(Error::LimitExceeded(_))));
    // Existing series can still be updated.
    set("two").unwrap();
    assert_eq!(account.view().metrics, account.view().used);
    drop(metrics);
    assert_eq!(account.view().used, 0);
}

#[test]
fn different_label_values_stay_different_after_escaping() {
    assert_eq!(shown("größe 1"), "größe 1");
    assert_eq!(shown("a\u{1b}[2J\n"), r"a\u{1b}[2J\n");
    assert_eq!(shown(r"a\n"), r"a\\n");
    assert_ne!(shown("a\n"), shown(r"a\n"));
}

#[test]
fn promise_4_a_series_is_charged_with_its_length_on_the_page() {
    for (value, on_page) in
        [("größe 1", "größe 1"), ("a\u{1}", r"a\\u{1}"), ("\"", r#"\""#), ("\\", r"\\\\"), ("\n", r"\\n")]
    {
        assert_eq!(shown_bytes(value), on_page.len(), "{value:?}");
    }
    let account = HostBytes::default();
    let metrics = GuestMetrics::charged_to(account.clone());
    // Each character takes seven bytes.
    let label = |name: usize| Entry { name: format!("l{name}"), value: "\u{1b}".repeat(MAX_LABEL_VALUE) };
    let mut n = 0;
    while metrics.gauge_set(&format!("m{n}"), 1.0, (0..MAX_LABELS).map(label).collect()).is_ok() {
        n += 1;
    }
    let length = 7 * MAX_LABEL_VALUE * MAX_LABELS;
    assert!((100..MAX_SERIES).contains(&n) && account.view().metrics as usize > n * length, "{n} series");
}
