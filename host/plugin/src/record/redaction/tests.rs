use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::json;

use super::*;
use crate::contract::{
    Content, Description, Enqueue, GroupVersionResource, Index, IndexSource, Namespaces, Read, Subscription,
};

const VALUES: [&str; 5] =
    ["correct horse battery", "hunter2-hunter2", "-----BEGIN KEY-----\nMIIEvQ==\n", "p<&>q\"r\\s", "s3cr3t!"];

fn secrets() -> GroupVersionResource {
    GroupVersionResource { group: String::new(), version: "v1".into(), plural: "secrets".into() }
}

fn sources() -> Sources {
    let subscription = |name: &str, target: GroupVersionResource| Subscription {
        name: name.into(),
        target,
        namespaces: Namespaces::All,
        label_selector: String::new(),
        conditions: vec![],
        fields: vec!["/metadata/name".into(), "/data/password".into()],
        content: Content::Full,
        resync_seconds: 0,
        enqueue: Enqueue::Nothing,
        ignore_own_writes: false,
    };
    let description = Description {
        name: "a".into(),
        version: "1".into(),
        subscriptions: vec![subscription("secrets", secrets())],
        reads: vec![Read {
            name: "all".into(),
            target: secrets(),
            namespaces: Namespaces::All,
            content: Content::Full,
            wakes: false,
        }],
        indices: vec![Index {
            name: "by-password".into(),
            lister: "all".into(),
            source: IndexSource::Pointer("/data/password".into()),
        }],
        requests: vec![],
        schedules: vec![],
        stateless: true,
    };
    Sources::of(&description, false)
}

fn call(function: &str, argument: Value, imports: Vec<(&str, Value, Value)>) -> Entry {
    let import = |(function, arguments, answer): (&str, Value, Value)| Import {
        function: function.to_owned(),
        arguments,
        answer: Some(answer),
    };
    Entry::Call(Call {
        number: 0,
        instance: 1,
        time_ms: 0,
        function: function.to_owned(),
        argument,
        imports: imports.into_iter().map(import).collect(),
        ended: Ended::Answer(Value::Null),
        lost_before: 0,
        cut: false,
    })
}

fn secret(value: &str) -> Value {
    let applied =
        json!({"data": {"password": BASE64_STANDARD.encode(value)}, "stringData": {"plain": value}});
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {
            "name": "database", "namespace": "default", "uid": "u", "resourceVersion": "7",
            "labels": {"app": "web"},
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied.to_string()},
        },
        "data": {"password": BASE64_STANDARD.encode(value), "namespace": BASE64_STANDARD.encode("default")},
    })
}

/// Every way in which a value can cross the border.
fn crossings(value: &str) -> Vec<Entry> {
    let encoded = BASE64_STANDARD.encode(value);
    let quoted = |text: &str| Value::from(text).to_string();
    let target = json!({"group": "", "version": "v1", "plural": "secrets"});
    let config_maps = json!({"group": "", "version": "v1", "plural": "configmaps"});
    let object = json!({"namespace": "default", "name": "database", "uid": "u", "resource_version": "7"});
    let patch = json!([{"op": "replace", "path": "/data/password", "value": encoded}]);
    let ok = |answer: Value| json!({ "Ok": answer });
    vec![
        call(
            "on-add",
            json!({"subscription": "secrets", "object": object, "fields": ["\"database\"", quoted(&encoded)]}),
            vec![
                (
                    "event.field",
                    json!({"which": "New", "pointer": "/data/password"}),
                    ok(quoted(&encoded).into()),
                ),
                (
                    "event.fields",
                    json!({"which": "New", "pointers": ["/data", "/metadata/name"]}),
                    ok(json!([json!({"password": encoded}).to_string(), "\"database\""])),
                ),
                ("event.json", json!({"which": "New"}), ok(secret(value).to_string().into())),
                (
                    "log.log",
                    json!({"level": "Info", "message": format!("it is {value}"), "pairs": [{"name": "b", "value": encoded}]}),
                    Value::Null,
                ),
            ],
        ),
        call(
            "reconcile",
            json!({"kind": "k", "object": {"namespace": "default", "name": "database"}}),
            vec![
                (
                    "cache.get",
                    json!({"lister": "all", "key": object, "projection": "Json"}),
                    ok(json!({"object": object, "fields": [], "json": secret(value).to_string()})),
                ),
                (
                    "cache.list",
                    json!({"lister": "all", "projection": {"Fields": ["/data/password", "/metadata/name"]}}),
                    ok(
                        json!({"rows": [{"object": object, "fields": [quoted(&encoded), "\"database\""], "json": null}], "continue_token": ""}),
                    ),
                ),
                (
                    "cache.by-index",
                    json!({"index": "by-password", "value": encoded, "projection": "Keys"}),
                    ok(json!({"rows": [], "continue_token": ""})),
                ),
                ("cache.index-values", json!({"index": "by-password"}), ok(json!([encoded]))),
                (
                    "client.get",
                    json!({"target": target, "key": object}),
                    ok(secret(value).to_string().into()),
                ),
                (
                    "client.create",
                    json!({"target": target, "namespace": "default", "json": json!({"stringData": {"password": value}}).to_string()}),
                    ok(json!({"name": "database"})),
                ),
                (
                    "client.patch",
                    json!({"target": target, "key": object, "kind": "JsonPatch", "body": patch.to_string()}),
                    ok(json!({"name": "database"})),
                ),
                (
                    "client.create",
                    json!({"target": config_maps, "namespace": "default", "json": json!({"data": {"copy": value, "nested": json!({"a": value}).to_string()}}).to_string()}),
                    json!({"Err": {"Invalid": format!("not {value}")}}),
                ),
            ],
        ),
    ]
}

fn contains_any(text: &str, value: &str) -> bool {
    let json = Value::from(value).to_string();
    let forms = [value.to_owned(), BASE64_STANDARD.encode(value), json[1..json.len() - 1].to_owned()];
    forms.iter().any(|form| text.contains(form.as_str()))
}

fn texts(entry: &Entry) -> String {
    fn collect(value: &Value, out: &mut String) {
        match value {
            Value::String(text) => {
                out.push_str(text);
                out.push('\n');
            }
            Value::Array(items) => items.iter().for_each(|it| collect(it, out)),
            Value::Object(fields) => fields.values().for_each(|it| collect(it, out)),
            _ => {}
        }
    }
    let mut out = String::new();
    collect(&serde_json::to_value(entry).unwrap(), &mut out);
    out
}

#[test]
fn no_value_of_a_secret_is_left_in_any_crossing() {
    for value in VALUES {
        let mut redaction = Redaction::new();
        for mut entry in crossings(value) {
            assert!(contains_any(&texts(&entry), value));
            redaction.redact(&mut entry, &sources());
            let after = texts(&entry);
            assert!(!contains_any(&after, value), "{value:?} is in {after}");
            assert!(after.contains("database"), "names stay: {after}");
        }
    }
}

/// Each crossing alone, before any other one has shown the value.
#[test]
fn every_source_is_recognised_by_itself() {
    let value = VALUES[1];
    for entry in crossings(value) {
        let Entry::Call(call) = &entry else { unreachable!() };
        for import in call
            .imports
            .iter()
            .filter(|it| !it.function.starts_with("log.") && it.arguments["target"]["plural"] != "configmaps")
        {
            let argument = json!({"subscription": "secrets"});
            let alone = Call { argument, imports: vec![import.clone()], ..call.clone() };
            let mut alone = Entry::Call(alone);
            Redaction::new().redact(&mut alone, &sources());
            assert!(!contains_any(&texts(&alone), value), "{}", import.function);
        }
    }
}

#[test]
fn the_same_value_has_one_pseudonym_in_all_forms() {
    let mut redaction = Redaction::new();
    let value = VALUES[1];
    let mut entries = crossings(value);
    entries.iter_mut().for_each(|entry| redaction.redact(entry, &sources()));
    let Entry::Call(first) = &entries[0] else { unreachable!() };
    let pseudonym = first.imports[3].arguments["message"].as_str().unwrap().strip_prefix("it is ").unwrap();
    assert_eq!(pseudonym.len(), value.len());
    let encoded = BASE64_STANDARD.encode(pseudonym);
    assert_eq!(first.argument["fields"][1], Value::from(Value::from(encoded.as_str()).to_string()));
    let Entry::Call(second) = &entries[1] else { unreachable!() };
    assert_eq!(second.imports[3].answer, Some(json!({ "Ok": [encoded] })));
    assert_eq!(second.imports[2].arguments["value"], encoded);
    let json = second.imports[0].answer.as_ref().unwrap()["Ok"]["json"].as_str().unwrap();
    let object: Value = serde_json::from_str(json).unwrap();
    assert_eq!(object["data"]["password"], encoded);
    let applied = &object["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"];
    let applied: Value = serde_json::from_str(applied.as_str().unwrap()).unwrap();
    assert_eq!(applied["stringData"]["plain"], pseudonym);
}

#[test]
fn a_plugin_without_secrets_is_recorded_as_it_is() {
    let description = Sources::default();
    let argument = json!({"subscription": "configmaps", "fields": ["\"/data\""]});
    let entry = call("on-add", argument, vec![("log.log", json!({"message": "hunter2"}), Value::Null)]);
    let mut after = entry.clone();
    Redaction::new().redact(&mut after, &description);
    assert_eq!(entry, after);
}

#[test]
fn a_namespace_that_is_also_a_value_stays_in_other_texts() {
    let mut redaction = Redaction::new();
    for mut entry in crossings("team-payments") {
        if let Entry::Call(call) = &mut entry {
            call.argument["object"]["namespace"] = "team-payments".into();
        }
        redaction.redact(&mut entry, &sources());
        let Entry::Call(call) = &entry else { unreachable!() };
        assert_eq!(call.argument["object"]["namespace"], "team-payments");
    }
}

#[test]
fn a_json_patch_is_redacted_however_it_is_escaped() {
    let target = json!({"group": "", "version": "v1", "plural": "secrets"});
    let encoded = BASE64_STANDARD.encode("hunter2-hunter2");
    let first = format!("\\u00{:02x}", encoded.as_bytes()[0]);
    let bodies = [
        format!(r#"[{{"op":"add","path":"/data/k","value":"{first}{}"}}]"#, &encoded[1..]),
        r#"[{"op":"add","path":"/stringData/k","value":"hunter2\u002dhunter2"}]"#.to_owned(),
        r#"[{"op":"test","path":"stringData","value":"hunter2-hunter2"}]"#.to_owned(),
        r#"[{"op":"test","path":"","value":{"stringData":{"k":"\u0068unter2-hunter2"}}}]"#.to_owned(),
        r#"["hunter2-hunter2"]"#.to_owned(),
    ];
    for body in bodies {
        let arguments = json!({"target": target, "kind": "JsonPatch", "body": body});
        let message = json!({"message": format!("it is {encoded} or hunter2-hunter2")});
        let imports = vec![
            ("client.patch", arguments, json!({"Ok": {"name": "database"}})),
            ("log.log", message, Value::Null),
        ];
        let mut entry = call("reconcile", json!({}), imports);
        Redaction::new().redact(&mut entry, &sources());
        let Entry::Call(after) = &entry else { unreachable!() };
        let patch = after.imports[0].arguments["body"].as_str().unwrap();
        let patch: Value = serde_json::from_str(patch).unwrap();
        assert!(!contains_any(&patch.to_string(), "hunter2-hunter2"), "{patch}");
        assert!(!contains_any(&texts(&entry), "hunter2-hunter2"), "{body}: {}", texts(&entry));
    }
}

#[test]
fn a_value_is_known_without_the_newline_at_its_end() {
    let mut redaction = Redaction::new();
    let value = BASE64_STANDARD.encode("hunter2-hunter2\n");
    let argument = json!({"subscription": "secrets", "fields": ["\"database\"", format!("\"{value}\"")]});
    let message = json!({"message": "it is hunter2-hunter2, also aHVudGVyMi1odW50ZXIy"});
    let mut entry = call("on-add", argument, vec![("log.log", message, Value::Null)]);
    redaction.redact(&mut entry, &sources());
    assert!(!contains_any(&texts(&entry), "hunter2-hunter2"), "{}", texts(&entry));
}

#[test]
fn promise_4_a_text_that_is_no_name_of_an_object_is_not_remembered_as_one() {
    let (mut known, pseudonyms) = (Known::default(), Pseudonyms::new());
    for n_bytes in [253, 254] {
        let value = "x".repeat(n_bytes);
        known.publish_names(&json!({ "name": value }));
        known.learn(&pseudonyms, &value, Place::Plain);
        let mut text = format!("it is {value}");
        known.replace(&mut text);
        assert_eq!(text.contains(&value), n_bytes == 253, "{n_bytes}");
    }
}
