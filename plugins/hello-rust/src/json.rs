//! Reads JSON strings. This plugin reads nothing else, and a JSON library would be half of its code.

use std::str::Chars;

/// Returns the string in a JSON text, if the text is a string.
pub(crate) fn string(json: &str) -> Option<String> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(next) = rest.next() {
        text.push(if next == '\\' { escaped(&mut rest)? } else { next });
    }
    Some(text)
}

/// Reads what follows a backslash.
fn escaped(rest: &mut Chars<'_>) -> Option<char> {
    match rest.next()? {
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'u' => {
            let first = unit(rest)?;
            if let Some(of_one_unit) = char::from_u32(first.into()) {
                return Some(of_one_unit);
            }
            rest.as_str().starts_with("\\u").then(|| rest.nth(1))?;
            char::decode_utf16([first, unit(rest)?]).next()?.ok()
        }
        other => Some(other),
    }
}

/// Reads four hexadecimal digits.
fn unit(rest: &mut Chars<'_>) -> Option<u16> {
    (0..4).try_fold(0, |unit, _| Some(unit << 4 | rest.next()?.to_digit(16)? as u16))
}

#[cfg(test)]
mod tests {
    use super::string;

    #[test]
    fn strings_are_read_as_serde_json_reads_them() {
        let texts = [
            r#""""#,
            r#""plain ä 漢 🦀""#,
            r#""\"\\\/\b\f\n\r\t""#,
            r#""\u00e4\u6f22\ud83e\udd80!""#,
            r#""\ud83e""#,
            r#""\ud83ex""#,
            r#""\udd80\ud83e""#,
            r#""\u12""#,
            r#""ends in a backslash\"#,
            r#"""#,
            "",
            "null",
            "12",
            r#"["a"]"#,
        ];
        for text in texts {
            assert_eq!(string(text), serde_json::from_str(text).ok(), "{text}");
        }
    }
}
