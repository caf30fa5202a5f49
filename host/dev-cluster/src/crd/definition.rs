//! Validates CustomResourceDefinitions. Features that this server does not support are refused here by name.

use super::{list, rules, text};
use crate::status::Cause;
use serde_json::{Value, json};

const DNS1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
    character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
    '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Returns the errors of a definition.
pub(crate) fn validate(crd: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let name = text(crd, "/metadata/name");
    let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
    if name != format!("{plural}.{group}") {
        causes.push(Cause::invalid(
            "metadata.name",
            &json!(name),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    let required = |pointer: &str, field: &str, causes: &mut Vec<Cause>| {
        if text(crd, pointer).is_empty() {
            causes.push(Cause::required(field, ""));
        }
    };
    required("/spec/group", "spec.group", &mut causes);
    match text(crd, "/spec/scope") {
        "" => causes.push(Cause::required("spec.scope", "")),
        "Cluster" | "Namespaced" => {}
        other => causes.push(Cause::new(
            "FieldValueNotSupported",
            "spec.scope",
            format!("Unsupported value: {other:?}: supported values: \"Cluster\", \"Namespaced\""),
        )),
    }
    let versions = list(crd, "/spec/versions");
    let n_stored = versions.iter().filter(|v| v.get("storage") == Some(&json!(true))).count();
    if n_stored != 1 {
        let value = crd.pointer("/spec/versions").unwrap_or(&Value::Null);
        causes.push(Cause::invalid(
            "spec.versions",
            value,
            "must have exactly one version marked as storage version",
        ));
    }
    for (index, version) in versions.iter().enumerate() {
        causes.extend(of_version(version, index, versions.len() == 1));
    }
    for field in ["plural", "singular", "kind", "listKind"] {
        required(&format!("/spec/names/{field}"), &format!("spec.names.{field}"), &mut causes);
    }
    match text(crd, "/spec/conversion/strategy") {
        "" | "None" => {}
        other => causes.push(Cause::invalid(
            "spec.conversion.strategy",
            &json!(other),
            "this API server converts between versions only with strategy None",
        )),
    }
    if n_stored != 1 {
        causes.push(Cause::invalid(
            "status.storedVersions",
            &Value::Null,
            "must have at least one stored version",
        ));
    }
    causes
}

fn is_dns1035_label(text: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
    text.len() <= 63
        && text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.bytes().all(is_inner)
        && !text.ends_with('-')
}

fn of_version(version: &Value, index: usize, only: bool) -> Vec<Cause> {
    let path = format!("spec.versions[{index}]");
    let mut causes = Vec::new();
    let name = text(version, "/name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    } else if !is_dns1035_label(name) {
        causes.push(Cause::invalid(format!("{path}.name"), &json!(name), DNS1035));
    }
    if let Some(scale) = version.pointer("/subresources/scale") {
        // With one version, kube-apiserver reports the place of v1beta1 for the subresources.
        let path =
            if only { "spec.subresources.scale".to_owned() } else { format!("{path}.subresources.scale") };
        causes.extend(scale_paths(scale, &path));
    }
    match version.pointer("/schema/openAPIV3Schema") {
        None => causes.push(Cause::required(format!("{path}.schema.openAPIV3Schema"), "")),
        Some(schema) => {
            // With one version, kube-apiserver reports the place of v1beta1 for the schema.
            let path = if only {
                "spec.validation.openAPIV3Schema".to_owned()
            } else {
                format!("{path}.schema.openAPIV3Schema")
            };
            if text(schema, "/type") != "object" {
                causes.push(Cause::invalid(
                    format!("{path}.type"),
                    &json!(text(schema, "/type")),
                    "must be object at the root",
                ));
            } else {
                let mut found = Found::default();
                structural(schema, &path, Enclosing { is_root: true, unordered: None }, &mut found);
                causes.extend(found.schema);
                causes.extend(found.rules);
            }
        }
    }
    causes
}

/// Checks the paths of the replicas and the selector.
fn scale_paths(scale: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (field, below, required) in [
        ("specReplicasPath", ".spec", true),
        ("statusReplicasPath", ".status", true),
        ("labelSelectorPath", "either .spec or .status", false),
    ] {
        let given = text(scale, &format!("/{field}"));
        let at = format!("{path}.{field}");
        if given.is_empty() {
            if required {
                causes.push(Cause::required(at, ""));
            }
        } else if !given.starts_with('.') {
            causes.push(Cause::invalid(at, &json!(given), "must be a simple json path starting with ."));
        } else if !below.split(' ').any(|root| given.starts_with(&format!("{root}."))) {
            let why = format!("should be a json path under {below}");
            causes.push(Cause::invalid(at, &json!(given), why));
        }
    }
    causes
}

/// The position of a schema within a definition.
#[derive(Clone, Copy)]
struct Enclosing<'a> {
    is_root: bool,
    /// The enclosing list whose items have no old values, if any.
    unordered: Option<&'a str>,
}

/// The errors of a schema and of its rules.
#[derive(Default)]
struct Found {
    schema: Vec<Cause>,
    rules: Vec<Cause>,
}

/// Checks that every place has a type, as pruning and ownership need, and checks the rules. Rules are
/// compiled only if the schema is valid.
fn structural(schema: &Value, path: &str, around: Enclosing<'_>, found: &mut Found) {
    let n_before = found.schema.len();
    let root = around.is_root;
    let inner = Enclosing { is_root: false, ..around };
    shape(schema, path, root, &mut found.schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        // The schema of metadata is ignored: metadata has a fixed type.
        if !(root && name == "metadata") {
            structural(property, &format!("{path}.properties[{name}]"), inner, found);
        }
    }
    if let Some(additional) = schema.get("additionalProperties").filter(|value| value.is_object()) {
        structural(additional, &format!("{path}.additionalProperties"), inner, found);
    }
    if let Some(items) = schema.get("items").filter(|value| value.is_object()) {
        let unordered = inner.unordered.or(if rules::has_identity(schema) { None } else { Some(path) });
        structural(items, &format!("{path}.items"), Enclosing { unordered, ..inner }, found);
    }
    rules::check_texts(schema, path, &mut found.schema);
    if found.schema.len() == n_before {
        rules::check_expressions(schema, path, root, around.unordered, &mut found.rules);
    }
}

/// Checks one schema, without the nested ones.
fn shape(schema: &Value, path: &str, root: bool, causes: &mut Vec<Cause>) {
    let flag = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    if schema.get("$ref").is_some_and(|value| value != "") {
        causes.push(Cause::forbidden(format!("{path}.$ref"), "$ref is not supported"));
    }
    let of_type = text(schema, "/type");
    let free = flag("x-kubernetes-int-or-string") || flag("x-kubernetes-preserve-unknown-fields");
    if of_type.is_empty() && !free {
        let why = if root {
            "must not be empty at the root"
        } else {
            "must not be empty for specified object fields"
        };
        causes.push(Cause::required(format!("{path}.type"), why));
    }
    if of_type == "array" && schema.get("items").is_none() {
        causes.push(Cause::required(format!("{path}.items"), "must be specified"));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && let Err(error) = regex::Regex::new(pattern)
    {
        causes.push(Cause::invalid(
            format!("{path}.pattern"),
            &json!(pattern),
            format!("must be a valid regular expression, but isn't: {error}"),
        ));
    }
    if let Some(default) = schema.get("default") {
        causes.extend(super::object::validate_default(schema, default, path));
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    // `true` is what a schema without this member means.
    if schema.get("additionalProperties").is_some_and(|it| *it != true)
        && properties.is_some_and(|properties| !properties.is_empty())
    {
        causes.push(Cause::forbidden(
            format!("{path}.additionalProperties"),
            "additionalProperties and properties are mutual exclusive",
        ));
    }
}
