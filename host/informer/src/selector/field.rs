//! Conditions on single fields of an object.

mod expected;

use oarlock_json::JsonPointer;
use serde_json::Value;

use self::expected::Expected;
use crate::object::Object;

/// A test on the field at a pointer.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldCondition {
    pointer: JsonPointer,
    test: FieldTest,
    expected: Option<Expected>,
}

/// The test of a [`FieldCondition`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FieldTest {
    /// The field exists and is not null.
    Exists,
    /// The field does not exist or is null.
    Absent,
    /// The field equals this JSON text. White space and the order of keys do not matter; numbers are compared
    /// by value.
    Equals(String),
    /// The field does not exist or differs from this JSON text.
    Differs(String),
}

/// A condition whose value is not JSON.
#[derive(Debug, thiserror::Error)]
#[error("the value to compare {pointer} with is not JSON: {text}")]
pub struct ConditionError {
    pointer: JsonPointer,
    text: String,
    #[source]
    source: serde_json::Error,
}

// === impl FieldCondition ===

impl FieldCondition {
    /// Returns a condition on the field at `pointer`.
    ///
    /// # Errors
    ///
    /// When the text of the test is not JSON.
    pub fn new(pointer: JsonPointer, test: FieldTest) -> Result<Self, ConditionError> {
        let expected = match &test {
            FieldTest::Exists | FieldTest::Absent => None,
            FieldTest::Equals(text) | FieldTest::Differs(text) => match serde_json::from_str::<Value>(text) {
                Ok(expected) => Some(expected.into()),
                Err(source) => return Err(ConditionError { pointer, text: text.clone(), source }),
            },
        };
        Ok(Self { pointer, test, expected })
    }

    /// Returns the pointer to the field.
    pub fn pointer(&self) -> &JsonPointer {
        &self.pointer
    }

    /// Returns the test.
    pub fn test(&self) -> &FieldTest {
        &self.test
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
            FieldTest::Equals(expected) => self.equals(actual, expected),
            FieldTest::Differs(expected) => !self.equals(actual, expected),
        }
    }

    fn equals(&self, actual: Option<&str>, expected_text: &str) -> bool {
        let (Some(actual), Some(expected)) = (actual, &self.expected) else {
            return false;
        };
        actual == expected_text || expected.is(actual)
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
}
