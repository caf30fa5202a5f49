//! The members of a spec that take effect at once, whether the rest of the spec can be used or not.

use serde::Deserialize;

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
}

/// Applies these members of an object. What cannot be read changes nothing.
pub(super) fn apply(definitions: &Definitions, key: &PluginKey, json: &str, host_namespace: &str) {
    let Ok(Read { spec }) = serde_json::from_str::<Read>(json) else { return };
    let Spec { service_account_name, suspend: is_suspended, suspend_writes } = spec;
    let account = key.account(&service_account_name, host_namespace);
    definitions.apply_at_once(&key.host_name(), AtOnce { account, is_suspended, suspend_writes });
}
