//! Applies the CustomResourceDefinitions of Plugin and ClusterPlugin to the API server of `dev`.

use anyhow::{Context, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{Patch, PatchParams};
use oarlock_controller::plugin_resource::crd;

pub(super) async fn apply(administrator: &kube::Client) -> Result<()> {
    let definitions = Api::<CustomResourceDefinition>::all(administrator.clone());
    for definition in crd::definitions() {
        let name = definition.pointer("/metadata/name").and_then(|name| name.as_str()).unwrap_or_default();
        let params = PatchParams::apply("oarlock").force();
        let applied = definitions.patch(name, &params, &Patch::Apply(&definition)).await;
        applied.with_context(|| format!("the CustomResourceDefinition {name} cannot be applied"))?;
    }
    Ok(())
}
