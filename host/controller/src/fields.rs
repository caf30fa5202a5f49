//! Fields of an object, bounded in bytes.

use oarlock_json::JsonPointer;

use oarlock_informer::Object;
use oarlock_plugin::contract::Error;

/// The most bytes that the fields of one object may have together. Pointers may overlap, so a few of them can
/// be many times as long as the object.
pub(crate) const MOST_BYTES: usize = 4 << 20;

/// Returns the JSON texts at several pointers, in their order, from one walk over the object's text.
///
/// # Errors
///
/// `limit-exceeded` when they are too long together. A single pointer has no limit.
pub(crate) fn at(object: &Object, pointers: &[JsonPointer]) -> Result<Vec<Option<String>>, Error> {
    let most = if pointers.len() > 1 { MOST_BYTES } else { usize::MAX };
    object.pointers_within(pointers, most).map_err(|n_bytes| too_long(pointers.len(), n_bytes))
}

/// Returns the error for fields that are too long together.
pub(crate) fn too_long(n_pointers: usize, n_bytes: usize) -> Error {
    Error::LimitExceeded(format!(
        "the fields at {n_pointers} pointers have {n_bytes} bytes, more than {MOST_BYTES}: ask for fewer at a time"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promise_4_fields_that_are_too_long_together_are_refused() {
        let text = format!(
            r#"{{"kind":"X","apiVersion":"v1","metadata":{{"name":"a"}},"data":"{}"}}"#,
            "x".repeat(1 << 20)
        );
        let object = Object::parse(text.as_bytes(), None).unwrap();
        let pointers = |texts: &[&str]| texts.iter().map(|it| it.parse().unwrap()).collect::<Vec<_>>();
        assert!(at(&object, &pointers(&["/data", "/kind", "", "/nothing", "/metadata"])).is_ok());
        assert!(at(&object, &pointers(&[""; 64])).is_err());
        let whole = at(&object, &pointers(&["/kind", "/data"])).unwrap();
        assert_eq!(
            (whole[0].as_deref(), whole[1].as_ref().map(String::len)),
            (Some("\"X\""), Some((1 << 20) + 2))
        );
    }
}
