//! Validation rules in CEL (`x-kubernetes-validations`), compiled once per definition and evaluated for each
//! object.
//!
//! The crate `cel` parses and evaluates; it has no type checker. Therefore a rule with a type error, which
//! kube-apiserver refuses in the definition, fails here when an object is validated; unknown fields,
//! variables and functions are refused here too (see `definition`). The cost of a rule is neither estimated
//! nor limited.

mod definition;
mod library;
mod value;

use crate::status::Cause;
use cel::Program;
use cel::objects::OptionalValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) use definition::{check_expressions, check_texts};
pub(super) use value::has_identity;

/// The compiled rules of a schema and its nested schemas. Schemas without rules are omitted.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    own: Vec<Rule>,
    properties: BTreeMap<String, Rules>,
    additional: Option<Box<Rules>>,
    items: Option<Box<Rules>>,
    all_of: Vec<(usize, Rules)>,
}

#[derive(Debug)]
struct Rule {
    program: Program,
    text: String,
    uses_old_self: bool,
    /// `oldSelf` is an optional value, and the rule applies to new values too.
    optional_old_self: bool,
    message: String,
    message_expression: Option<Program>,
    reason: String,
    /// The path of the reported field, relative to the value, such as `.foo.bar`.
    field_path: String,
}

/// A value, the old value, and whether the value is known to be unchanged.
#[derive(Clone, Copy)]
struct Place<'a> {
    value: &'a Value,
    /// The old value for transition rules; `None` if the schema does not identify it.
    old: Option<&'a Value>,
    /// The value or an enclosing value is unchanged, so it may still violate a rule that it violated before.
    is_unchanged: bool,
}

/// The name of the object itself in kube-apiserver's errors.
const ROOT: &str = "<nil>";

// === impl Rules ===

impl Rules {
    /// Compiles the rules of a schema, without those that do not compile: the validation of the definition
    /// refuses them.
    pub(crate) fn compile(schema: &Value) -> Self {
        let own = super::list(schema, "/x-kubernetes-validations").iter().filter_map(Rule::compile).collect();
        let below = |schema: &Value| Some(Self::compile(schema)).filter(|rules| !rules.is_empty());
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        Self {
            own,
            properties: properties.filter_map(|(name, of)| Some((name.clone(), below(of)?))).collect(),
            additional: schema.get("additionalProperties").and_then(below).map(Box::new),
            items: schema.get("items").and_then(below).map(Box::new),
            all_of: super::list(schema, "/allOf")
                .iter()
                .enumerate()
                .filter_map(|(index, of)| Some((index, below(of)?)))
                .collect(),
        }
    }

    /// Returns whether the schema has no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty()
            && self.properties.is_empty()
            && self.additional.is_none()
            && self.items.is_none()
            && self.all_of.is_empty()
    }

    /// Returns the errors of an object. `old` is the object before the update, if any.
    pub(crate) fn evaluate(&self, schema: &Value, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = Vec::new();
        if !self.is_empty() {
            let schema = value::with_type_and_metadata(schema);
            let place = Place { value: object, old, is_unchanged: old == Some(object) };
            self.evaluate_at(&schema, place, "", &mut causes);
        }
        causes
    }

    fn evaluate_at(&self, schema: &Value, place: Place<'_>, path: &str, causes: &mut Vec<Cause>) {
        if place.value.is_null() {
            return;
        }
        for rule in &self.own {
            causes.extend(rule.evaluate(schema, place, path));
        }
        for (index, rules) in &self.all_of {
            // An alternative adds rules for the value; the types are those of the enclosing schema.
            let merged = value::overlaid(schema, &schema["allOf"][*index]);
            rules.evaluate_at(&merged, Place { is_unchanged: false, ..place }, path, causes);
        }
        match place.value {
            Value::Object(map) => self.evaluate_fields(schema, map, place, path, causes),
            Value::Array(list) => {
                let Some(rules) = &self.items else { return };
                for (index, item) in list.iter().enumerate() {
                    let old = place.old.and_then(|old| same_item(schema, old, item));
                    let is_unchanged = place.is_unchanged || old == Some(item);
                    let place = Place { value: item, old, is_unchanged };
                    rules.evaluate_at(&schema["items"], place, &format!("{path}[{index}]"), causes);
                }
            }
            _ => {}
        }
    }

    fn evaluate_fields(
        &self,
        schema: &Value,
        map: &Map<String, Value>,
        place: Place<'_>,
        path: &str,
        causes: &mut Vec<Cause>,
    ) {
        for (name, value) in map {
            let old = place.old.and_then(|old| old.get(name));
            let below = Place { value, old, is_unchanged: place.is_unchanged || old == Some(value) };
            if let Some(rules) = self.properties.get(name) {
                rules.evaluate_at(
                    &schema["properties"][name],
                    below,
                    &super::object::join(path, name),
                    causes,
                );
            } else if let Some(rules) = &self.additional {
                let path = format!("{path}[{name}]");
                rules.evaluate_at(&schema["additionalProperties"], below, &path, causes);
            }
        }
    }
}

/// Returns the old value of a list item. Only lists with keys identify it.
fn same_item<'a>(schema: &Value, old: &'a Value, item: &Value) -> Option<&'a Value> {
    if super::text(schema, "/x-kubernetes-list-type") != "map" {
        return None;
    }
    let keys = super::strings(schema, "/x-kubernetes-list-map-keys");
    old.as_array()?.iter().find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
}

// === impl Rule ===

impl Rule {
    fn compile(rule: &Value) -> Option<Self> {
        let text = |pointer: &str| super::text(rule, pointer).trim().to_owned();
        let program = library::compile(&text("/rule")).ok()?;
        let message_expression = text("/messageExpression");
        Some(Self {
            uses_old_self: program.references().has_variable("oldSelf"),
            program,
            text: text("/rule"),
            optional_old_self: rule.get("optionalOldSelf") == Some(&Value::Bool(true)),
            message: text("/message"),
            message_expression: Some(message_expression)
                .filter(|text| !text.is_empty())
                .and_then(|text| library::compile(&text).ok()),
            reason: text("/reason"),
            field_path: text("/fieldPath"),
        })
    }

    fn evaluate(&self, schema: &Value, place: Place<'_>, path: &str) -> Option<Cause> {
        if self.uses_old_self && place.old.is_none() && !self.optional_old_self {
            return None;
        }
        let variables =
            [("self", Some(value::of(schema, place.value))), ("oldSelf", self.old_self(schema, place))];
        let type_name = Value::from(super::text(schema, "/type"));
        let outcome = library::evaluate(&self.program, &variables);
        let why = match outcome {
            Ok(cel::Value::Bool(true)) => return None,
            Ok(_) => self.message(&variables),
            Err(error) => {
                let why = match error {
                    cel::ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
                    other => other.to_string(),
                };
                let name = if self.message.is_empty() { &self.text } else { &self.message };
                let path = if path.is_empty() { ROOT } else { path };
                return Some(Cause::invalid(path, &type_name, format!("{why} evaluating rule: {name}")));
            }
        };
        // A rule that compares with the old value has already checked the change.
        if place.is_unchanged && !self.uses_old_self {
            return None;
        }
        let field = match (path, self.field_path.trim_start_matches('.')) {
            ("", "") => ROOT.to_owned(),
            (path, "") => path.to_owned(),
            ("", below) => below.to_owned(),
            (path, below) => format!("{path}.{below}"),
        };
        Some(self.cause(field, place.value, why))
    }

    fn old_self(&self, schema: &Value, place: Place<'_>) -> Option<cel::Value> {
        if !self.uses_old_self {
            return None;
        }
        let old = place.old.map(|old| value::of(schema, old));
        if self.optional_old_self {
            let old = old.map_or_else(OptionalValue::none, OptionalValue::of);
            return Some(cel::Value::Opaque(Arc::new(old)));
        }
        old
    }

    /// Returns the message for a value that violates the rule.
    fn message(&self, variables: &[(&str, Option<cel::Value>)]) -> String {
        if let Some(expression) = &self.message_expression
            && let Ok(cel::Value::String(message)) = library::evaluate(expression, variables)
            && !message.trim().is_empty()
            && !message.trim().contains('\n')
        {
            return message.trim().to_owned();
        }
        match self.message.as_str() {
            "" => format!("failed rule: {}", self.text),
            message => message.to_owned(),
        }
    }

    fn cause(&self, field: String, value: &Value, why: String) -> Cause {
        match self.reason.as_str() {
            "FieldValueForbidden" => Cause::forbidden(field, why),
            "FieldValueRequired" => Cause::required(field, &why),
            "FieldValueDuplicate" if value.is_object() || value.is_array() => {
                Cause::new("FieldValueDuplicate", field, "Duplicate value".to_owned())
            }
            "FieldValueDuplicate" => {
                Cause::new("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
            }
            _ if value.is_object() || value.is_array() => {
                Cause::new("FieldValueInvalid", field, format!("Invalid value: {why}"))
            }
            _ => Cause::invalid(field, value, why),
        }
    }
}

#[cfg(test)]
mod tests;
