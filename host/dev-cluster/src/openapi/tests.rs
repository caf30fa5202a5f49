use super::*;
use crate::catalog::Catalog;
use crate::crd::tests::ships;

fn served() -> std::sync::Arc<Served> {
    let mut crd = ships();
    crd["status"] = json!({
        "acceptedNames": {"plural": "ships", "singular": "ship", "kind": "Ship", "listKind": "ShipList"},
        "conditions": [{"type": "Established", "status": "True"}, {"type": "NamesAccepted", "status": "True"}],
    });
    let catalog = Catalog::new();
    catalog.replace(&[crd]);
    catalog.served()
}

/// Collects every `$ref` in a document.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[test]
fn every_reference_names_an_existing_schema() {
    let served = served();
    for gv in served.group_versions() {
        let document = document(&gv);
        let mut found = Vec::new();
        references(&document, &mut found);
        for reference in found {
            let at = document.pointer(reference.trim_start_matches('#'));
            assert!(at.is_some_and(Value::is_object), "{reference} in {}", root(&gv));
        }
    }
}

#[test]
fn every_kind_and_nearly_every_field_has_a_description() {
    let served = served();
    for gv in served.group_versions() {
        let document = document(&gv);
        for resource in gv.resources.iter().filter(|resource| resource.custom.is_none()) {
            let schema = &document["components"]["schemas"][schemas::name_of(resource)];
            assert!(schema["description"].is_string(), "{}: {schema}", resource.kind);
            for (name, field) in schema["properties"].as_object().unwrap() {
                let is_described = field["description"].is_string() || field["$ref"].is_string();
                assert!(is_described, "{}.{name}: {field}", resource.kind);
            }
        }
    }
}

#[test]
fn a_custom_resource_has_the_schema_of_its_definition() {
    let served = served();
    let versions = served.group_versions();
    let ships = document(versions.iter().find(|gv| gv.group == "sea.dev").unwrap());
    let ship = &ships["components"]["schemas"]["dev.sea.v1.Ship"];
    assert_eq!(ship["properties"]["spec"]["properties"]["crew"]["minimum"], 1);
    assert_eq!(
        ship["x-kubernetes-group-version-kind"],
        json!([{"group": "sea.dev", "kind": "Ship", "version": "v1"}])
    );
}
