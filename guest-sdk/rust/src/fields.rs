//! Structs whose fields carry JSON pointers.

use serde::de::DeserializeOwned;

pub use oarlock_sdk_derive::Fields;

use crate::Error;
use crate::failure::unexpected;

/// A struct whose fields carry JSON pointers: the part of an object that the plugin needs.
///
/// It is derived. As the declared fields of a subscription ([`crate::Subscription::fields`]) it says which
/// changes the plugin is called for, and is the value of a notification ([`crate::Updated::fields`]). As the
/// result of a read ([`crate::Lister::get`]) it says what the host copies for the plugin. In both cases only
/// these values are parsed, never the whole object.
///
/// ```
/// use oarlock_sdk::{Error, Failure, Fields, Handler, Subscription, Updated};
/// # use oarlock_sdk::{Description, Plugin, gvr};
///
/// #[derive(Fields)]
/// struct Scale {
///     #[field("/spec/replicas")]
///     wanted: Option<i32>,
///     /// An object without this field has 0.
///     #[field("/status/readyReplicas", default)]
///     ready: i32,
/// }
///
/// # struct Scaling;
/// # impl Plugin for Scaling {
/// #     fn describe() -> Result<Description, String> {
/// let deployments = Subscription::new("deployments", gvr("apps", "v1", "deployments")).fields::<Scale>();
/// #         Ok(Description::new("scaling", "0.1.0").subscribe(deployments))
/// #     }
/// #     fn start() -> Result<Self, Failure> { Ok(Self) }
/// # }
/// impl Handler for Scaling {
///     fn on_update(&mut self, updated: &Updated) -> Result<(), Failure> {
///         let (old, new) = (updated.old_fields::<Scale>()?, updated.fields::<Scale>()?);
///         if new.ready < old.ready && Some(new.ready) < new.wanted {
///             oarlock_sdk::warn!("Pods are missing", "ready" = new.ready);
///         }
///         Ok(())
///     }
/// }
/// ```
///
/// A field may have any type that `serde` deserializes. If the object lacks the field, it is read as `null`:
/// `None` for an `Option`, an error for most other types. A field of the type [`Json`] is parsed when it is
/// used.
pub trait Fields: Sized {
    /// The JSON pointers, in the order of the fields.
    const POINTERS: &'static [&'static str];

    /// Parses the values at the pointers, in their order.
    ///
    /// # Errors
    ///
    /// `invalid`, with the pointer, for a value of another type.
    fn parse(texts: &[Option<String>]) -> Result<Self, Error>;
}

/// A value that is parsed when it is used.
///
/// ```
/// use oarlock_sdk::{Error, Fields, fields::Json};
///
/// #[derive(Fields)]
/// struct Pod {
///     #[field("/status/phase")]
///     phase: Option<String>,
///     #[field("/spec/containers")]
///     containers: Json<Vec<Container>>,
/// }
///
/// #[derive(serde::Deserialize)]
/// struct Container {
///     image: String,
/// }
///
/// fn images(pod: &Pod) -> Result<Vec<String>, Error> {
///     if pod.phase.as_deref() != Some("Pending") {
///         return Ok(vec![]);
///     }
///     Ok(pod.containers.get()?.into_iter().map(|container| container.image).collect())
/// }
/// ```
#[derive(Debug)]
pub struct Json<T> {
    pointer: &'static str,
    text: Option<String>,
    value: std::marker::PhantomData<fn() -> T>,
}

/// What a field of [`Fields`] may be: every type that `serde` deserializes, and [`Json`].
pub trait Value: Sized {
    #[doc(hidden)]
    fn read(pointer: &'static str, text: Option<&str>) -> Result<Self, Error>;
}

// === impl Json ===

impl<T: DeserializeOwned> Json<T> {
    /// Parses the value. A field that the object lacks is parsed as `null`.
    ///
    /// # Errors
    ///
    /// `invalid`, with the pointer, for a value of another type.
    pub fn get(&self) -> Result<T, Error> {
        T::read(self.pointer, self.text())
    }

    /// Returns the JSON text; `None` if the object lacks the field.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }
}

/// Equal if the texts are. The API server writes equal values as equal texts.
impl<T> PartialEq for Json<T> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

// === impl Value ===

impl<T: DeserializeOwned> Value for T {
    fn read(pointer: &'static str, text: Option<&str>) -> Result<Self, Error> {
        serde_json::from_str(text.unwrap_or("null")).map_err(|error| match text {
            Some(_) => unexpected(pointer, &error),
            None => Error::Invalid(format!("the object has no value at {pointer}")),
        })
    }
}

impl<T> Value for Json<T> {
    fn read(pointer: &'static str, text: Option<&str>) -> Result<Self, Error> {
        Ok(Self { pointer, text: text.map(str::to_owned), value: std::marker::PhantomData })
    }
}

/// Reads one field. The derive macro calls it.
#[doc(hidden)]
pub fn read<T: Value>(texts: &[Option<String>], idx: usize, pointer: &'static str) -> Result<T, Error> {
    T::read(pointer, texts.get(idx).and_then(Option::as_deref))
}

/// Reads one field that may be missing. The derive macro calls it.
#[doc(hidden)]
pub fn read_or_default<T: Value + Default>(
    texts: &[Option<String>],
    idx: usize,
    pointer: &'static str,
) -> Result<T, Error> {
    match texts.get(idx).and_then(Option::as_deref) {
        None | Some("null") => Ok(T::default()),
        text => T::read(pointer, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Fields, PartialEq)]
    struct Status {
        #[field("/status/phase")]
        phase: Option<String>,
        #[field("/status/restarts", default)]
        restarts: u32,
        #[field("/metadata/name")]
        name: String,
        #[field("/status/conditions")]
        conditions: Json<Vec<String>>,
    }

    fn parse(texts: [Option<&str>; 4]) -> Result<Status, Error> {
        Status::parse(&texts.map(|text| text.map(str::to_owned)))
    }

    #[test]
    fn missing_values_are_none_or_the_default() {
        let status = parse([None, None, Some("\"web\""), None]).unwrap();
        assert_eq!((status.phase, status.restarts, &*status.name), (None, 0, "web"));
        assert_eq!(status.conditions.text(), None);
        let error = status.conditions.get().unwrap_err();
        assert_eq!(error, Error::Invalid("the object has no value at /status/conditions".to_owned()));
    }

    #[test]
    fn an_error_names_the_pointer_and_the_type() {
        let missing = parse([None; 4]).unwrap_err();
        assert_eq!(missing, Error::Invalid("the object has no value at /metadata/name".to_owned()));
        let wrong = parse([None, Some("\"many\""), Some("\"web\""), None]).unwrap_err();
        let Error::Invalid(text) = wrong else { panic!("{wrong:?}") };
        assert!(
            text.starts_with(
                "the value at /status/restarts has an unexpected form: invalid type: string \"many\", expected u32"
            ),
            "{text}"
        );
    }

    #[test]
    fn a_json_value_is_parsed_when_it_is_used() {
        let status = parse([None, None, Some("\"web\""), Some("[\"a\"]")]).unwrap();
        assert_eq!(status.conditions.get().unwrap(), ["a"]);
        let status = parse([None, None, Some("\"web\""), Some("7")]).unwrap();
        assert!(matches!(status.conditions.get(), Err(Error::Invalid(_))));
    }
}
