//! References to objects, and the field selector of their Events.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, core::DynamicObject};

pub use crate::field_selector::{UnknownVersion, field_selector};

/// The object cannot be referred to.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ReferenceError {
    /// The object has no kind or no apiVersion.
    #[error("the object {name:?} does not say its kind and apiVersion, so no reference to it can be made")]
    NoKind {
        /// The object's name.
        name: String,
    },
}

/// Returns a reference to a typed object. Its type provides apiVersion and kind.
pub fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    ObjectReference { resource_version: object.meta().resource_version.clone(), ..object.object_ref(&()) }
}

/// Returns a reference to an object of any type. Its own fields provide apiVersion and kind.
///
/// # Errors
///
/// When one of them is missing.
pub fn reference_to_dynamic(object: &DynamicObject) -> Result<ObjectReference, ReferenceError> {
    let metadata = &object.metadata;
    let types = object.types.as_ref().filter(|types| !types.kind.is_empty() && !types.api_version.is_empty());
    let name = metadata.name.clone().unwrap_or_default();
    let types = types.ok_or(ReferenceError::NoKind { name })?;
    Ok(ObjectReference {
        api_version: Some(types.api_version.clone()),
        kind: Some(types.kind.clone()),
        namespace: metadata.namespace.clone(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        resource_version: metadata.resource_version.clone(),
        field_path: None,
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::Deployment, core::v1::Pod};
    use kube::core::{ObjectMeta, TypeMeta};

    use super::*;

    fn metadata() -> ObjectMeta {
        ObjectMeta {
            name: Some("web".to_owned()),
            namespace: Some("team-a".to_owned()),
            uid: Some("u-1".to_owned()),
            resource_version: Some("7".to_owned()),
            ..ObjectMeta::default()
        }
    }

    fn dynamic(types: Option<TypeMeta>) -> DynamicObject {
        DynamicObject { types, metadata: metadata(), data: serde_json::Value::Null }
    }

    // Conformance: A10.2
    #[test]
    fn get_reference_takes_the_version_from_the_type() {
        let pod = reference(&Pod { metadata: metadata(), ..Pod::default() });
        assert_eq!((pod.api_version.as_deref(), pod.kind.as_deref()), (Some("v1"), Some("Pod")));
        assert_eq!((pod.namespace.as_deref(), pod.name.as_deref()), (Some("team-a"), Some("web")));
        assert_eq!((pod.uid.as_deref(), pod.resource_version.as_deref()), (Some("u-1"), Some("7")));
        let deployment = reference(&Deployment { metadata: metadata(), ..Deployment::default() });
        assert_eq!(deployment.api_version.as_deref(), Some("apps/v1"));
    }

    // Conformance: A10.3
    #[test]
    fn get_reference_without_type_or_kind_is_an_error() {
        let error = reference_to_dynamic(&dynamic(None)).unwrap_err();
        assert_eq!(error, ReferenceError::NoKind { name: "web".to_owned() });
        let empty = TypeMeta { api_version: "v1".to_owned(), kind: String::new() };
        assert!(reference_to_dynamic(&dynamic(Some(empty))).is_err());
    }

    // Conformance: A10.4
    #[test]
    fn get_reference_of_an_object_that_says_its_kind() {
        let types = TypeMeta { api_version: "example.com/v1".to_owned(), kind: "Widget".to_owned() };
        let reference = reference_to_dynamic(&dynamic(Some(types))).unwrap();
        assert_eq!(reference.api_version.as_deref(), Some("example.com/v1"));
        assert_eq!((reference.kind.as_deref(), reference.uid.as_deref()), (Some("Widget"), Some("u-1")));
    }
}
