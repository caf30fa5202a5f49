//! Compares recorded and actual values.

use serde_json::Value;

use crate::record::{Ended, Kind};

/// The maximum number of characters of a shown value.
const SHOWN: usize = 160;

/// Where two values differ, the recorded and the actual value there, both shortened.
pub(super) type Unequal = (String, String, String);

/// Returns the first difference of two values: the JSON pointer, and what is there.
///
/// Two texts that are JSON are compared as JSON, so the order of fields does not matter.
pub(super) fn values(recorded: &Value, actual: &Value) -> Option<Unequal> {
    let mut path = String::new();
    let (recorded, actual) = first(recorded, actual, &mut path)?;
    Some((path, recorded, actual))
}

fn first(recorded: &Value, actual: &Value, path: &mut String) -> Option<(String, String)> {
    match (recorded, actual) {
        (Value::Object(a), Value::Object(b)) => {
            let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
            for name in names {
                let length = path.len();
                path.push('/');
                path.push_str(&name.replace('~', "~0").replace('/', "~1"));
                let found = match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => first(a, b, path),
                    (a, b) => Some((shown(a), shown(b))),
                };
                if found.is_some() {
                    return found;
                }
                path.truncate(length);
            }
            None
        }
        (Value::Array(a), Value::Array(b)) => {
            for i in 0..a.len().max(b.len()) {
                let length = path.len();
                path.push_str(&format!("/{i}"));
                let found = match (a.get(i), b.get(i)) {
                    (Some(a), Some(b)) => first(a, b, path),
                    (a, b) => Some((shown(a), shown(b))),
                };
                if found.is_some() {
                    return found;
                }
                path.truncate(length);
            }
            None
        }
        (Value::String(a), Value::String(b)) if a != b => match (structure(a), structure(b)) {
            (Some(a), Some(b)) => {
                let length = path.len();
                path.push_str(" → ");
                let found = first(&a, &b, path);
                if found.is_none() {
                    path.truncate(length);
                }
                found
            }
            _ => Some((shown(Some(recorded)), shown(Some(actual)))),
        },
        _ if recorded == actual => None,
        _ => Some((shown(Some(recorded)), shown(Some(actual)))),
    }
}

/// Reads a text that is a JSON object or list.
fn structure(text: &str) -> Option<Value> {
    let begins = text.trim_start().starts_with(['{', '[']);
    begins.then(|| serde_json::from_str(text).ok()).flatten()
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), |value| shorten(&value.to_string()))
}

/// Truncates a text for people, and says how long it was.
#[must_use]
pub fn shorten(text: &str) -> String {
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    let cut: String = text.chars().take(SHOWN).collect();
    format!("{cut}… ({} bytes)", text.len())
}

/// Returns the difference of two ends of a call. Failures are equal if they have the same kind, and traps the
/// same reason.
pub(super) fn ended(recorded: &Ended, actual: &Ended) -> Option<Unequal> {
    match (recorded, actual) {
        (Ended::Answer(recorded), Ended::Answer(actual)) => {
            let (path, recorded, actual) = values(recorded, actual)?;
            Some((format!("answer {path}").trim_end().to_owned(), recorded, actual))
        }
        // The host ended the call, so the record does not know how it would have ended.
        (Ended::Cancelled, _) => None,
        (Ended::Failed { kind: a, message: first }, Ended::Failed { kind: b, message: second }) => {
            let reason = |text: &str| text.lines().next().unwrap_or_default().to_owned();
            let is_same = a == b && (*a != Kind::Trap || reason(first) == reason(second));
            (!is_same).then(|| ("end".to_owned(), shorten(first), shorten(second)))
        }
        _ => Some(("end".to_owned(), shown_end(recorded), shown_end(actual))),
    }
}

fn shown_end(ended: &Ended) -> String {
    match ended {
        Ended::Answer(answer) => shorten(&answer.to_string()),
        Ended::Failed { message, .. } => shorten(message),
        Ended::Cancelled => "the host dropped the call".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_has_a_pointer() {
        let differ = |a: Value, b: Value| values(&a, &b).map(|(at, a, b)| format!("{at}: {a} != {b}"));
        assert_eq!(differ(json!({"a": [1, {"b": null}]}), json!({"a": [1, {"b": null}]})), None);
        insta::assert_snapshot!(differ(json!({"a": [1, 2]}), json!({"a": [1, 3]})).unwrap(), @"/a/1: 2 != 3");
        insta::assert_snapshot!(differ(json!({"a/b": 1}), json!({})).unwrap(), @"/a~1b: 1 != nothing");
        insta::assert_snapshot!(differ(json!([]), json!(["x"])).unwrap(), @r#"/0: nothing != "x""#);
    }

    #[test]
    fn texts_that_are_json_are_compared_as_json() {
        let of = |text: &str| json!({ "json": text });
        assert_eq!(values(&of(r#"{"a":1,"b":2}"#), &of(r#"{ "b":2, "a":1 }"#)), None);
        let (at, recorded, actual) = values(&of(r#"{"a":{"b":1}}"#), &of(r#"{"a":{"b":2}}"#)).unwrap();
        assert_eq!((at.as_str(), recorded.as_str(), actual.as_str()), ("/json → /a/b", "1", "2"));
        assert!(values(&of("text"), &of("other")).is_some());
    }

    #[test]
    fn a_fraction_that_was_recorded_is_equal() {
        let recorded = |actual: &Value| serde_json::from_str::<Value>(&actual.to_string()).unwrap();
        for n in 1..10_000_u32 {
            let actual = json!({ "by": f64::from(n).sqrt() * 1e-7 });
            assert_eq!(values(&recorded(&actual), &actual), None, "{actual}");
        }
        assert!(values(&json!(0.1), &json!(0.100_000_1)).is_some());
    }

    #[test]
    fn a_long_value_is_shortened() {
        assert_eq!(shorten("short"), "short");
        let shortened = shorten(&"ä".repeat(1_000));
        assert!(shortened.ends_with("… (2000 bytes)") && shortened.chars().count() < 200, "{shortened}");
    }
}
