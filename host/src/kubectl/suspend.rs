//! `kubectl oarlock suspend` and `resume`: the key `suspend` of the spec, so that the API server decides who
//! may, and the state outlives the host.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{ApiServer, Place, failure};
use crate::commands::printed::print;
use crate::failure::Ended;

/// Sets whether the host calls a plugin.
pub(super) async fn set(server: &ApiServer, place: &Place, plugin: &str, is_suspended: bool) -> Ended {
    let name = place.object_name(plugin)?;
    let patch = Patch::Merge(json!({"spec": {"suspend": is_suspended}}));
    let params = PatchParams { field_manager: Some("kubectl-oarlock".to_owned()), ..PatchParams::default() };
    server.objects(place).patch(name, &params, &patch).await.map_err(failure)?;
    let done = if is_suspended { "suspended" } else { "resumed" };
    print(&format!("{} {done}\n", place.printed(name)))
}
