//! Label selectors in the JSON form that objects carry: `matchLabels` and `matchExpressions`, or a plain map.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::LabelSelector;
use crate::parser::ParseError;

/// A JSON text that is not a label selector.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The text is not JSON of that shape.
    #[error("not a label selector")]
    Shape(#[from] serde_json::Error),
    /// The operator of an expression is not known.
    #[error("{0:?} is not a valid label selector operator")]
    Operator(String),
    /// A key or value is not valid for a label.
    #[error(transparent)]
    Selector(#[from] ParseError),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Structured {
    #[serde(default)]
    match_labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    match_expressions: Option<Vec<Expression>>,
}

#[derive(Deserialize)]
struct Expression {
    key: String,
    operator: String,
    #[serde(default)]
    values: Option<Vec<String>>,
}

// === impl LabelSelector ===

impl LabelSelector {
    /// Parses the selector of an object: `matchLabels` and `matchExpressions` (Deployments, DaemonSets …), or
    /// a plain map of labels (Services, ReplicationControllers).
    ///
    /// # Errors
    ///
    /// When the text is neither.
    pub fn from_json(text: &str) -> Result<Self, JsonError> {
        let structured = match serde_json::from_str(text) {
            Ok(structured) => structured,
            Err(error) => match serde_json::from_str(text) {
                Ok(labels) => Structured { match_labels: Some(labels), match_expressions: None },
                Err(_) => return Err(error.into()),
            },
        };
        let Structured { match_labels, match_expressions } = structured;
        let labels =
            match_labels.unwrap_or_default().into_iter().map(|(key, value)| Ok(format!("{key}={value}")));
        let expressions = match_expressions.unwrap_or_default().into_iter().map(Expression::into_text);
        let requirements: Result<Vec<String>, JsonError> = labels.chain(expressions).collect();
        Ok(requirements?.join(",").parse()?)
    }
}

// === impl Expression ===

impl Expression {
    fn into_text(self) -> Result<String, JsonError> {
        let Self { key, operator, values } = self;
        let values = values.unwrap_or_default().join(",");
        match &*operator {
            "In" => Ok(format!("{key} in ({values})")),
            "NotIn" => Ok(format!("{key} notin ({values})")),
            "Exists" => Ok(key),
            "DoesNotExist" => Ok(format!("!{key}")),
            _ => Err(JsonError::Operator(operator)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_json_forms_are_parsed() {
        let selector = |json| LabelSelector::from_json(json).unwrap().to_string();
        assert_eq!(selector(r#"{"app":"web","tier":"a"}"#), "app=web,tier=a");
        let structured = r#"{"matchLabels":{"app":"web"},"matchExpressions":[
            {"key":"a","operator":"In","values":["x","y"]},{"key":"b","operator":"NotIn","values":["z"]},
            {"key":"c","operator":"Exists"},{"key":"d","operator":"DoesNotExist"}]}"#;
        assert_eq!(selector(structured), "a in (x,y),app=web,b notin (z),c,!d");
        assert_eq!(selector("{}"), "");
    }

    #[test]
    fn other_json_is_an_error() {
        let error = |json| LabelSelector::from_json(json).unwrap_err().to_string();
        insta::assert_snapshot!(error(r#"{"matchExpressions":[{"key":"a","operator":"Like"}]}"#), @r#""Like" is not a valid label selector operator"#);
        insta::assert_snapshot!(error(r#"{"matchLabels":{"a b":"x"}}"#), @"unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
        insta::assert_snapshot!(error("1"), @"not a label selector");
    }
}
