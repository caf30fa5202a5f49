//! The values of a Secret that a plugin writes. The API server, or a webhook, may quote them when it refuses
//! the write, and a plugin reports the message: in its log, its status and with what is parked.
//!
//! Values of other objects are not hidden: who may read the object sees them.

use k8s_openapi::ByteString;
use serde_json::Value;

/// Values with fewer characters occur in any text.
const SHORTEST: usize = 4;

/// What stands for a value.
const HIDDEN: &str = "<hidden>";

/// Returns whether a path is that of a Secret, or of the Secrets of a namespace.
pub(super) fn is_of_secrets(path: &str) -> bool {
    path.starts_with("/api/v1/namespaces/") && path.split('/').nth(5) == Some("secrets")
}

/// Returns the message without the values of the Secret, or of the patch of one, that was sent.
pub(super) fn hidden(message: String, sent: &[u8]) -> String {
    let Ok(sent) = serde_json::from_slice(sent) else { return message };
    let mut values = Vec::new();
    match &sent {
        Value::Array(operations) => operations.iter().for_each(|it| collect(&it["value"], &mut values)),
        object => ["data", "stringData"].iter().for_each(|key| collect(&object[*key], &mut values)),
    }
    // A value may be a part of another one.
    values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
    values.iter().fold(message, |message, value| message.replace(value, HIDDEN))
}

/// Collects each text in a value: as it is, in base64, decoded, and as it is written between quotes.
fn collect(value: &Value, values: &mut Vec<String>) {
    let mut add = |text: &str| {
        if text.chars().count() < SHORTEST {
            return;
        }
        let quoted = Value::from(text).to_string();
        values.extend([quoted[1..quoted.len() - 1].to_owned(), text.to_owned()]);
    };
    match value {
        Value::String(text) => {
            add(text);
            if let Some(base64) = serde_json::json!(ByteString(text.clone().into_bytes())).as_str() {
                add(base64);
            }
            let decoded = serde_json::from_value::<ByteString>(value.clone()).ok();
            if let Some(decoded) = decoded.and_then(|it| String::from_utf8(it.0).ok()) {
                add(&decoded);
            }
        }
        Value::Array(items) => items.iter().for_each(|it| collect(it, values)),
        Value::Object(members) => members.values().for_each(|it| collect(it, values)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn after(message: &str, sent: &Value) -> String {
        hidden(message.to_owned(), sent.to_string().as_bytes())
    }

    #[test]
    fn the_values_of_a_secret_are_hidden_and_the_rest_is_not() {
        let secret = json!({
            "kind": "Secret", "metadata": {"name": "settings"}, "type": "Opaque",
            "data": {"password": "aHVudGVyMg=="}, "stringData": {"key": "line 1\nline 2", "n": "1"},
        });
        assert_eq!(
            after(r#"data.password: Invalid value: "aHVudGVyMg==": hunter2 is weak"#, &secret),
            r#"data.password: Invalid value: "<hidden>": <hidden> is weak"#
        );
        assert_eq!(
            after(r#"settings: "line 1\nline 2" is no key"#, &secret),
            r#"settings: "<hidden>" is no key"#
        );
        assert_eq!(after("Secret settings: 1 of 2 keys", &secret), "Secret settings: 1 of 2 keys");
    }

    #[test]
    fn the_values_of_a_patch_are_hidden() {
        let merge = json!({"stringData": {"password": "hunter2"}});
        assert_eq!(after("hunter2 is weak, so is aHVudGVyMg==", &merge), "<hidden> is weak, so is <hidden>");
        let json = json!([
            {"op": "add", "path": "/data", "value": {"password": "aHVudGVyMg=="}},
            {"op": "remove", "path": "/metadata/labels"},
        ]);
        assert_eq!(after("/metadata/labels: hunter2", &json), "/metadata/labels: <hidden>");
        assert_eq!(hidden("hunter2".to_owned(), b"no JSON"), "hunter2");
    }

    #[test]
    fn a_path_of_a_secret_is_known() {
        for (path, is_it) in [
            ("/api/v1/namespaces/default/secrets", true),
            ("/api/v1/namespaces/default/secrets/settings", true),
            ("/api/v1/namespaces/secrets", false),
            ("/api/v1/namespaces/secrets/configmaps/a", false),
            ("/apis/example.com/v1/namespaces/default/secrets", false),
        ] {
            assert_eq!(is_of_secrets(path), is_it, "{path}");
        }
    }
}
