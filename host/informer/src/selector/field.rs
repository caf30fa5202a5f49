//! Conditions on single fields of an object.

mod expected;

use std::cmp::Ordering;

use oarlock_json::JsonPointer;
use serde_json::Value;

use self::expected::Expected;
use crate::object::Object;

/// The most values that `in` and `not-in` may have.
pub const MAX_VALUES: usize = 64;
/// The most bytes that all values of a condition may have together, as JSON texts.
pub const MAX_VALUE_BYTES: usize = 16 << 10;

/// A test on the field at a pointer.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldCondition {
    pointer: JsonPointer,
    test: FieldTest,
    /// The values of the test, in their order.
    expected: Box<[Expected]>,
}

/// The test of a [`FieldCondition`].
///
/// Values are JSON texts. Two values are equal if neither white space nor the order of keys tells them apart;
/// numbers are compared by value. `Greater` and `Less` compare a number with a number, at full precision for
/// 64-bit integers, and a string with a string, by the bytes of its UTF-8 text without escapes. So RFC 3339
/// times of one form and zone are in the order of time, as those that Kubernetes writes. Quantities of
/// Kubernetes, such as `"500m"`, are strings and are not compared by value. A field of another type than the
/// value is neither greater nor less.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FieldTest {
    /// The field exists and is not null.
    Exists,
    /// The field does not exist or is null.
    Absent,
    /// The field equals this JSON text.
    Equals(String),
    /// The field does not exist or differs from this JSON text.
    Differs(String),
    /// The field equals one of these JSON texts, of which there are 1 to [`MAX_VALUES`].
    In(Vec<String>),
    /// The field does not exist or differs from each of these JSON texts.
    NotIn(Vec<String>),
    /// The field is greater than this number or string.
    Greater(String),
    /// The field is less than this number or string.
    Less(String),
}

/// Why a condition is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConditionError {
    /// A value is not JSON.
    #[error("the value to compare {pointer} with is not JSON: {text}")]
    NotJson {
        /// The pointer of the condition.
        pointer: JsonPointer,
        /// The value.
        text: String,
        /// The cause.
        #[source]
        source: serde_json::Error,
    },
    /// The value of `greater` or `less` is neither a number nor a string.
    #[error("{pointer} cannot be greater or less than {text}: give a number or a string")]
    NoOrder {
        /// The pointer of the condition.
        pointer: JsonPointer,
        /// The value.
        text: String,
    },
    /// `in` or `not-in` has no value.
    #[error("the condition on {0} has no value to compare with: give 1 to {MAX_VALUES}")]
    NoValue(JsonPointer),
    /// The condition has too many values, or too long ones.
    #[error(
        "the condition on {pointer} has {n_values} values of {n_bytes} bytes: the limits are {MAX_VALUES} values and {MAX_VALUE_BYTES} bytes"
    )]
    TooLong {
        /// The pointer of the condition.
        pointer: JsonPointer,
        /// The number of its values.
        n_values: usize,
        /// The length of all values together.
        n_bytes: usize,
    },
}

// === impl FieldTest ===

impl FieldTest {
    fn values(&self) -> &[String] {
        match self {
            Self::Exists | Self::Absent => &[],
            Self::Equals(value) | Self::Differs(value) | Self::Greater(value) | Self::Less(value) => {
                std::slice::from_ref(value)
            }
            Self::In(values) | Self::NotIn(values) => values,
        }
    }
}

// === impl FieldCondition ===

impl FieldCondition {
    /// Returns a condition on the field at `pointer`.
    ///
    /// # Errors
    ///
    /// When the test has no values, too many of them, or values that it cannot compare.
    pub fn new(pointer: JsonPointer, test: FieldTest) -> Result<Self, ConditionError> {
        let values = test.values();
        let (n_values, n_bytes) = (values.len(), values.iter().map(String::len).sum::<usize>());
        if n_values > MAX_VALUES || n_bytes > MAX_VALUE_BYTES {
            return Err(ConditionError::TooLong { pointer, n_values, n_bytes });
        }
        let mut expected = Vec::with_capacity(n_values);
        for text in values {
            match serde_json::from_str::<Value>(text) {
                Ok(value) => expected.push(Expected::from(value)),
                Err(source) => return Err(ConditionError::NotJson { pointer, text: text.clone(), source }),
            }
        }
        match &test {
            FieldTest::In(values) | FieldTest::NotIn(values) if values.is_empty() => {
                return Err(ConditionError::NoValue(pointer));
            }
            FieldTest::Greater(text) | FieldTest::Less(text) if !expected.iter().all(Expected::has_order) => {
                return Err(ConditionError::NoOrder { pointer, text: text.clone() });
            }
            _ => {}
        }
        Ok(Self { pointer, test, expected: expected.into() })
    }

    /// Returns the pointer to the field.
    pub fn pointer(&self) -> &JsonPointer {
        &self.pointer
    }

    /// Returns the test.
    pub fn test(&self) -> &FieldTest {
        &self.test
    }

    /// Returns the number of values that a field is compared with.
    pub(crate) fn n_values(&self) -> usize {
        self.expected.len()
    }

    /// Returns true if the object meets the condition.
    pub fn matches(&self, object: &Object) -> bool {
        self.matches_value(object.pointer(&self.pointer).as_deref())
    }

    /// Returns true if a field with this JSON text meets the condition; `None` is a field that does not
    /// exist.
    pub fn matches_value(&self, actual: Option<&str>) -> bool {
        match &self.test {
            FieldTest::Exists => actual.is_some_and(|actual| actual != "null"),
            FieldTest::Absent => actual.is_none_or(|actual| actual == "null"),
            FieldTest::Equals(_) | FieldTest::In(_) => self.equals_any(actual),
            FieldTest::Differs(_) | FieldTest::NotIn(_) => !self.equals_any(actual),
            FieldTest::Greater(_) => self.order(actual) == Some(Ordering::Greater),
            FieldTest::Less(_) => self.order(actual) == Some(Ordering::Less),
        }
    }

    fn equals_any(&self, actual: Option<&str>) -> bool {
        let Some(actual) = actual else { return false };
        let texts = self.test.values().iter();
        texts.zip(&self.expected).any(|(text, expected)| actual == text || expected.is(actual))
    }

    /// Returns how the field compares with the value.
    fn order(&self, actual: Option<&str>) -> Option<Ordering> {
        self.expected.first()?.order_of(actual?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(test: FieldTest, actual: Option<&str>) -> bool {
        FieldCondition::new("/a".parse().unwrap(), test).unwrap().matches_value(actual)
    }

    #[test]
    fn a_null_field_counts_as_absent() {
        for (actual, exists) in
            [(None, false), (Some("null"), false), (Some("0"), true), (Some("\"\""), true)]
        {
            assert_eq!(holds(FieldTest::Exists, actual), exists, "{actual:?}");
            assert_eq!(holds(FieldTest::Absent, actual), !exists, "{actual:?}");
        }
    }

    #[test]
    fn values_are_compared_as_json() {
        let cases = [
            ("1", Some("1"), true),
            ("1", Some("1.0"), true),
            ("1", Some("\"1\""), false),
            ("\"a\"", Some("\"\\u0061\""), true),
            ("9007199254740993", Some("9007199254740992"), false),
            ("null", Some("null"), true),
            ("null", None, false),
            (r#"{"a":1,"b":[1]}"#, Some(r#"{ "b": [1.0], "a":1 }"#), true),
            (r#"{"a":1}"#, Some(r#"{"a":1,"b":2}"#), false),
            ("[1,2]", Some("[2,1]"), false),
            ("true", Some("tru"), false),
            (r#"["é","\"\\"]"#, Some(r#"[ "\u00e9" , "\u0022\\" ] "#), true),
            (r#"["é"]"#, Some(r#"["e"]"#), false),
            (r#"[1,[]]"#, Some("[1,[],2]"), false),
            (r#"[1,[]]"#, Some("[1]"), false),
            (r#"{"a":{"b":null}}"#, Some(r#"{"\u0061":{"b":null}}"#), true),
            (r#"{"a":{"b":null}}"#, Some(r#"{"a":{}}"#), false),
            (r#""a""#, Some(r#""ab""#), false),
            (r#""""#, Some(r#""""#), true),
            (r#""\ud83d\ude00""#, Some(r#""😀""#), true),
            ("1e3", Some("1000"), true),
            ("{}", Some("{} {}"), false),
        ];
        for (expected, actual, equal) in cases {
            assert_eq!(holds(FieldTest::Equals(expected.into()), actual), equal, "{expected} {actual:?}");
            assert_eq!(holds(FieldTest::Differs(expected.into()), actual), !equal, "{expected} {actual:?}");
        }
    }

    /// A plugin may compare one long field with many short texts.
    #[test]
    fn promise_4_a_comparison_ends_at_the_first_difference() {
        let long = "x".repeat(1 << 20);
        let texts =
            [format!("\"{long}\""), format!("[\"{long}\",0]"), format!("{{\"a\":\"{long}\",\"b\":1}}")];
        let expected = ["\"xxxx\"", "[\"xxxx\",0]", "{\"a\":\"xxxx\",\"b\":1}"];
        for (text, expected) in texts.iter().zip(expected) {
            let expected = Expected::from(serde_json::from_str::<Value>(expected).unwrap());
            assert_eq!((expected.is(text), expected.is(&text.replace(&long, "xxxx"))), (false, true));
            // What follows is not looked at: it need not even be there.
            assert!(!expected.is(&text[..100]));
        }
    }

    #[test]
    fn a_value_that_is_not_json_is_refused() {
        let error =
            FieldCondition::new("/a/b".parse().unwrap(), FieldTest::Equals("Running".into())).unwrap_err();
        insta::assert_snapshot!(error, @"the value to compare /a/b with is not JSON: Running");
    }

    #[test]
    fn in_holds_for_equal_values_and_not_in_for_all_others() {
        let values = || vec!["\"a\"".to_owned(), "1".to_owned(), "[1, {}]".to_owned()];
        let cases = [
            (Some("\"a\""), true),
            (Some("\"\\u0061\""), true),
            (Some("1.0"), true),
            (Some("[1,{}]"), true),
            (Some("\"1\""), false),
            (Some("null"), false),
            (None, false),
        ];
        for (actual, is_in) in cases {
            assert_eq!(holds(FieldTest::In(values()), actual), is_in, "{actual:?}");
            assert_eq!(holds(FieldTest::NotIn(values()), actual), !is_in, "{actual:?}");
        }
    }

    #[test]
    fn greater_and_less_compare_numbers_by_value_and_strings_by_their_bytes() {
        use std::cmp::Ordering::{Equal, Greater, Less};
        let cases = [
            ("10", "9", Some(Less)),
            ("10", "10.0", Some(Equal)),
            ("10", "1e2", Some(Greater)),
            ("0", "-0.5", Some(Less)),
            ("-1", "-0.5", Some(Greater)),
            ("9007199254740993", "9007199254740992", Some(Less)),
            ("9007199254740993", "9007199254740992.0", Some(Less)),
            ("18446744073709551615", "1e300", Some(Greater)),
            ("-9223372036854775808", "18446744073709551615", Some(Greater)),
            ("0.1", "0", Some(Less)),
            ("1", "\"2\"", None),
            ("1", "null", None),
            ("1", "[2]", None),
            ("1", "2 3", None),
            ("\"b\"", "\"a\"", Some(Less)),
            ("\"b\"", "\"b\"", Some(Equal)),
            ("\"b\"", "\"\\u0062\"", Some(Equal)),
            ("\"b\"", "\"ba\"", Some(Greater)),
            ("\"b\"", "\"\"", Some(Less)),
            ("\"b\"", "\"é\"", Some(Greater)),
            ("\"10\"", "\"9\"", Some(Greater)),
            ("\"b\"", "2", None),
            ("\"2024-05-01T00:00:00Z\"", "\"2024-04-30T23:59:59Z\"", Some(Less)),
        ];
        for (expected, actual, order) in cases {
            let held =
                [FieldTest::Greater, FieldTest::Less].map(|test| holds(test(expected.into()), Some(actual)));
            assert_eq!(held, [order == Some(Greater), order == Some(Less)], "{expected} {actual}");
        }
        for test in [FieldTest::Greater, FieldTest::Less] {
            assert!(!holds(test("1".into()), None), "a field that does not exist");
        }
    }

    #[test]
    fn promise_4_an_order_of_long_strings_looks_at_their_beginning_only() {
        let less = |text: &str, value: &str| holds(FieldTest::Less(value.into()), Some(text));
        let long = "x".repeat(1 << 20);
        assert!(less(&format!("\"{long}\""), "\"xy\"") && !less(&format!("\"{long}\""), "\"xx\""));
        // The string is cut off within each kind of escape. What follows need not even be there.
        let text = format!("\"{}", "\\ud83d\\ude00\\\\\\n\\u00e9".repeat(1_000));
        for n in 0..40 {
            assert!(less(&text, &format!("\"{}\"", "😀\\\\\\né".repeat(n) + "😁")), "{n}");
            assert!(!less(&text, &format!("\"{}\"", "😀\\\\\\né".repeat(n))), "{n}");
        }
    }

    #[test]
    fn conditions_have_few_and_short_values() {
        let refused = |test| FieldCondition::new("/a".parse().unwrap(), test).unwrap_err().to_string();
        let values = |n: usize, length: usize| vec!["1".repeat(length); n];
        insta::assert_snapshot!(refused(FieldTest::In(Vec::new())), @"the condition on /a has no value to compare with: give 1 to 64");
        insta::assert_snapshot!(refused(FieldTest::NotIn(values(65, 1))), @"the condition on /a has 65 values of 65 bytes: the limits are 64 values and 16384 bytes");
        insta::assert_snapshot!(refused(FieldTest::In(values(2, 10_000))), @"the condition on /a has 2 values of 20000 bytes: the limits are 64 values and 16384 bytes");
        insta::assert_snapshot!(refused(FieldTest::In(vec!["1".into(), "x".into()])), @"the value to compare /a with is not JSON: x");
        insta::assert_snapshot!(refused(FieldTest::Greater("[1]".into())), @"/a cannot be greater or less than [1]: give a number or a string");
        assert!(FieldCondition::new("/a".parse().unwrap(), FieldTest::In(values(64, 200))).is_ok());
    }
}
