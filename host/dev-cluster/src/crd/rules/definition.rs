//! Validates the rules of a CustomResourceDefinition.

use super::super::{list, text};
use super::{library, value};
use crate::status::Cause;
use cel::common::ast::{Expr, IdedExpr};
use serde_json::{Value, json};

const REASONS: &[&str] =
    &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Checks the fields of a schema's rules, without their expressions.
pub(in crate::crd) fn check_texts(schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    for (index, rule) in list(schema, "/x-kubernetes-validations").iter().enumerate() {
        check_text(schema, rule, &format!("{path}.x-kubernetes-validations[{index}]"), causes);
    }
}

/// Compiles the rules of one schema, and checks their variables, functions and fields. `unordered` is the
/// enclosing list whose items have no old values, if any.
pub(in crate::crd) fn check_expressions(
    schema: &Value,
    path: &str,
    is_root: bool,
    unordered: Option<&str>,
    causes: &mut Vec<Cause>,
) {
    let with_metadata;
    let types = if is_root || schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        with_metadata = value::with_type_and_metadata(schema);
        &with_metadata
    } else {
        schema
    };
    for (index, rule) in list(schema, "/x-kubernetes-validations").iter().enumerate() {
        let path = format!("{path}.x-kubernetes-validations[{index}]");
        check_expression(types, rule, &path, unordered, causes);
    }
}

fn check_text(schema: &Value, rule: &Value, path: &str, causes: &mut Vec<Cause>) {
    let sent = |name: &str| text(rule, &format!("/{name}"));
    let has_lines = |name: &str| sent(name).trim().contains('\n');
    let at = |name: &str| format!("{path}.{name}");
    let mut blank = |name: &str, cause: Cause| {
        if !sent(name).is_empty() && sent(name).trim().is_empty() {
            causes.push(cause);
        }
    };
    let why = "must be non-empty if specified";
    blank("message", Cause::invalid(at("message"), &json!(sent("message")), why));
    blank("messageExpression", Cause::required(at("messageExpression"), &format!("messageExpression {why}")));
    blank("fieldPath", Cause::invalid(at("fieldPath"), &json!(sent("fieldPath")), why));
    if sent("rule").trim().is_empty() {
        causes.push(Cause::required(at("rule"), "rule is not specified"));
    } else if has_lines("message") {
        causes.push(Cause::invalid(at("message"), &json!(sent("message")), "must not contain line breaks"));
    } else if has_lines("rule") && sent("message").trim().is_empty() {
        causes.push(Cause::required(at("message"), "message must be specified if rule contains line breaks"));
    }
    if !sent("reason").is_empty() && !REASONS.contains(&sent("reason")) {
        let supported: Vec<String> = REASONS.iter().map(|reason| format!("{reason:?}")).collect();
        causes.push(Cause::new(
            "FieldValueNotSupported",
            at("reason"),
            format!("Unsupported value: {:?}: supported values: {}", sent("reason"), supported.join(", ")),
        ));
    }
    if !sent("fieldPath").trim().is_empty() && !is_path(schema, sent("fieldPath")) {
        causes.push(Cause::invalid(at("fieldPath"), &json!(sent("fieldPath")), "must be a valid path"));
    }
}

/// Returns whether `.a.b['c']` leads to a field of the schema.
fn is_path(schema: &Value, path: &str) -> bool {
    let mut at = schema;
    let mut rest = path;
    while !rest.is_empty() {
        let (name, after) = if let Some(quoted) = rest.strip_prefix("['") {
            match quoted.split_once("']") {
                Some(found) => found,
                None => return false,
            }
        } else if let Some(named) = rest.strip_prefix('.') {
            named.split_at(named.find(['.', '[']).unwrap_or(named.len()))
        } else {
            return false;
        };
        let property = at.get("properties").and_then(|properties| properties.get(name));
        match property.or_else(|| at.get("additionalProperties").filter(|of| of.is_object())) {
            Some(below) => at = below,
            None => return false,
        }
        rest = after;
    }
    true
}

fn check_expression(
    types: &Value,
    rule: &Value,
    path: &str,
    unordered: Option<&str>,
    causes: &mut Vec<Cause>,
) {
    let mut uses_old_self = false;
    for name in ["rule", "messageExpression"] {
        let source = text(rule, &format!("/{name}")).trim();
        if source.is_empty() {
            continue;
        }
        let field = format!("{path}.{name}");
        match library::compile(source) {
            Ok(program) => {
                uses_old_self |= name == "rule" && program.references().has_variable("oldSelf");
                let mut faults = Faults { source, program: &program, scope: Vec::new(), found: Vec::new() };
                let optional_old_self = rule.get("optionalOldSelf") == Some(&Value::Bool(true));
                faults.scope.push(("self".into(), Some(types)));
                faults.scope.push(("oldSelf".into(), Some(types).filter(|_| !optional_old_self)));
                faults.visit(program.expression());
                for why in faults.found {
                    causes.push(invalid(&field, rule, &why));
                }
            }
            Err(why) => causes.push(invalid(&field, rule, &why)),
        }
    }
    if let Some(unordered) = unordered.filter(|_| uses_old_self) {
        let why =
            format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {unordered}");
        causes.push(Cause::invalid(format!("{path}.rule"), &rule["rule"], why));
    }
    if !uses_old_self && rule.get("optionalOldSelf").is_some_and(|value| !value.is_null()) {
        causes.push(Cause::invalid(
            format!("{path}.optionalOldSelf"),
            &rule["optionalOldSelf"],
            "may not be set if oldSelf is not used in rule",
        ));
    }
}

/// kube-apiserver prints the rule as a Go struct.
fn invalid(field: &str, rule: &Value, why: &str) -> Cause {
    let text = |name: &str| rule[name].as_str().unwrap_or_default();
    let shown = json!({
        "Rule": text("rule"), "Message": text("message"), "MessageExpression": text("messageExpression"),
        "Reason": rule["reason"], "FieldPath": text("fieldPath"), "OptionalOldSelf": rule["optionalOldSelf"],
    });
    let shown = shown.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
    Cause::new("FieldValueInvalid", field, format!("Invalid value: {shown}: compilation failed: {why}"))
}

/// The unknown variables, functions and fields of one expression, where its types are known.
struct Faults<'a> {
    source: &'a str,
    program: &'a cel::Program,
    /// The variables with their schemas, if known; the innermost is last.
    scope: Vec<(String, Option<&'a Value>)>,
    found: Vec<String>,
}

// === impl Faults ===

impl<'a> Faults<'a> {
    /// Visits an expression, and returns the schema of its value if it is known.
    fn visit(&mut self, expression: &IdedExpr) -> Option<&'a Value> {
        match &expression.expr {
            Expr::Ident(name) => {
                let known =
                    self.scope.iter().rev().find(|(known, _)| known == name).map(|(_, schema)| *schema);
                if known.is_none() && !library::is_type(name) && !name.starts_with(['@', '#']) {
                    self.report(
                        expression.id,
                        &format!("undeclared reference to '{name}' (in container '')"),
                    );
                }
                known.flatten()
            }
            Expr::Select(select) => {
                // A qualified type name, such as `google.protobuf.Duration`, selects no field.
                let of = self.visit(&select.operand)?;
                let field = value::field(of, &select.field);
                if field.is_none() && value::element(of).is_none() && value::is_struct(of) {
                    self.report(expression.id, &format!("undefined field '{}'", select.field));
                }
                field.or_else(|| value::element(of))
            }
            Expr::Call(call) => {
                let target = call.target.as_deref().and_then(|target| match &target.expr {
                    // The namespace of a function, such as `math.greatest`.
                    Expr::Ident(name) if library::is_namespace(name) => None,
                    _ => self.visit(target),
                });
                let mut arguments = call.args.iter();
                let first = arguments.next().and_then(|first| self.visit(first));
                for argument in arguments {
                    self.visit(argument);
                }
                if !library::has_function(&call.func_name) {
                    let why = format!("undeclared reference to '{}' (in container '')", call.func_name);
                    self.report(expression.id, &why);
                }
                match call.func_name.as_str() {
                    "_[_]" => first.and_then(value::element),
                    "filter" => target,
                    _ => None,
                }
            }
            Expr::Comprehension(of) => {
                let range = self.visit(&of.iter_range);
                self.visit(&of.accu_init);
                let depth = self.scope.len();
                // A comprehension over a map iterates over its keys.
                let item = range.filter(|range| text(range, "/type") == "array").and_then(value::element);
                self.scope.push((of.iter_var.clone(), item.filter(|_| of.iter_var2.is_none())));
                self.scope.extend(of.iter_var2.iter().map(|name| (name.clone(), None)));
                // `cel.bind` is a comprehension over an empty list, whose accumulator is the bound value.
                self.scope.push((of.accu_var.clone(), None));
                self.visit(&of.loop_cond);
                self.visit(&of.loop_step);
                self.visit(&of.result);
                self.scope.truncate(depth);
                None
            }
            Expr::List(list) => {
                for element in &list.elements {
                    self.visit(element);
                }
                None
            }
            Expr::Map(map) => {
                for entry in &map.entries {
                    if let cel::common::ast::EntryExpr::MapEntry(entry) = &entry.expr {
                        self.visit(&entry.key);
                        self.visit(&entry.value);
                    }
                }
                None
            }
            Expr::Struct(_) | Expr::Literal(_) | Expr::Unspecified => None,
        }
    }

    /// Reports an error as cel-go does: position, source line, and an arrow below it.
    fn report(&mut self, id: u64, why: &str) {
        let (offset, _) = self.program.source_info().offset_for(id).unwrap_or_default();
        let before = self.source.get(..offset as usize).unwrap_or_default();
        let line = before.matches('\n').count();
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count());
        let source_line = self.source.lines().nth(line).unwrap_or_default();
        let dots = ".".repeat(column);
        let (line, column) = (line + 1, column + 1);
        self.found.push(format!("ERROR: <input>:{line}:{column}: {why}\n | {source_line}\n | {dots}^"));
    }
}
