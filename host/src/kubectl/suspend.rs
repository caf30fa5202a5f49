//! `kubectl oarlock suspend` and `resume`: the key `suspend` of the spec, so that the API server decides who
//! may, and the state outlives the host.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{ApiServer, failure, objects};
use crate::args::SuspendChoice;
use crate::commands::printed::print_answer;
use crate::failure::Ended;

/// Sets whether the host calls a plugin. The answer is the object, as `kubectl patch` prints it.
pub(super) async fn set(server: &ApiServer, choice: SuspendChoice, is_suspended: bool) -> Ended {
    let SuspendChoice { plugin, output } = choice;
    let place = server.place(false, plugin.cluster);
    let name = place.object_name(&plugin.plugin)?;
    let patch = Patch::Merge(json!({"spec": {"suspend": is_suspended}}));
    let params = PatchParams { field_manager: Some("kubectl-oarlock".to_owned()), ..PatchParams::default() };
    let object = server.objects(&place).patch(name, &params, &patch).await.map_err(failure)?;
    let done = if is_suspended { "suspended" } else { "resumed" };
    print_answer(output, &objects::json_of(object, &place)?, || format!("{} {done}\n", place.printed(name)))
}
