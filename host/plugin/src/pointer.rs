//! The syntax of JSON pointers, so that a malformed one is refused where it was written.
//!
//! Only the syntax: looking a pointer up in an object is the informer's work.

/// Longest pointer that is taken from a guest.
pub(crate) const MAX_BYTES: usize = 4 << 10;

/// Says what is wrong with a pointer, if anything.
pub(crate) fn check(pointer: &str) -> Result<(), String> {
    let shown = || format!("{:?}", &pointer[..pointer.floor_char_boundary(80)]);
    if pointer.len() > MAX_BYTES {
        return Err(format!("the JSON pointer {} has more than {MAX_BYTES} bytes", shown()));
    }
    if !pointer.is_empty() && !pointer.starts_with('/') {
        return Err(format!("the JSON pointer {} does not begin with /, such as /metadata/name", shown()));
    }
    let mut bytes = pointer.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'~' && !matches!(bytes.next(), Some(b'0' | b'1')) {
            return Err(format!("the JSON pointer {} has a ~ without 0 or 1 after it", shown()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn syntax_is_rfc_6901() {
        for good in ["", "/", "/a/b", "/a~1b/~0", "/metadata/labels/app.kubernetes.io~1name", "/a//b", "/ä"]
        {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        insta::assert_snapshot!(check("metadata").unwrap_err(), @r#"the JSON pointer "metadata" does not begin with /, such as /metadata/name"#);
        insta::assert_snapshot!(check("/a~b").unwrap_err(), @r#"the JSON pointer "/a~b" has a ~ without 0 or 1 after it"#);
        insta::assert_snapshot!(check("/a~").unwrap_err(), @r#"the JSON pointer "/a~" has a ~ without 0 or 1 after it"#);
        assert!(check(&format!("/{}", "a".repeat(5000))).is_err());
    }
}
