//! The members of a spec that take effect at once, whether the rest of the spec can be used or not.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::definitions::{AtOnce, Definitions, PluginKey};

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

/// Applies these members of an object. What cannot be read changes nothing.
pub(super) fn apply(definitions: &Definitions, key: &PluginKey, json: &str, host_namespace: &str) {
    let Ok(Read { spec }) = serde_json::from_str::<Read>(json) else { return };
    let Spec { service_account_name, suspend: is_suspended, suspend_writes, shadow } = spec;
    let account = key.account(&service_account_name, host_namespace);
    let at_once = AtOnce { account, is_suspended, suspend_writes, has_shadow: shadow.is_some() };
    definitions.apply_at_once(&key.host_name(), at_once);
}

/// Returns whether a spec has no shadow. One that cannot be read keeps the shadow that it had.
pub(super) fn has_no_shadow(json: &str) -> bool {
    serde_json::from_str::<Read>(json).is_ok_and(|read| read.spec.shadow.is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::conditions::tests::resolved;
    use super::super::resolve::Resolved;
    use super::*;

    #[tokio::test]
    async fn a_shadow_is_removed_at_once_and_one_that_is_added_is_fetched_first() {
        let Resolved { file, component, .. } = resolved().await.unwrap();
        let definitions = Definitions::new();
        definitions.set(file, component.clone(), Some(component));
        let key = PluginKey { namespace: None, name: "a".into() };
        let has_shadow_with = |spec: &Value| {
            let json = json!({"spec": spec}).to_string();
            apply(&definitions, &key, &json, "a");
            let has_shadow = definitions.get("a").unwrap().shadow.is_some();
            (has_shadow, has_no_shadow(&json))
        };
        let with = json!({"serviceAccountName": "a", "shadow": {"source": {"file": {"path": "next.wasm"}}}});
        assert_eq!(has_shadow_with(&with), (true, false));
        assert_eq!(has_shadow_with(&json!({"shadow": null})), (true, false), "the spec cannot be read");
        let without = json!({"serviceAccountName": "a", "source": "the rest is not looked at"});
        assert_eq!(has_shadow_with(&without), (false, true));
        assert_eq!(has_shadow_with(&with), (false, false));
    }
}
