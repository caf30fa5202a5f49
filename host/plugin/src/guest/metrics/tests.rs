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
    let snapshot = metrics.snapshot();
    assert_eq!(snapshot.keys().collect::<Vec<_>>(), ["jobs_total"]);
    assert_eq!(snapshot["jobs_total"].series[&Vec::new()], 3.0);
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
    assert_eq!(metrics.snapshot().len(), 1);
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
