//! Types that stand for a resource of Kubernetes.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use oarlock_sdk_derive::Resource;

use crate::failure::parse;
use crate::{Error, GroupVersionResource, ObjectKey, ObjectRef};

/// A type whose values are the objects of one resource.
///
/// With the feature `k8s-openapi` all top-level types of that crate are. For a custom resource it is derived;
/// `group` is empty and `kind` is the name of the struct, unless they are given:
///
/// ```
/// use oarlock_sdk::{ObjectMeta, Resource};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Resource, Serialize, Deserialize)]
/// #[resource(group = "example.com", version = "v1", plural = "teambudgets")]
/// struct TeamBudget {
///     metadata: ObjectMeta,
///     spec: Spec,
/// }
///
/// #[derive(Serialize, Deserialize)]
/// struct Spec {
///     cpu: String,
/// }
///
/// assert_eq!(TeamBudget::KIND, "TeamBudget");
/// assert_eq!(TeamBudget::gvr(), oarlock_sdk::gvr("example.com", "v1", "teambudgets"));
/// ```
pub trait Resource {
    /// The API group; empty for the core group.
    const GROUP: &'static str;
    /// The API version, such as `v1`.
    const VERSION: &'static str;
    /// The kind, such as `Deployment`.
    const KIND: &'static str;
    /// The resource's plural name, such as `deployments`.
    const PLURAL: &'static str;

    #[doc(hidden)]
    fn named(&self) -> &dyn Named;

    /// Returns the namespace and name of the object.
    #[must_use]
    fn key(&self) -> ObjectKey {
        self.named().key()
    }

    /// Returns the uid; `None` for an object that the API server does not have yet.
    #[must_use]
    fn uid(&self) -> Option<&str> {
        self.named().uid()
    }

    /// Returns the reference that makes this object the controller owner of another one; `None` for an object
    /// that the API server does not have yet.
    #[must_use]
    fn controller_reference(&self) -> Option<OwnerReference> {
        Some(OwnerReference {
            api_version: api_version::<Self>(),
            kind: Self::KIND.to_owned(),
            name: self.key().name,
            uid: self.uid()?.to_owned(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        })
    }

    /// Returns the name of the resource.
    #[must_use]
    fn gvr() -> GroupVersionResource
    where
        Self: Sized,
    {
        crate::gvr(Self::GROUP, Self::VERSION, Self::PLURAL)
    }

    /// Returns the object as JSON text, with `apiVersion` and `kind`.
    ///
    /// # Errors
    ///
    /// When the object cannot be written as JSON.
    fn to_json(&self) -> Result<String, serde_json::Error>
    where
        Self: Serialize + Sized,
    {
        serde_json::to_string(self).map(|text| with_type::<Self>(&text))
    }
}

/// A whole object, which is parsed when it is used.
#[derive(Clone, Debug)]
pub struct Object<T> {
    /// Which version of which object it is.
    pub id: ObjectRef,
    text: String,
    value: OnceCell<T>,
}

/// The metadata of an object, as far as most plugins need it. [`crate::Client::replace`] would remove what is
/// missing here; [`crate::Client::apply`] and patches do not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of Kubernetes")]
pub struct ObjectMeta {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
}

/// An owner of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[expect(missing_docs, reason = "the fields are those of Kubernetes")]
pub struct OwnerReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// The metadata of an object, in the SDK's type or another one. The derive macro names it.
#[doc(hidden)]
pub trait Named {
    fn key(&self) -> ObjectKey;
    fn uid(&self) -> Option<&str>;
    fn labels(&self) -> &BTreeMap<String, String>;
    fn annotations(&self) -> &BTreeMap<String, String>;
    fn finalizers(&self) -> &[String];
    fn is_being_deleted(&self) -> bool;
}

/// Returns the text of an object with `apiVersion` and `kind`.
pub(crate) fn with_type<T: Resource>(text: &str) -> String {
    let (api_version, kind) = (api_version::<T>(), T::KIND);
    text.replacen('{', &format!("{{\"apiVersion\":\"{api_version}\",\"kind\":\"{kind}\","), 1)
}

fn api_version<T: Resource + ?Sized>() -> String {
    if T::GROUP.is_empty() { T::VERSION.to_owned() } else { format!("{}/{}", T::GROUP, T::VERSION) }
}

// === impl Object ===

impl<T> Object<T> {
    pub(crate) fn new(id: ObjectRef, text: String) -> Self {
        Self { id, text, value: OnceCell::new() }
    }

    /// Returns the JSON text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl<T: DeserializeOwned> Object<T> {
    /// Returns the value, which the first call parses.
    ///
    /// # Errors
    ///
    /// `invalid` for an object of another form.
    pub fn get(&self) -> Result<&T, Error> {
        if let Some(value) = self.value.get() {
            return Ok(value);
        }
        let value = parse("", &self.text)?;
        Ok(self.value.get_or_init(|| value))
    }

    /// Returns the value.
    ///
    /// # Errors
    ///
    /// As [`get`](Self::get).
    pub fn into_value(self) -> Result<T, Error> {
        match self.value.into_inner() {
            Some(value) => Ok(value),
            None => parse("", &self.text),
        }
    }
}

// === impl Named ===

impl Named for ObjectMeta {
    fn key(&self) -> ObjectKey {
        crate::key(self.namespace.clone().unwrap_or_default(), self.name.clone().unwrap_or_default())
    }

    fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    fn annotations(&self) -> &BTreeMap<String, String> {
        &self.annotations
    }

    fn finalizers(&self) -> &[String] {
        &self.finalizers
    }

    fn is_being_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

#[cfg(feature = "k8s-openapi")]
mod of_k8s_openapi {
    use std::collections::BTreeMap;

    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
    use k8s_openapi::{Metadata, Resource};
    use serde::Serialize;

    use super::Named;
    use crate::ObjectKey;

    static NONE: BTreeMap<String, String> = BTreeMap::new();

    impl Named for ObjectMeta {
        fn key(&self) -> ObjectKey {
            crate::key(self.namespace.clone().unwrap_or_default(), self.name.clone().unwrap_or_default())
        }

        fn uid(&self) -> Option<&str> {
            self.uid.as_deref()
        }

        fn labels(&self) -> &BTreeMap<String, String> {
            self.labels.as_ref().unwrap_or(&NONE)
        }

        fn annotations(&self) -> &BTreeMap<String, String> {
            self.annotations.as_ref().unwrap_or(&NONE)
        }

        fn finalizers(&self) -> &[String] {
            self.finalizers.as_deref().unwrap_or_default()
        }

        fn is_being_deleted(&self) -> bool {
            self.deletion_timestamp.is_some()
        }
    }

    impl From<crate::OwnerReference> for OwnerReference {
        fn from(owner: crate::OwnerReference) -> Self {
            let crate::OwnerReference { api_version, kind, name, uid, controller, block_owner_deletion } =
                owner;
            Self { api_version, kind, name, uid, controller, block_owner_deletion }
        }
    }

    impl<T: Resource + Metadata<Ty = ObjectMeta>> super::Resource for T {
        const GROUP: &'static str = <T as Resource>::GROUP;
        const VERSION: &'static str = <T as Resource>::VERSION;
        const KIND: &'static str = <T as Resource>::KIND;
        const PLURAL: &'static str = <T as Resource>::URL_PATH_SEGMENT;

        fn named(&self) -> &dyn Named {
            self.metadata()
        }

        /// These types write their `apiVersion` and `kind` themselves.
        fn to_json(&self) -> Result<String, serde_json::Error>
        where
            Self: Serialize,
        {
            serde_json::to_string(self)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Resource, Serialize, Deserialize)]
    #[resource(group = "example.com", version = "v1", plural = "widgets")]
    struct Widget {
        metadata: ObjectMeta,
        size: u32,
    }

    #[test]
    fn the_text_of_a_custom_resource_has_its_version_and_kind() {
        let metadata = ObjectMeta { name: Some("a".to_owned()), ..ObjectMeta::default() };
        let widget = Widget { metadata, size: 3 };
        assert_eq!(
            widget.to_json().unwrap(),
            r#"{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"size":3}"#
        );
        assert_eq!(widget.key(), crate::key("", "a"));
    }

    #[test]
    fn an_object_is_parsed_when_it_is_used() {
        let id = ObjectRef {
            namespace: String::new(),
            name: "a".to_owned(),
            uid: String::new(),
            resource_version: String::new(),
        };
        let object = Object::<Widget>::new(id.clone(), r#"{"metadata":{"name":"a"},"size":3}"#.to_owned());
        assert_eq!(object.get().unwrap().size, 3);
        let broken = Object::<Widget>::new(id, r#"{"metadata":{"name":"a"},"size":"3"}"#.to_owned());
        let Err(Error::Invalid(text)) = broken.get() else { panic!("it has another form") };
        assert!(text.starts_with("the object has an unexpected form: invalid type: string \"3\""), "{text}");
    }

    #[cfg(feature = "k8s-openapi")]
    #[test]
    fn the_types_of_k8s_openapi_are_resources() {
        use k8s_openapi::api::apps::v1::Deployment;

        assert_eq!(<Deployment as Resource>::gvr(), crate::gvr("apps", "v1", "deployments"));
        let text = Resource::to_json(&Deployment::default()).unwrap();
        assert!(text.starts_with(r#"{"apiVersion":"apps/v1","kind":"Deployment","#), "{text}");
    }
}
