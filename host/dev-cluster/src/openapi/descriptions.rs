//! Kubernetes' descriptions of its types, from the crate k8s-openapi.

use k8s_openapi::api::{
    apps, autoscaling, batch, certificates, coordination, core, discovery, events, networking, policy, rbac,
    scheduling, storage,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::schemars::SchemaGenerator;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// By type name, such as `io.k8s.api.core.v1.Pod`.
static TYPES: LazyLock<Map<String, Value>> = LazyLock::new(generate);

/// Returns k8s-openapi's schema of a type.
pub(super) fn of(name: &str) -> Option<&'static Value> {
    TYPES.get(name)
}

/// The schemas of all types that served kinds use.
fn generate() -> Map<String, Value> {
    let mut generator: SchemaGenerator = SchemaSettings::openapi3().into();
    macro_rules! kinds {
        ($($kind:ty),* $(,)?) => { $( generator.subschema_for::<$kind>(); )* };
    }
    kinds!(
        core::v1::ConfigMap,
        core::v1::Endpoints,
        core::v1::Event,
        core::v1::LimitRange,
        core::v1::Namespace,
        core::v1::Node,
        core::v1::PersistentVolume,
        core::v1::PersistentVolumeClaim,
        core::v1::Pod,
        core::v1::PodTemplate,
        core::v1::ReplicationController,
        core::v1::ResourceQuota,
        core::v1::Secret,
        core::v1::Service,
        core::v1::ServiceAccount,
        apps::v1::ControllerRevision,
        apps::v1::DaemonSet,
        apps::v1::Deployment,
        apps::v1::ReplicaSet,
        apps::v1::StatefulSet,
        autoscaling::v2::HorizontalPodAutoscaler,
        batch::v1::CronJob,
        batch::v1::Job,
        certificates::v1::CertificateSigningRequest,
        coordination::v1::Lease,
        discovery::v1::EndpointSlice,
        events::v1::Event,
        networking::v1::Ingress,
        networking::v1::IngressClass,
        networking::v1::NetworkPolicy,
        policy::v1::PodDisruptionBudget,
        rbac::v1::ClusterRole,
        rbac::v1::ClusterRoleBinding,
        rbac::v1::Role,
        rbac::v1::RoleBinding,
        scheduling::v1::PriorityClass,
        storage::v1::StorageClass,
        apiextensions::v1::CustomResourceDefinition,
        k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta,
    );
    generator.take_definitions(true)
}
