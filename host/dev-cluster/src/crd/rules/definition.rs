//! What is wrong with the rules of a CustomResourceDefinition.

use super::super::{list, text};
use super::{library, value};
use crate::status::Cause;
use cel::common::ast::{Expr, IdedExpr};
use serde_json::{Value, json};

const REASONS: &[&str] =
    &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Checks the rules of one schema; those of the schemas in it are checked with them.
///
/// `is_correlatable` says whether a change of the object leaves it clear which old value a value at this place replaces.
pub(in crate::crd) fn check(
    schema: &Value,
    path: &str,
    is_root: bool,
    is_correlatable: bool,
    causes: &mut Vec<Cause>,
) {
    let rules = list(schema, "/x-kubernetes-validations");
    let with_metadata;
    let types = if is_root || schema.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        with_metadata = value::with_type_and_metadata(schema);
        &with_metadata
    } else {
        schema
    };
    for (index, rule) in rules.iter().enumerate() {
        let path = format!("{path}.x-kubernetes-validations[{index}]");
        let before = causes.len();
        check_texts(schema, rule, &path, causes);
        if causes.len() == before {
            check_expressions(types, rule, &path, is_correlatable, causes);
        }
    }
}

fn check_texts(schema: &Value, rule: &Value, path: &str, causes: &mut Vec<Cause>) {
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

/// Whether `.a.b['c']` leads to a field of the schema.
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

fn check_expressions(
    types: &Value,
    rule: &Value,
    path: &str,
    is_correlatable: bool,
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
                    causes.push(Cause::invalid(&field, rule, format!("compilation failed: {why}")));
                }
            }
            Err(why) => causes.push(Cause::invalid(&field, rule, format!("compilation failed: {why}"))),
        }
    }
    if uses_old_self && !is_correlatable {
        causes.push(Cause::invalid(
            format!("{path}.rule"),
            &rule["rule"],
            "oldSelf cannot be used on the uncorrelatable portion of the schema",
        ));
    }
    if !uses_old_self && rule.get("optionalOldSelf").is_some_and(|value| !value.is_null()) {
        causes.push(Cause::invalid(
            format!("{path}.optionalOldSelf"),
            &rule["optionalOldSelf"],
            "may not be set if oldSelf is not used in rule",
        ));
    }
}

/// Unknown variables, functions and fields of one expression, as far as its types are plain to see.
struct Faults<'a> {
    source: &'a str,
    program: &'a cel::Program,
    /// The variables, the innermost last, with their schemas where these are known.
    scope: Vec<(String, Option<&'a Value>)>,
    found: Vec<String>,
}

// === impl Faults ===

impl<'a> Faults<'a> {
    /// Visits an expression and returns the schema of its value, where it is known.
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
                // A qualified name of a type, such as `google.protobuf.Duration`, selects nothing.
                let of = self.visit(&select.operand)?;
                let field = value::field(of, &select.field);
                if field.is_none() && value::element(of).is_none() && value::is_struct(of) {
                    self.report(expression.id, &format!("undefined field '{}'", select.field));
                }
                field.or_else(|| value::element(of))
            }
            Expr::Call(call) => {
                let target = call.target.as_deref().and_then(|target| match &target.expr {
                    // A namespace in front of a function, such as `math.greatest`.
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
                // Over a map a comprehension goes through its keys.
                let item = range.filter(|range| text(range, "/type") == "array").and_then(value::element);
                self.scope.push((of.iter_var.clone(), item.filter(|_| of.iter_var2.is_none())));
                self.scope.extend(of.iter_var2.iter().map(|name| (name.clone(), None)));
                // `cel.bind` is a comprehension over nothing whose accumulator is the bound value.
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

    /// In the form of cel-go: the place, the line it is on, and an arrow below.
    fn report(&mut self, id: u64, why: &str) {
        let (line, column) = self.program.source_info().offset_for(id).unwrap_or((1, 1));
        let (line, column) = (line.max(1) as usize, column.max(1) as usize);
        let source_line = self.source.lines().nth(line - 1).unwrap_or_default();
        let dots = ".".repeat(column - 1);
        self.found.push(format!("ERROR: <input>:{line}:{column}: {why}\n | {source_line}\n | {dots}^"));
    }
}
