use super::*;
use crate::crd::tests::ships;
use crate::crd::{Definition, validate};
use crate::model::Model;
use serde_json::json;

/// A definition whose spec has these properties and rules.
fn definition(properties: Value, rules: Value) -> Value {
    let mut crd = ships();
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "object", "properties": properties, "x-kubernetes-validations": rules});
    crd
}

fn ship(spec: Value) -> Value {
    json!({"apiVersion": "sea.dev/v1", "kind": "Ship", "metadata": {"name": "argo", "namespace": "a", "uid": "u"}, "spec": spec})
}

fn model(properties: Value, rules: Value) -> Model {
    let crd = definition(properties, rules);
    assert_eq!(validate(&crd), []);
    Model::custom(&Definition::read(&crd), "v1").unwrap()
}

fn faults_of(result: Result<(), crate::status::StatusError>) -> Vec<String> {
    let causes = result.err().and_then(|error| error.details).map(|details| details.causes);
    causes.unwrap_or_default().iter().map(ToString::to_string).collect()
}

fn on_create(properties: Value, rules: Value, spec: Value) -> Vec<String> {
    faults_of(model(properties, rules).validate_create(&ship(spec)))
}

fn on_update(properties: Value, rules: Value, old: Value, new: Value) -> Vec<String> {
    faults_of(model(properties, rules).validate_update(&ship(new), &ship(old)))
}

fn on_definition(properties: Value, rules: Value) -> Vec<String> {
    validate(&definition(properties, rules)).iter().map(ToString::to_string).collect()
}

fn sails() -> Value {
    json!({"min": {"type": "integer"}, "max": {"type": "integer"}, "name": {"type": "string"}})
}

#[test]
fn an_object_that_violates_a_rule_is_refused_with_the_rules_message() {
    let rules = json!([{"rule": "self.min <= self.max", "message": "min must not be above max"}]);
    assert_eq!(on_create(sails(), rules.clone(), json!({"min": 1, "max": 2})), Vec::<String>::new());
    assert_eq!(
        on_create(sails(), rules, json!({"min": 3, "max": 2})),
        ["spec: Invalid value: min must not be above max"]
    );
    assert_eq!(
        on_create(sails(), json!([{"rule": "self.min <= self.max"}]), json!({"min": 3, "max": 2})),
        ["spec: Invalid value: failed rule: self.min <= self.max"]
    );
    let rules = json!([{
        "rule": "self.min <= self.max", "messageExpression": "'%d is above %d'.format([self.min, self.max])",
        "reason": "FieldValueForbidden", "fieldPath": ".min",
    }]);
    assert_eq!(on_create(sails(), rules, json!({"min": 3, "max": 2})), ["spec.min: Forbidden: 3 is above 2"]);
}

#[test]
fn a_rule_over_a_missing_field_is_an_error() {
    let rules = json!([{"rule": "self.min <= self.max"}]);
    assert_eq!(
        on_create(sails(), rules, json!({"min": 3})),
        ["spec: Invalid value: \"object\": no such key: max evaluating rule: self.min <= self.max"]
    );
    let rules = json!([{"rule": "!has(self.max) || self.min <= self.max"}]);
    assert_eq!(on_create(sails(), rules, json!({"min": 3})), Vec::<String>::new());
}

#[test]
fn rules_apply_at_every_depth() {
    let properties = json!({
        "crew": {"type": "array", "items": {"type": "object", "properties": {"age": {
            "type": "integer", "x-kubernetes-validations": [{"rule": "self >= 18", "message": "too young"}],
        }}}},
        "flags": {"type": "object", "additionalProperties": {
            "type": "string", "x-kubernetes-validations": [{"rule": "self.startsWith('f')"}],
        }},
    });
    assert_eq!(
        on_create(properties, json!([]), json!({"crew": [{"age": 20}, {"age": 3}], "flags": {"a": "x"}})),
        [
            "spec.crew[1].age: Invalid value: 3: too young",
            "spec.flags[a]: Invalid value: \"x\": failed rule: self.startsWith('f')",
        ]
    );
}

#[test]
fn a_transition_rule_applies_only_to_changes() {
    let rules = json!([{"rule": "self.name == oldSelf.name", "message": "name is immutable"}]);
    assert_eq!(on_create(sails(), rules.clone(), json!({"name": "a"})), Vec::<String>::new());
    assert_eq!(
        on_update(sails(), rules.clone(), json!({"name": "a"}), json!({"name": "b"})),
        ["spec: Invalid value: name is immutable"]
    );
    assert_eq!(on_update(sails(), rules, json!({"name": "a"}), json!({"name": "a"})), Vec::<String>::new());
    let optional = json!([{"rule": "oldSelf.hasValue() || self.name == 'first'", "optionalOldSelf": true}]);
    assert_eq!(
        on_create(sails(), optional.clone(), json!({"name": "a"})),
        ["spec: Invalid value: failed rule: oldSelf.hasValue() || self.name == 'first'"]
    );
    assert_eq!(
        on_update(sails(), optional, json!({"name": "a"}), json!({"name": "b"})),
        Vec::<String>::new()
    );
}

#[test]
fn items_of_a_list_with_keys_are_compared_with_their_old_value() {
    let item = json!({
        "type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "size": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.size >= oldSelf.size", "message": "shrinks"}],
    });
    let parts = json!({"parts": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"], "items": item,
    }});
    let old = json!({"parts": [{"id": "a", "size": 1}, {"id": "b", "size": 5}]});
    let new = json!({"parts": [{"id": "b", "size": 4}, {"id": "a", "size": 1}, {"id": "c", "size": 0}]});
    assert_eq!(on_update(parts, json!([]), old, new), ["spec.parts[0]: Invalid value: shrinks"]);
}

#[test]
fn an_unchanged_value_may_still_violate_a_rule() {
    let rule = json!([{"rule": "self > 10"}]);
    let properties = json!({
        "old": {"type": "integer", "x-kubernetes-validations": rule}, "new": {"type": "integer", "x-kubernetes-validations": rule},
    });
    assert_eq!(
        on_update(properties, json!([]), json!({"old": 1, "new": 20}), json!({"old": 1, "new": 2})),
        ["spec.new: Invalid value: 2: failed rule: self > 10"]
    );
}

#[test]
fn rules_are_evaluated_only_for_objects_that_match_their_schema() {
    let faults = on_create(sails(), json!([{"rule": "self.min > 3"}]), json!({"min": "x"}));
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(
        faults[1].starts_with("<nil>: Invalid value: null: some validation rules were not checked"),
        "{faults:?}"
    );
}

#[test]
fn a_definition_with_invalid_rules_is_refused() {
    let at = "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0]";
    let faults = |rule: Value| on_definition(sails(), json!([rule]));
    let first = |rule: Value| faults(rule).into_iter().next().unwrap_or_default();
    assert!(first(json!({"rule": "self.min <"})).starts_with(&format!("{at}.rule: Invalid value: ")));
    assert!(first(json!({"rule": "self.minimum > 1"})).contains("undefined field 'minimum'"));
    assert!(first(json!({"rule": "shelf.min > 1"})).contains("undeclared reference to 'shelf'"));
    assert!(first(json!({"rule": "self.name.semver()"})).contains("undeclared reference to 'semver'"));
    assert_eq!(first(json!({"rule": " "})), format!("{at}.rule: Required value: rule is not specified"));
    assert_eq!(
        first(json!({"rule": "true", "reason": "Because"})),
        format!(
            "{at}.reason: Unsupported value: \"Because\": supported values: \"FieldValueDuplicate\", \
             \"FieldValueForbidden\", \"FieldValueInvalid\", \"FieldValueRequired\""
        )
    );
    assert_eq!(
        first(json!({"rule": "true", "fieldPath": ".nope"})),
        format!("{at}.fieldPath: Invalid value: \".nope\": must be a valid path")
    );
    assert_eq!(
        first(json!({"rule": "true", "optionalOldSelf": true})),
        format!("{at}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule")
    );
    let list = json!({"parts": {"type": "array", "items": {
        "type": "integer", "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
    }}});
    assert!(
        on_definition(list, json!([]))[0].contains("oldSelf cannot be used on the uncorrelatable portion")
    );
}

#[test]
fn rules_can_call_the_functions_of_kubernetes() {
    let properties = json!({
        "s": {"type": "string"}, "l": {"type": "array", "items": {"type": "integer"}}, "t": {"type": "string", "format": "date-time"},
        "d": {"type": "string", "format": "duration"}, "q": {"x-kubernetes-int-or-string": true}, "x-y": {"type": "string"},
        "m": {"type": "object", "additionalProperties": {"type": "string"}}, "n": {"type": "number"},
    });
    let spec = json!({
        "s": "abc-123", "l": [1, 2, 3], "t": "2026-01-02T03:04:05Z", "d": "90m", "q": "100Mi", "x-y": "z", "m": {"k-1": "v"}, "n": 1,
    });
    for rule in [
        "self.s.find('[0-9]+') == '123'",
        "self.s.findAll('[a-z]') == ['a', 'b', 'c']",
        "self.s.findAll('[a-z]', 2).size() == 2",
        "self.l.isSorted() && self.l.sum() == 6 && self.l.min() == 1 && self.l.max() == 3",
        "self.l.indexOf(2) == 1 && self.l.lastIndexOf(9) == -1",
        "self.l.all(i, i > 0) && self.l.exists_one(i, i == 2) && self.l.map(i, i * 2).exists(i, i == 6)",
        "self.t.getFullYear() == 2026 && self.t < timestamp('2027-01-01T00:00:00Z')",
        "self.d == duration('1h30m')",
        "quantity(self.q).isLessThan(quantity('1Gi')) && quantity('1').add(2) == quantity('3')",
        "isQuantity('1.5Gi') && !isQuantity('x')",
        "self.x__dash__y == 'z'",
        "self.m['k-1'] == 'v' && 'k-1' in self.m",
        "self.n == 1.0",
        "url('https://a.b:80/c?d=e').getHostname() == 'a.b' && !isURL('no url')",
        "url('https://a.b:80/c?d=e').getQuery()['d'] == ['e']",
        "ip('127.0.0.1').isLoopback() && ip('::1').family() == 6 && !isIP('1.2.3')",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))",
        "self.s.upperAscii() == 'ABC-123' && self.s.split('-').size() == 2 && self.s.substring(0, 3) == 'abc'",
        "self.?absent.orValue('none') == 'none' || true",
        "type(self.l[0]) == int",
        "has(self.s) && !has(self.m.zz)",
    ] {
        let rule = rule.replace("self.?absent", "self.?s");
        let rules = json!([{"rule": rule}]);
        assert_eq!(on_create(properties.clone(), rules, spec.clone()), Vec::<String>::new(), "{rule}");
    }
}
