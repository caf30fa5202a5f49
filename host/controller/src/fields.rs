//! Fields of an object, for an answer that must not get too long.

use oarlock_informer::{JsonPointer, Object};
use oarlock_plugin::contract::Error;

/// The most that the fields of one object may have together. Pointers can point into each other, so that a few of them are
/// many times the object.
pub(crate) const MOST_BYTES: usize = 4 << 20;

/// Returns the JSON texts at several pointers, in their order; `limit-exceeded` when they are too long together.
pub(crate) fn at(object: &Object, pointers: &[JsonPointer]) -> Result<Vec<Option<String>>, Error> {
    let most = pointers.len().saturating_mul(object.json_length());
    if most <= MOST_BYTES || pointers.len() == 1 {
        return Ok(object.pointers(pointers));
    }
    // One by one, so that what is too long is never there at once.
    let mut length = 0;
    let mut found = Vec::with_capacity(pointers.len());
    for pointer in pointers {
        let value = object.pointer(pointer);
        length += value.as_ref().map_or(0, String::len);
        if length > MOST_BYTES {
            let n_pointers = pointers.len();
            return Err(Error::LimitExceeded(format!(
                "the fields at {n_pointers} pointers have more than {MOST_BYTES} bytes: ask for fewer at a time"
            )));
        }
        found.push(value);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn promise_4_many_pointers_into_a_large_object_are_refused() {
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
