//! The types of `Plugin` and `ClusterPlugin`. Their comments are the descriptions in the
//! CustomResourceDefinitions.

#![expect(clippy::duplicated_attributes, reason = "each column of a printed table has the same attributes")]

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use oarlock_component_source::Source;
use oarlock_plugin::Limits;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::config::{Instances, Probation, Retry, settings};

/// The group of both kinds.
pub(crate) const GROUP: &str = "oarlock.dev";
/// The version that the host reads and writes.
pub(crate) const VERSION: &str = "v1alpha1";

/// How the host runs one plugin.
#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "oarlock.dev",
    version = "v1alpha1",
    kind = "Plugin",
    namespaced,
    status = "PluginStatus",
    schema = "disabled",
    derive = "PartialEq",
    doc = "A plugin that acts as a ServiceAccount of its namespace.",
    shortname = "opl",
    category = "oarlock",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(
        name = "Generation",
        type_ = "integer",
        json_path = ".status.generation",
        description = "The number of the version that serves, counted by the host"
    ),
    printcolumn(name = "Watches", type_ = "string", json_path = ".status.watches"),
    printcolumn(
        name = "Parked",
        type_ = "integer",
        json_path = ".status.parked",
        description = "The objects and keys that the plugin failed to handle, and that are parked"
    ),
    printcolumn(
        name = "Degraded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Degraded\")].reason",
        description = "What is wrong, such as CrashLoop; AsExpected if nothing is"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = "1"
    ),
    printcolumn(name = "Digest", type_ = "string", json_path = ".status.digest", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct PluginSpec {
    /// Where the component comes from. Exactly one member is set.
    #[schemars(extend("x-kubernetes-validations" = one_source()))]
    pub source: Source,
    /// The ServiceAccount that the plugin reads and writes as. For a Plugin it is in the namespace of the
    /// Plugin, for a ClusterPlugin in the namespace of the host.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))]
    pub service_account_name: String,
    /// What the plugin reads as its configuration.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "any_object")]
    pub config: Map<String, Value>,
    /// A key of a ConfigMap or Secret, with a YAML or JSON mapping. It is the plugin's configuration, and the
    /// members of `config` override those of it. The host reads it as the plugin's account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [{
        "rule": "has(self.configMap) != has(self.secret)",
        "message": "exactly one of configMap and secret must be set"
    }]))]
    pub config_from: Option<ConfigSource>,
    /// What the plugin may use. A limit above the host's maximum is refused.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "Limits")]
    pub limits: Map<String, Value>,
    /// `true`: the host does not call the plugin. Its notifications wait.
    #[serde(default)]
    pub suspend: bool,
    /// `true`: the plugin's writes fail with `suspended`, while it receives its notifications as usual.
    #[serde(default)]
    pub suspend_writes: bool,
    /// `true`: the plugin's writes are sent as dry runs, so that nothing is stored.
    #[serde(default)]
    pub dry_run: bool,
    /// The most instances of a stateless plugin, and so the most calls at once. Calls about one object or key
    /// never overlap. More than 1 for a plugin with state is refused.
    #[serde(default = "settings::default_concurrency")]
    #[schemars(range(min = 1, max = settings::MAX_CONCURRENCY))]
    pub concurrency: u32,
    /// The plugin's share of the CPU time for guests, compared with the weights of the other plugins. It
    /// matters only while more guests want to run than the host has workers. The default is 100, or the
    /// host's maximum if that is lower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = settings::MAX_WEIGHT))]
    pub weight: Option<u32>,
    /// When instances are dropped and replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Instances>")]
    pub instances: Option<Instances>,
    /// How long a new version is watched, and what makes the host switch back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Probation>")]
    pub probation: Option<Probation>,
    /// When calls that failed are made again. `limits.tries` says how often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Retry>", extend("x-kubernetes-validations" = [{
        "rule": "!has(self.initialDelay) || !has(self.maxDelay) || duration(self.initialDelay) <= duration(self.maxDelay)",
        "message": "maxDelay must not be less than initialDelay"
    }]))]
    pub retry: Option<Retry>,
    /// A component that runs beside the plugin on the same events, as `NAME.shadow`: with the same account,
    /// configuration and limits. Its writes are withheld, and compared with those of the plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<ShadowSpec>,
}

/// How the host runs one plugin that serves the whole cluster.
#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "oarlock.dev",
    version = "v1alpha1",
    kind = "ClusterPlugin",
    status = "PluginStatus",
    schema = "disabled",
    derive = "PartialEq",
    doc = "A plugin that acts as a ServiceAccount of the host's namespace.",
    shortname = "ocpl",
    category = "oarlock",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Version", type_ = "string", json_path = ".status.version"),
    printcolumn(
        name = "Generation",
        type_ = "integer",
        json_path = ".status.generation",
        description = "The number of the version that serves, counted by the host"
    ),
    printcolumn(name = "Watches", type_ = "string", json_path = ".status.watches"),
    printcolumn(
        name = "Parked",
        type_ = "integer",
        json_path = ".status.parked",
        description = "The objects and keys that the plugin failed to handle, and that are parked"
    ),
    printcolumn(
        name = "Degraded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Degraded\")].reason",
        description = "What is wrong, such as CrashLoop; AsExpected if nothing is"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].message",
        priority = "1"
    ),
    printcolumn(name = "Digest", type_ = "string", json_path = ".status.digest", priority = "1"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPluginSpec {
    /// The same as for a Plugin.
    #[serde(flatten)]
    pub plugin: PluginSpec,
}

/// A component that runs beside the plugin.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowSpec {
    /// Where the component comes from. Exactly one member is set. What the source refers to is read as the
    /// plugin's account.
    #[schemars(extend("x-kubernetes-validations" = one_source()))]
    pub source: Source,
}

/// Where configuration comes from: exactly one member is set.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigSource {
    /// A key of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<KeyReference>,
    /// A key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<KeyReference>,
}

/// A key of an object in the namespace of the account.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyReference {
    /// The name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key in the object's data.
    #[schemars(length(min = 1, max = 253))]
    pub key: String,
}

/// What the host knows about a plugin.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginStatus {
    /// The `metadata.generation` of the newest spec that came to serve or was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// A summary in one word: `Pending`, `Loading`, `Refused`, `Serving`, `Restarting`, `Standby` or
    /// `Suspended`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// `Fetched`, `Verified`, `Compiled`, `Authorized`, `Ready` and `Degraded`; `ShadowReady` if the spec has
    /// a shadow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// The number of the version that serves, from 1, counted by the host since it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// The version that the serving component states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The SHA-256 of the component that serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The last versions that passed their probation, the newest last; at most two. A host that keeps no
    /// version of the plugin to go back to fetches them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub good_versions: Vec<GoodVersion>,
    /// The versions that were rolled back, and are not tried, the newest last; at most eight. It is empty
    /// after a release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<Vec<RolledBackVersion>>,
    /// What the source resolved to, such as the digest of an OCI manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_source: Option<String>,
    /// The resources that the serving version watches, separated by commas.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watches: Option<String>,
    /// How many objects and keys the plugin failed to handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<i64>,
    /// The last error of a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// The subscriptions of the serving version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub subscriptions: Vec<SubscriptionSummary>,
    /// The shadow, if the spec has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<ShadowStatus>,
}

/// What the host knows about a shadow. The numbers begin at 0 with another component, with another host that
/// leads, and when the host starts.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowStatus {
    /// A summary in one word, as that of the plugin.
    pub phase: String,
    /// The SHA-256 of the component that runs as the shadow.
    // Without a digest it is null, which removes it in a merge patch. So an empty list is written, too.
    pub digest: Option<String>,
    /// How many pairs of writes, one of the plugin and one of the shadow, were compared.
    pub compared: i64,
    /// How many of these pairs were equal.
    pub equal: i64,
    /// How many of these pairs differed.
    pub different: i64,
    /// How many writes only the plugin made.
    pub only_serving: i64,
    /// How many writes only the shadow would have made.
    pub only_shadow: i64,
    /// How many writes were not compared, since too many waited for their counterpart.
    pub left_out: i64,
    /// The newest places in which writes differed, the newest first; at most four. It has no values.
    pub differences: Vec<ShadowDifference>,
}

/// A place in which a write of the plugin and one of the shadow differed.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowDifference {
    /// The verb of both writes.
    pub verb: String,
    /// The object, such as `configmaps team-a/settings`; at most 256 characters.
    pub object: String,
    /// The JSON pointer in the body, at most 256 characters; empty for the whole body.
    pub path: String,
}

/// A version that passed its probation.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GoodVersion {
    /// Identifies the component and the settings.
    pub id: String,
    /// The version that the component states.
    pub version: String,
    /// The SHA-256 of the component.
    pub digest: String,
    /// The spec, with the digest of the manifest in the reference of an `oci` source. It is left out above
    /// 64 KiB of JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub spec: Option<Map<String, Value>>,
}

/// A version that was rolled back.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RolledBackVersion {
    /// Identifies the component and the settings.
    pub id: String,
    /// The version that the component states.
    pub version: String,
    /// The SHA-256 of the component.
    pub digest: String,
    /// Why it was rolled back, at most 1024 characters.
    pub reason: String,
    /// When.
    pub time: Time,
}

/// An error and its time.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LastError {
    /// When it happened.
    pub time: Time,
    /// The error, at most 1024 characters.
    pub message: String,
}

/// The state of one subscription.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionSummary {
    /// The plugin's name for it.
    pub name: String,
    /// The resource, such as `apps/v1/deployments`.
    pub resource: String,
    /// `Syncing`, `Synced`, `Forbidden` or `Paused`.
    pub state: String,
    /// Why it is forbidden or paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Returns the rule of a source.
fn one_source() -> Value {
    json!([{
        "rule": "[has(self.oci), has(self.https), has(self.configMap), has(self.secret), has(self.file)].filter(it, it).size() == 1",
        "message": "exactly one of oci, https, configMap, secret and file must be set",
    }])
}

fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}
