//! Compares what happened with what a case expects.

use std::fmt;

use serde_json::{Map, Value, json};
use similar::{ChangeTag, TextDiff};

use crate::happened::{Happened, Metrics};

/// A key of `expect` whose value is another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The key, such as `writes`.
    pub key: String,
    /// The value in the case.
    pub expected: Value,
    /// What happened, without the fields that the case does not name.
    pub actual: Value,
}

/// What is compared with an `expect`.
#[derive(Debug, Default)]
pub(crate) struct Actual {
    pub(crate) happened: Happened,
    /// For each object that must exist: what is there.
    pub(crate) objects: Vec<Value>,
    /// The objects that must not exist, and do.
    pub(crate) not_gone: Vec<Value>,
}

/// The keys of entries that a case may leave out: then any value fits.
const OPTIONAL: [&str; 5] = ["body", "fields", "note", "regarding", "call"];

/// The lists that a case without any `expect` gets by `--accept`, and whether also when they are empty.
const ACCEPTED: [(&str, bool); 4] =
    [("writes", true), ("events", true), ("failures", true), ("requeued", false)];

/// Returns the values of all keys of `expect` that do not fit.
pub(crate) fn differences(
    expect: &Map<String, Value>,
    actual: &Actual,
    metrics: &Metrics,
) -> Vec<Difference> {
    let compared = expect.iter().map(|(key, expected)| {
        let (expected, actual) = both(key, expected, actual, metrics);
        Difference { key: key.clone(), expected, actual }
    });
    compared.filter(|it| it.expected != it.actual).collect()
}

/// Returns what `expect` has to be so that nothing differs, or none if it need not be there. A case that
/// `is_new` has no `expect` yet; then everything that happened is in it, and that nothing else did. An object
/// that wrongly exists, or does not, stays as the case has it.
pub(crate) fn accepted(
    expect: Option<&Map<String, Value>>,
    actual: &Actual,
    metrics: &Metrics,
    is_new: bool,
) -> Option<Map<String, Value>> {
    let mut accepted = expect.cloned().unwrap_or_default();
    for (key, is_pinned) in ACCEPTED {
        if is_new && (is_pinned || !actual.happened.list(key).is_empty()) {
            accepted.insert(key.to_owned(), json!([]));
        }
    }
    for (key, value) in &mut accepted {
        let (expected, seen) = both(key, value, actual, metrics);
        if expected == seen {
            continue;
        }
        *value = match key.as_str() {
            "metrics" => seen,
            "objects" => {
                let pairs = array(&expected).iter().zip(array(&seen));
                Value::Array(pairs.map(|(e, it)| if it.is_null() { e } else { it }).cloned().collect())
            }
            "gone" => continue,
            _ => Value::Array(entries(key, array(&expected), &sorted(actual.happened.list(key)))),
        };
    }
    (expect.is_some() || !accepted.is_empty()).then_some(accepted)
}

/// Returns the entries that happened: as the case has them where they fit, else with all their fields.
fn entries(key: &str, expected: &[Value], happened: &[Value]) -> Vec<Value> {
    let fitting = |idx: usize, it: &Value| {
        let expected = expected.get(idx)?;
        (*expected == entry(key, expected, it)).then(|| expected.clone())
    };
    happened.iter().enumerate().map(|(idx, it)| fitting(idx, it).unwrap_or_else(|| it.clone())).collect()
}

/// Returns the expected and the actual value of a key, in forms that are equal if they fit.
fn both(key: &str, expected: &Value, actual: &Actual, metrics: &Metrics) -> (Value, Value) {
    match key {
        "metrics" => {
            let expected = expected.as_object().into_iter().flatten();
            let (mut wanted, mut there) = (Map::new(), Map::new());
            for (name, value) in expected {
                wanted.insert(name.clone(), value.as_f64().into());
                if let Some(value) = metrics.0.get(name) {
                    there.insert(name.clone(), (*value).into());
                }
            }
            (Value::Object(wanted), Value::Object(there))
        }
        "objects" => {
            let pairs = array(expected).iter().zip(&actual.objects);
            (
                expected.clone(),
                Value::Array(pairs.map(|(expected, actual)| project(expected, actual)).collect()),
            )
        }
        // Nothing of what must be gone is there.
        "gone" => {
            let gone = array(expected).iter().filter(|it| !actual.not_gone.contains(it)).cloned().collect();
            (expected.clone(), Value::Array(gone))
        }
        _ => {
            let (expected, happened) = (sorted(array(expected)), sorted(actual.happened.list(key)));
            let seen = happened.iter().enumerate();
            let seen =
                seen.map(|(idx, it)| expected.get(idx).map_or_else(|| it.clone(), |e| entry(key, e, it)));
            let seen = seen.collect();
            (Value::Array(expected), Value::Array(seen))
        }
    }
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Sorts entries by what they are about; entries about one object keep their order.
fn sorted(entries: &[Value]) -> Vec<Value> {
    let mut sorted = entries.to_vec();
    sorted.sort_by_cached_key(about);
    sorted
}

/// Returns the object of an entry. A log has none, so that logs keep their order.
fn about(entry: &Value) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let write = || ["create", "apply", "patch", "replace", "delete"].iter().find_map(|verb| text(verb));
    let key = || entry.as_str().map(|text| text.split(" after ").next().unwrap_or_default().to_owned());
    text("regarding").or_else(|| text("call")).or_else(write).or_else(key).unwrap_or_default()
}

/// Returns an entry without the fields that the expected one leaves out.
fn entry(key: &str, expected: &Value, actual: &Value) -> Value {
    let (Value::Object(expected_fields), Value::Object(fields)) = (expected, actual) else {
        return actual.clone();
    };
    if key == "requeued" {
        return actual.clone();
    }
    let mut shown = Map::new();
    for (name, value) in fields {
        match expected_fields.get(name) {
            Some(wanted) if matches!(name.as_str(), "body" | "fields") => {
                shown.insert(name.clone(), project(wanted, value));
            }
            None if OPTIONAL.contains(&name.as_str()) => {}
            _ => {
                shown.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(shown)
}

/// Returns the part of `actual` that `expected` names.
fn project(expected: &Value, actual: &Value) -> Value {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            let named = expected.iter().filter_map(|(name, wanted)| {
                actual.get(name).map(|value| (name.clone(), project(wanted, value)))
            });
            Value::Object(named.collect())
        }
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => Value::Array(
            expected.iter().zip(actual).map(|(expected, actual)| project(expected, actual)).collect(),
        ),
        _ => actual.clone(),
    }
}

/// As a diff of YAML: `-` is expected, `+` happened.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yaml = |value: &Value| serde_norway::to_string(&json!({ &self.key: value })).unwrap_or_default();
        let (expected, actual) = (yaml(&self.expected), yaml(&self.actual));
        for change in TextDiff::from_lines(&expected, &actual).iter_all_changes() {
            let sign = match change.tag() {
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
                ChangeTag::Equal => ' ',
            };
            write!(f, "{sign} {change}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actual(writes: Value) -> Actual {
        let writes = writes.as_array().cloned().unwrap_or_default();
        Actual { happened: Happened { writes, ..Happened::default() }, ..Actual::default() }
    }

    fn differ(expect: &Value, actual: &Actual) -> Vec<Difference> {
        differences(expect.as_object().unwrap(), actual, &Metrics::default())
    }

    #[test]
    fn fields_that_a_case_does_not_name_do_not_count() {
        let actual = actual(json!([
            {"create": "v1/configmaps b/x", "body": {"data": {"k": "v", "l": "w"}, "kind": "ConfigMap"}},
            {"delete": "v1/configmaps a/x"},
        ]));
        let fits = json!({"writes": [
            {"create": "v1/configmaps b/x", "body": {"data": {"k": "v"}}}, {"delete": "v1/configmaps a/x"}
        ]});
        assert_eq!(differ(&fits, &actual), []);
        let without_body =
            json!({"writes": [{"delete": "v1/configmaps a/x"}, {"create": "v1/configmaps b/x"}]});
        assert_eq!(differ(&without_body, &actual), []);
        assert_eq!(differ(&json!({}), &actual), []);
    }

    #[test]
    fn a_value_an_error_an_entry_too_much_and_one_too_few_differ() {
        let one = json!([{"create": "v1/configmaps b/x", "body": {"data": {"k": "v"}}, "error": "conflict"}]);
        for expected in [
            json!([{"create": "v1/configmaps b/x"}]),
            json!([{"create": "v1/configmaps b/x", "error": "conflict", "body": {"data": {"k": "w"}}}]),
            json!([{"create": "v1/configmaps b/x", "error": "conflict", "body": {"data": {"m": null}}}]),
            json!([{"apply": "v1/configmaps b/x", "error": "conflict"}]),
            json!([]),
            json!([{"create": "v1/configmaps b/x", "error": "conflict"}, {"delete": "v1/configmaps b/x"}]),
        ] {
            assert_eq!(differ(&json!({"writes": expected}), &actual(one.clone())).len(), 1, "{expected}");
        }
        assert_eq!(differ(&json!({"writes": [{"delete": "v1/pods a"}]}), &Actual::default()).len(), 1);
    }

    #[test]
    fn objects_metrics_and_what_is_gone_are_compared() {
        let config_map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let expect = json!({"objects": [config_map], "gone": [config_map], "metrics": {"n": 2}});
        let none = Actual { objects: vec![Value::Null], ..Actual::default() };
        let keys = |actual: &Actual, metrics: &Metrics| -> Vec<String> {
            differences(expect.as_object().unwrap(), actual, metrics).into_iter().map(|it| it.key).collect()
        };
        assert_eq!(keys(&none, &Metrics::default()), ["objects", "metrics"]);
        let mut more = config_map.clone();
        more["data"] = json!({"k": "v"});
        let there = Actual { objects: vec![more], not_gone: vec![config_map.clone()], ..Actual::default() };
        assert_eq!(keys(&there, &Metrics([("n".to_owned(), 2.0)].into())), ["gone"]);
    }

    #[test]
    fn what_happened_is_accepted_and_what_fitted_stays_as_it_was_written() {
        let actual = actual(json!([
            {"create": "v1/configmaps a/x", "body": {"data": {"k": "v"}}},
            {"create": "v1/configmaps b/x", "body": {"data": {"k": "v"}}},
        ]));
        let expect = json!({"writes": [{"create": "v1/configmaps a/x"}], "logs": []});
        let accepted = accepted(expect.as_object(), &actual, &Metrics::default(), false).unwrap();
        assert_eq!(
            Value::Object(accepted.clone()),
            json!({
                "writes": [
                    {"create": "v1/configmaps a/x"},
                    {"create": "v1/configmaps b/x", "body": {"data": {"k": "v"}}},
                ],
                "logs": [],
            })
        );
        assert_eq!(differences(&accepted, &actual, &Metrics::default()), []);
        assert_eq!(super::accepted(None, &actual, &Metrics::default(), false), None);
        let new = super::accepted(None, &actual, &Metrics::default(), true).unwrap();
        assert_eq!(
            Value::Object(new),
            json!({"writes": actual.happened.writes, "events": [], "failures": []})
        );
    }

    #[test]
    fn what_happened_several_times_is_accepted_as_often() {
        let texts = |all: &[&str]| all.iter().map(|it| Value::from(*it)).collect::<Vec<_>>();
        let requeued = texts(&["p x/b after 10m", "p x/a after 10m", "p x/a after 10m", "p x/a after 10m"]);
        let actual = Actual { happened: Happened { requeued, ..Happened::default() }, ..Actual::default() };
        let all = texts(&["p x/a after 10m", "p x/a after 10m", "p x/a after 10m", "p x/b after 10m"]);
        let one = json!({"requeued": ["p x/a after 10m"]});
        for (expect, is_new) in [(None, true), (one.as_object(), false)] {
            let accepted = accepted(expect, &actual, &Metrics::default(), is_new).unwrap();
            assert_eq!(accepted["requeued"], Value::Array(all.clone()));
            assert_eq!(differences(&accepted, &actual, &Metrics::default()), []);
        }
    }

    #[test]
    fn that_nothing_happened_is_accepted_too() {
        let accepted = |is_new| accepted(None, &Actual::default(), &Metrics::default(), is_new);
        let nothing = json!({"writes": [], "events": [], "failures": []});
        assert_eq!(accepted(true).map(Value::Object), Some(nothing));
        assert_eq!(accepted(false), None);
    }

    #[test]
    fn an_object_that_is_absent_or_not_gone_stays_and_differs() {
        let object =
            |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let mut there = object("b");
        there["data"] = json!({"k": "v"});
        let mut expected = object("b");
        expected["data"] = json!({"k": "w"});
        let absent = Actual { objects: vec![Value::Null, there.clone()], ..Actual::default() };
        let not_gone = Actual { not_gone: vec![object("a")], ..Actual::default() };
        for (expect, actual, stays) in [
            (json!({"objects": [object("a"), expected]}), &absent, json!({"objects": [object("a"), there]})),
            (json!({"gone": [object("a")]}), &not_gone, json!({"gone": [object("a")]})),
        ] {
            let accepted = accepted(expect.as_object(), actual, &Metrics::default(), false).unwrap();
            assert_eq!(Value::Object(accepted.clone()), stays);
            assert_eq!(differences(&accepted, actual, &Metrics::default()).len(), 1, "{stays}");
        }
    }

    #[test]
    fn a_difference_is_shown_as_a_diff() {
        let difference = Difference {
            key: "writes".to_owned(),
            expected: json!([{"delete": "v1/pods a"}]),
            actual: json!([{"delete": "v1/pods b"}]),
        };
        assert_eq!(difference.to_string(), "  writes:\n- - delete: v1/pods a\n+ - delete: v1/pods b\n");
    }
}
