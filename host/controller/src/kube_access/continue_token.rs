//! Continue tokens: the key of the last row of a page, as text.
//!
//! A guest may make one up; it then starts elsewhere in what it may read anyway.

use oarlock_informer::ObjectKey;
use oarlock_plugin::contract::Error;

/// What a token of this form begins with, so that a later form can be told apart.
const FORM: &str = "1:";

/// Makes the token that continues after a key.
pub(super) fn after(key: &ObjectKey) -> String {
    format!("{FORM}{}/{}", key.namespace(), key.name())
}

/// Reads a token; none for the first page.
pub(super) fn parse(token: &str) -> Result<Option<ObjectKey>, Error> {
    if token.is_empty() {
        return Ok(None);
    }
    let key = token.strip_prefix(FORM).and_then(|key| key.split_once('/'));
    let (namespace, name) =
        key.ok_or_else(|| Error::Invalid(format!("{token:?} is no continue token of this host")))?;
    Ok(Some(ObjectKey::new(namespace, name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_reads_back() {
        for key in [ObjectKey::new("a", "b"), ObjectKey::new("", "system:node")] {
            assert_eq!(parse(&after(&key)), Ok(Some(key)));
        }
        assert_eq!(parse(""), Ok(None));
        for bad in ["a/b", "1:ab", "2:a/b"] {
            assert!(matches!(parse(bad), Err(Error::Invalid(_))), "{bad}");
        }
    }
}
