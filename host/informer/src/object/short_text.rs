//! Uids and resourceVersions: stored as numbers if possible, read as text.

use std::fmt;
use std::ops::Deref;

/// The length of a UUID, the longest text that is formatted from a number.
const INLINE: usize = 36;

/// A short text, such as a uid or a resourceVersion. Dereferences to `str`.
///
/// It is not `Clone`, so that `to_owned` returns a `String`.
pub struct ShortText<'a>(Storage<'a>);

enum Storage<'a> {
    Inline { length: u8, bytes: [u8; INLINE] },
    Borrowed(&'a str),
}

// === impl ShortText ===

impl<'a> ShortText<'a> {
    pub(crate) fn borrowed(text: &'a str) -> Self {
        Self(Storage::Borrowed(text))
    }

    /// Formats a decimal number.
    pub(crate) fn number(mut number: u64) -> Self {
        let mut digits = [0; 20];
        let mut start = digits.len();
        loop {
            start -= 1;
            digits[start] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        let digits = &digits[start..];
        let mut bytes = [0; INLINE];
        bytes[..digits.len()].copy_from_slice(digits);
        Self(Storage::Inline { length: digits.len() as u8, bytes })
    }

    /// Formats a UUID in lower case.
    pub(crate) fn uuid(uuid: &[u8; 16]) -> Self {
        let mut bytes = [b'-'; INLINE];
        let mut at = 0;
        for (position, byte) in uuid.iter().enumerate() {
            at += usize::from(matches!(position, 4 | 6 | 8 | 10));
            bytes[at] = hex_digit(byte >> 4);
            bytes[at + 1] = hex_digit(byte & 15);
            at += 2;
        }
        Self(Storage::Inline { length: INLINE as u8, bytes })
    }
}

impl Deref for ShortText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match &self.0 {
            // All bytes are ASCII.
            Storage::Inline { length, bytes } => {
                std::str::from_utf8(&bytes[..usize::from(*length)]).unwrap_or_default()
            }
            Storage::Borrowed(text) => text,
        }
    }
}

impl AsRef<str> for ShortText<'_> {
    fn as_ref(&self) -> &str {
        self
    }
}

impl fmt::Display for ShortText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for ShortText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl PartialEq for ShortText<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ShortText<'_> {}

impl PartialEq<str> for ShortText<'_> {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for ShortText<'_> {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl PartialEq<String> for ShortText<'_> {
    fn eq(&self, other: &String) -> bool {
        **self == **other
    }
}

impl From<ShortText<'_>> for String {
    fn from(text: ShortText<'_>) -> Self {
        (*text).to_owned()
    }
}

impl From<ShortText<'_>> for Box<str> {
    fn from(text: ShortText<'_>) -> Self {
        Self::from(&*text)
    }
}

/// Parses a number that [`ShortText::number`] formats to the same text.
pub(crate) fn parse_number(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let is_canonical = matches!(bytes, [b'0'] | [b'1'..=b'9', ..]) && bytes.len() <= 20;
    if !is_canonical {
        return None;
    }
    bytes.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// Parses a UUID that [`ShortText::uuid`] formats to the same text.
pub(crate) fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let text: &[u8; INLINE] = text.as_bytes().try_into().ok()?;
    let mut uuid = [0; 16];
    let mut at = 0;
    for (position, byte) in uuid.iter_mut().enumerate() {
        if matches!(position, 4 | 6 | 8 | 10) {
            if text[at] != b'-' {
                return None;
            }
            at += 1;
        }
        *byte = hex_value(text[at])? << 4 | hex_value(text[at + 1])?;
        at += 2;
    }
    Some(uuid)
}

fn hex_digit(value: u8) -> u8 {
    if value < 10 { b'0' + value } else { b'a' + value - 10 }
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_uuids_are_formatted_to_the_parsed_text() {
        for number in [0, 1, 9, 10, 12345, u64::MAX] {
            let text = ShortText::number(number);
            assert_eq!(text, number.to_string());
            assert_eq!(parse_number(&text), Some(number));
        }
        let uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
        assert_eq!(ShortText::uuid(&parse_uuid(uuid).unwrap()), uuid);
    }

    #[test]
    fn texts_that_would_be_formatted_differently_are_not_parsed() {
        for text in ["", "00", "01", "-1", "+1", "1a", "18446744073709551616", "99999999999999999999999"] {
            assert_eq!(parse_number(text), None, "{text}");
        }
        for text in [
            "",
            "u-1",
            "0F8FAD5B-D9CB-469F-A165-70867728950E",
            "0f8fad5bd9cb469fa16570867728950e",
            "0f8fad5b-d9cb-469f-a165-70867728950",
            "0f8fad5b+d9cb-469f-a165-70867728950e",
        ] {
            assert_eq!(parse_uuid(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_parsed_text_is_formatted_to_itself(text in "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", number in "[0-9]{1,21}") {
            assert_eq!(ShortText::uuid(&parse_uuid(&text).unwrap()), text);
            if let Some(parsed) = parse_number(&number) {
                assert_eq!(ShortText::number(parsed), number);
            }
        }
    }
}
