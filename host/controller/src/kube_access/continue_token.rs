//! Continue tokens: the key of the last row of a page, as text.
//!
//! A guest may invent a token: its page then starts at another key within the objects that it may read.

use std::collections::BTreeSet;

use oarlock_informer::object::{Namespaces, ObjectKey};
use oarlock_plugin::contract::Error;

/// The prefix of the tokens, which tells this form from later ones.
const FORM: &str = "1:";

/// The start of a page. It comes from the guest, so nothing is looked up by it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Start<'t> {
    after: Option<(&'t str, &'t str)>,
}

/// Returns the token that continues after a key.
pub(super) fn after(key: &ObjectKey) -> String {
    format!("{FORM}{}/{}", key.namespace(), key.name())
}

/// Parses a token; the empty token means the first page.
pub(super) fn parse(token: &str) -> Result<Start<'_>, Error> {
    if token.is_empty() {
        return Ok(Start { after: None });
    }
    let after = token.strip_prefix(FORM).and_then(|key| key.split_once('/'));
    let after =
        after.ok_or_else(|| Error::Invalid(format!("{token:?} is not a continue token of this host")))?;
    Ok(Start { after: Some(after) })
}

// === impl Start ===

impl Start<'_> {
    /// Returns the key after which the page starts, and its namespaces. The key is always in one of these
    /// namespaces.
    pub(super) fn within(&self, namespaces: Namespaces) -> (Option<ObjectKey>, Namespaces) {
        let Some((namespace, name)) = self.after else { return (None, namespaces) };
        match namespaces {
            Namespaces::All => (Some(ObjectKey::new(namespace, name)), Namespaces::All),
            Namespaces::Only(mut some) => {
                let rest: BTreeSet<String> = some.split_off(namespace);
                let after = rest.contains(namespace).then(|| ObjectKey::new(namespace, name));
                (after, Namespaces::Only(rest))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_reads_back() {
        for key in [ObjectKey::new("a", "b"), ObjectKey::new("", "system:node")] {
            let token = after(&key);
            let start = parse(&token).unwrap();
            assert_eq!(start.within(Namespaces::All), (Some(key), Namespaces::All));
        }
        assert_eq!(parse("").unwrap().within(Namespaces::one("a")), (None, Namespaces::one("a")));
        for bad in ["a/b", "1:ab", "2:a/b"] {
            assert!(matches!(parse(bad), Err(Error::Invalid(_))), "{bad}");
        }
    }

    #[test]
    fn a_token_that_was_made_up_leads_nowhere_else() {
        let some = || Namespaces::Only(["a".to_owned(), "c".to_owned()].into());
        let within = |token: &str| parse(token).unwrap().within(some());
        assert_eq!(within("1:a/x"), (Some(ObjectKey::new("a", "x")), some()));
        assert_eq!(within("1:b/x"), (None, Namespaces::one("c")));
        assert_eq!(within("1:c/x"), (Some(ObjectKey::new("c", "x")), Namespaces::one("c")));
        assert_eq!(within("1:z/x"), (None, Namespaces::Only(BTreeSet::new())));
    }
}
