//! The members of a spec that take effect at once, whether the rest of the spec can be used or not.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::definitions::{AtOnce, PluginKey};

#[derive(Deserialize)]
struct Read {
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    service_account_name: String,
    #[serde(default)]
    suspend: bool,
    #[serde(default)]
    suspend_writes: bool,
    #[serde(default)]
    shadow: Option<IgnoredAny>,
}

/// Returns these members of an object, unless they cannot be read: then they are as before.
pub(super) fn read(key: &PluginKey, json: &str, host_namespace: &str) -> Option<AtOnce> {
    let Read { spec } = serde_json::from_str(json).ok()?;
    let Spec { service_account_name, suspend: is_suspended, suspend_writes, shadow } = spec;
    let account = key.account(&service_account_name, host_namespace);
    Some(AtOnce { account, is_suspended, suspend_writes, has_shadow: shadow.is_some() })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::conditions::tests::resolved;
    use super::super::definitions::Definitions;
    use super::super::resolve::Resolved;
    use super::*;

    #[tokio::test]
    async fn a_shadow_is_removed_at_once_and_one_that_is_added_is_fetched_first() {
        let Resolved { file, component, .. } = resolved().await.unwrap();
        let definitions = Definitions::new();
        definitions.set(file, component.clone(), Some(component));
        let key = PluginKey { namespace: None, name: "a".into() };
        let has_shadow_with = |spec: &Value| {
            if let Some(at_once) = read(&key, &json!({"spec": spec}).to_string(), "a") {
                definitions.apply_at_once("a", at_once);
            }
            definitions.get("a").unwrap().shadow.is_some()
        };
        let with = json!({"serviceAccountName": "a", "shadow": {"source": {"file": {"path": "next.wasm"}}}});
        assert!(has_shadow_with(&with));
        assert!(has_shadow_with(&json!({"shadow": null})), "the spec cannot be read");
        let without = json!({"serviceAccountName": "a", "source": "the rest is not looked at"});
        assert!(!has_shadow_with(&without));
        assert!(!has_shadow_with(&with));
    }
}
