//! Replaces values in the JSON text of a Secret, or of one of its fields, and leaves every other byte as it
//! is.

/// The encoding of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Base64, as in `data`.
    Base64,
    /// Plain text, as in `stringData`, and wherever it is not known.
    Plain,
}

/// The maximum depth of nested values. Deeper text is replaced as a whole.
const MAX_DEPTH: usize = 100;

/// The configuration that `kubectl apply` stores in an annotation: the JSON text of a Secret again.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Returns the encoding of a value at a pointer, or `None` if values there are public.
pub(super) fn place_of(pointer: &str) -> Option<Place> {
    let segments: Vec<String> = segments(pointer);
    place(&segments)
}

fn segments(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|it| it.replace("~1", "/").replace("~0", "~")).collect()
}

fn place(path: &[String]) -> Option<Place> {
    match path.first().map(String::as_str) {
        Some("data") => Some(Place::Base64),
        Some("metadata" | "apiVersion" | "kind" | "type" | "immutable") | None => None,
        Some(_) => Some(Place::Plain),
    }
}

/// Replaces the values in the JSON text at a pointer of a Secret. Returns `None` if the text is not JSON.
pub(super) fn redact(
    text: &str,
    pointer: &str,
    replace: &mut dyn FnMut(&str, Place) -> String,
) -> Option<String> {
    let mut scan =
        Scan { text, at: 0, out: String::with_capacity(text.len()), path: segments(pointer), replace };
    scan.value(0)?;
    scan.space();
    (scan.at == text.len()).then_some(scan.out)
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    out: String,
    path: Vec<String>,
    replace: &'a mut dyn FnMut(&str, Place) -> String,
}

// === impl Scan ===

impl<'a> Scan<'a> {
    fn value(&mut self, depth: usize) -> Option<()> {
        self.space();
        match self.peek()? {
            b'{' if depth < MAX_DEPTH => self.object(depth),
            b'[' if depth < MAX_DEPTH => self.array(depth),
            b'"' => self.string(),
            b'{' | b'[' => None,
            _ => self.scalar(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.copy();
        self.space();
        if self.peek()? == b'}' {
            self.copy();
            return Some(());
        }
        loop {
            self.space();
            let token = self.token()?;
            self.out.push_str(token);
            self.path.push(serde_json::from_str(token).ok()?);
            self.space();
            if self.peek()? != b':' {
                return None;
            }
            self.copy();
            self.value(depth + 1)?;
            self.path.pop();
            self.space();
            let next = self.peek()?;
            self.copy();
            match next {
                b',' => {}
                b'}' => return Some(()),
                _ => return None,
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.copy();
        self.space();
        if self.peek()? == b']' {
            self.copy();
            return Some(());
        }
        self.path.push("-".to_owned());
        loop {
            self.value(depth + 1)?;
            self.space();
            let next = self.peek()?;
            self.copy();
            match next {
                b',' => {}
                b']' => break,
                _ => return None,
            }
        }
        self.path.pop();
        Some(())
    }

    fn string(&mut self) -> Option<()> {
        let token = self.token()?;
        let path: Vec<_> = self.path.iter().map(String::as_str).collect();
        if let ["metadata", "annotations", LAST_APPLIED] = path[..] {
            let inner: String = serde_json::from_str(token).ok()?;
            let replaced =
                redact(&inner, "", self.replace).unwrap_or_else(|| (self.replace)(&inner, Place::Plain));
            self.out.push_str(&quoted(&replaced));
            return Some(());
        }
        let Some(place) = place(&self.path) else {
            self.out.push_str(token);
            return Some(());
        };
        let value: String = serde_json::from_str(token).ok()?;
        let replaced = (self.replace)(&value, place);
        self.out.push_str(&quoted(&replaced));
        Some(())
    }

    /// Copies a number, true, false or null. The digits of a number among values are replaced.
    fn scalar(&mut self) -> Option<()> {
        let rest = &self.text[self.at..];
        let end = rest.find([',', '}', ']', ' ', '\n', '\r', '\t']).unwrap_or(rest.len());
        let token = &rest[..end];
        serde_json::from_str::<serde_json::Value>(token).ok()?;
        let is_number = token.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        match place(&self.path) {
            Some(_) if is_number => self.number(token),
            _ => self.out.push_str(token),
        }
        self.at += end;
        Some(())
    }

    /// Replaces the digits of a number. It keeps its sign and its exponent.
    fn number(&mut self, token: &str) {
        let (mantissa, exponent) = token.split_at(token.find(['e', 'E']).unwrap_or(token.len()));
        for part in mantissa.split_inclusive(['-', '.']) {
            let (digits, sign) = part.split_at(part.find(['-', '.']).unwrap_or(part.len()));
            if !digits.is_empty() {
                let replaced = (self.replace)(digits, Place::Plain);
                self.out.push_str(&replaced);
            }
            self.out.push_str(sign);
        }
        self.out.push_str(exponent);
    }

    /// Returns the text of a string with its quotes.
    fn token(&mut self) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let mut bytes = rest.bytes().enumerate();
        if bytes.next()?.1 != b'"' {
            return None;
        }
        loop {
            match bytes.next()? {
                (i, b'"') => {
                    self.at += i + 1;
                    return Some(&rest[..=i]);
                }
                (_, b'\\') => drop(bytes.next()?),
                _ => {}
            }
        }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.copy();
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Copies one byte, which is ASCII.
    fn copy(&mut self) {
        self.out.push_str(&self.text[self.at..=self.at]);
        self.at += 1;
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(value: &str, place: Place) -> String {
        match place {
            Place::Base64 => format!("<{value}>"),
            Place::Plain => format!("({value})"),
        }
    }

    fn redacted(text: &str, pointer: &str) -> Option<String> {
        redact(text, pointer, &mut mark)
    }

    #[test]
    fn values_are_replaced_and_everything_else_stays() {
        let secret = r#"{ "apiVersion":"v1", "kind" : "Secret", "metadata":{"name":"a","labels":{"x":"y"}},
            "data":{"k":"YQ==","n":"\n"}, "stringData":{"k":"v\"w"}, "type":"Opaque", "immutable":true,
            "other":["x",1,null]}"#;
        insta::assert_snapshot!(redacted(secret, "").unwrap(), @r#"
        { "apiVersion":"v1", "kind" : "Secret", "metadata":{"name":"a","labels":{"x":"y"}},
                    "data":{"k":"<YQ==>","n":"<\n>"}, "stringData":{"k":"(v\"w)"}, "type":"Opaque", "immutable":true,
                    "other":["(x)",(1),null]}
        "#);
    }

    #[test]
    fn the_last_applied_configuration_is_a_secret_again() {
        let inner = r#"{"data":{"k":"YQ=="},"metadata":{"name":"a"}}"#;
        let text = serde_json::json!({"metadata": {"annotations": {LAST_APPLIED: inner, "note": "b"}}});
        let after: serde_json::Value =
            serde_json::from_str(&redacted(&text.to_string(), "").unwrap()).unwrap();
        let annotations = &after["metadata"]["annotations"];
        assert_eq!(annotations[LAST_APPLIED], r#"{"data":{"k":"<YQ==>"},"metadata":{"name":"a"}}"#);
        assert_eq!(annotations["note"], "b");
    }

    #[test]
    fn the_pointer_of_a_field_says_what_it_is() {
        assert_eq!(redacted(r#""YQ==""#, "/data/k").as_deref(), Some(r#""<YQ==>""#));
        assert_eq!(redacted(r#"{"k":"YQ=="}"#, "/data").as_deref(), Some(r#"{"k":"<YQ==>"}"#));
        assert_eq!(redacted(r#""a""#, "/metadata/name").as_deref(), Some(r#""a""#));
        let pointer = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
        assert_eq!(
            redacted(r#""{\"data\":{\"k\":\"v\"}}""#, pointer).as_deref(),
            Some(r#""{\"data\":{\"k\":\"<v>\"}}""#)
        );
        assert_eq!(place_of("/data/x"), Some(Place::Base64));
        assert_eq!(place_of("/metadata/labels/x"), None);
    }

    #[test]
    fn a_number_stays_a_number() {
        let text = r#"{"data":[-17,1.50,-2.5e-3,0,6E9,true,false]}"#;
        let mut digits = |value: &str, _| "7".repeat(value.len());
        let after = redact(text, "", &mut digits).unwrap();
        assert_eq!(after, r#"{"data":[-77,7.77,-7.7e-3,7,7E9,true,false]}"#);
        // A number alone, as the answer for one field.
        assert_eq!(redacted("-17", "/data/k").as_deref(), Some("-(17)"));
        assert_eq!(redacted("-17", "/metadata/generation").as_deref(), Some("-17"));
    }

    #[test]
    fn text_that_is_not_json_is_refused() {
        let deep = "[".repeat(1_000);
        for text in ["", "{", r#"{"a""#, r#"{"a":1,}"#, "nul", r#""\x""#, "{} {}", "[1 2]", &deep] {
            assert_eq!(redacted(text, "/data/k"), None, "{text}");
        }
    }
}
