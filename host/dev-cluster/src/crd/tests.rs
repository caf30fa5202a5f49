use super::*;
use crate::model::{FieldValidation, Model};
use serde_json::json;

pub(crate) fn ships() -> Value {
    json!({"metadata": {"name": "ships.sea.dev"}, "spec": {
        "group": "sea.dev", "scope": "Namespaced",
        "names": {"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
                "spec": {"type": "object", "required": ["flag"], "properties": {
                    "flag": {"type": "string", "enum": ["a", "b"], "default": "a"},
                    "crew": {"type": "integer", "minimum": 1},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                }},
                "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
            }}}}],
    }})
}

fn model() -> Model {
    let crd = ships();
    assert_eq!(validate(&crd), []);
    Model::custom(&Definition::read(&crd), "v1").unwrap()
}

fn ship(spec: Value) -> Value {
    json!({"apiVersion": "sea.dev/v1", "kind": "Ship", "metadata": {"name": "s", "namespace": "a"}, "spec": spec})
}

#[test]
fn an_object_is_pruned_defaulted_and_validated() {
    let decoded = model().decode(ship(json!({"nope": 1, "free": {"x": 1}})), FieldValidation::Warn).unwrap();
    assert_eq!(decoded.object["spec"], json!({"free": {"x": 1}, "flag": "a"}));
    assert_eq!(decoded.warnings, ["unknown field \"spec.nope\""]);
    model().validate_create(&decoded.object).unwrap();
    let strict = model().decode(ship(json!({"nope": 1})), FieldValidation::Strict).unwrap_err();
    assert_eq!(
        strict.message,
        "Ship in version \"v1\" cannot be handled as a Ship: strict decoding error: unknown field \"spec.nope\""
    );
}

#[test]
fn a_schema_violation_has_the_message_of_kube_apiserver() {
    let error =
        model().validate_create(&ship(json!({"flag": "c", "crew": 0, "tags": ["x", "x"]}))).unwrap_err();
    let mut causes: Vec<String> = error.details.unwrap().causes.iter().map(ToString::to_string).collect();
    causes.sort();
    assert_eq!(
        causes,
        [
            "spec.crew: Invalid value: 0: spec.crew in body should be greater than or equal to 1",
            "spec.flag: Unsupported value: \"c\": supported values: \"a\", \"b\"",
            "spec.tags[1]: Duplicate value: \"x\"",
        ]
    );
    let error = model().validate_create(&ship(json!({"flag": "a", "crew": "x"}))).unwrap_err();
    assert_eq!(
        error.message,
        "Ship.sea.dev \"s\" is invalid: spec.crew: Invalid value: \"string\": spec.crew in body must be of type integer: \"string\""
    );
}

#[test]
fn an_unsupported_definition_is_refused_by_name() {
    let mut crd = ships();
    crd["spec"]["conversion"] = json!({"strategy": "Webhook"});
    assert_eq!(
        validate(&crd)[0].to_string(),
        "spec.conversion.strategy: Invalid value: \"Webhook\": this API server converts between versions only with \
         strategy None"
    );
}

#[test]
fn a_version_is_a_label_of_dns_that_begins_with_a_letter() {
    let faults = |name: &str| {
        let mut crd = ships();
        crd["spec"]["versions"][0]["name"] = json!(name);
        validate(&crd).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for legal in ["v1", "v1alpha1", "v2beta3", "stable", "v2023-01-01"] {
        assert_eq!(faults(legal), [""; 0], "{legal}");
    }
    for wrong in ["2023-01-01", "V1", "v1.1", "v1-", &"v".repeat(64)] {
        let faults = faults(wrong);
        let [fault] = &*faults else { panic!("{wrong}: {faults:?}") };
        assert!(fault.starts_with("spec.versions[0].name: Invalid value: "), "{fault}");
        assert!(fault.contains("a DNS-1035 label must"), "{fault}");
    }
}

#[test]
fn an_established_definition_has_its_conditions() {
    let mut crd = ships();
    assert!(!established(&crd));
    establish(&mut crd, "2026-01-01T00:00:00Z");
    assert!(established(&crd));
    assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
    establish(&mut crd, "2027-01-01T00:00:00Z");
    assert_eq!(crd["status"]["conditions"][1]["lastTransitionTime"], "2026-01-01T00:00:00Z");
}
