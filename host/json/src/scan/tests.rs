use proptest::prelude::*;
use serde_json::value::RawValue;

use super::*;

/// Finds the closing bracket byte by byte.
fn end_of_nested_slowly(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut is_inside, mut is_escaped) = (0, false, false);
    for (idx, byte) in bytes.iter().enumerate() {
        match byte {
            b'"' if !is_escaped => is_inside = !is_inside,
            b'{' | b'[' if !is_inside => depth += 1,
            b'}' | b']' if !is_inside => depth -= 1,
            _ => {}
        }
        is_escaped = *byte == b'\\' && !is_escaped;
        if depth == 0 {
            return Some(idx + 1);
        }
    }
    None
}

/// Finds the closing quote byte by byte.
fn end_of_string_slowly(bytes: &[u8]) -> Option<usize> {
    let mut is_escaped = false;
    for (idx, byte) in bytes.iter().enumerate() {
        if *byte == b'"' && !is_escaped {
            return Some(idx + 1);
        }
        is_escaped = *byte == b'\\' && !is_escaped;
    }
    None
}

/// Returns the instruction sets that the scanner may use here.
fn levels() -> Vec<Level> {
    let best = Level::new();
    #[cfg(target_arch = "x86_64")]
    let between = [best.as_sse4_2().map(Level::Sse4_2), best.as_avx2().map(Level::Avx2)];
    #[cfg(not(target_arch = "x86_64"))]
    let between = [None; 0];
    [Level::baseline(), best].into_iter().chain(between.into_iter().flatten()).collect()
}

fn skip(text: &str) -> Option<&str> {
    let mut cursor = Cursor::new(text);
    cursor.skip_value()?;
    cursor.since(0)
}

fn string(text: &str) -> Option<&str> {
    Cursor::new(text).string().map(|quoted| quoted.raw)
}

#[test]
fn skip_value_skips_one_value() {
    for value in
        ["{}", "[]", "[{\"]\":\"\\\\\"}]", "\"\"", "\"a\\\"b\"", "0", "-1.5e+10", "true", "false", "null"]
    {
        assert_eq!(skip(value), Some(value));
        assert_eq!(skip(&format!("{value},}}]")), Some(value));
    }
    for text in ["", "}", "[", "{\"a\":[}", "\"", "\"\\\"", "-", "tru", "+1", "1.", "1e", ".5", "'a'"] {
        assert_eq!(skip(text), None, "{text}");
    }
}

#[test]
fn brackets_are_found_at_every_position_of_a_block() {
    for length in 0..200 {
        let value = format!("{{\"{}\\\\\\\"]\":[[]]}}", "x".repeat(length));
        assert_eq!(skip(&format!("{value}]]")), Some(&*value));
        let long = format!("\"{}\\\\\"", "\\\"".repeat(length));
        assert_eq!(skip(&format!("{long}\"")), Some(&*long));
        assert_eq!(string(&format!("{long}\"")), Some(&long[1..long.len() - 1]));
    }
}

/// The blocks of strings begin anywhere in a text, so an escape may begin in one block and end in the next.
#[test]
fn every_instruction_set_finds_the_same_ends() {
    for length in 0..200 {
        let string = format!("{}\\\\\\\"–\" ]", "x".repeat(length));
        let nested = format!("{{\"{}\\\\\\\"]\":[[]]}} ]", "x".repeat(length));
        let [end_of_string, end_of_nested] = [string.len() - 2, nested.len() - 2].map(Some);
        for level in levels() {
            let found = dispatch!(level, simd => end_of_string_with(simd, string.as_bytes()));
            assert_eq!(found, end_of_string, "{level:?} {string}");
            let found = dispatch!(level, simd => Nesting::default().end_in_with(simd, nested.as_bytes()));
            assert_eq!(found, end_of_nested, "{level:?} {nested}");
        }
    }
}

#[test]
fn plain_characters_end_before_special_ones_at_every_position() {
    let is_plain = |byte: u8| byte >= b' ' && byte != b'"' && byte != b'\\';
    for byte in 0..=u8::MAX {
        for position in 0..16 {
            let mut bytes = [b'x'; 16];
            bytes[position] = byte;
            let expected = if is_plain(byte) { 16 } else { position };
            for level in levels() {
                let found = dispatch!(level, simd => block::n_plain_with(simd, &bytes));
                assert_eq!(found, expected, "{level:?} {byte:#x} at {position}");
            }
        }
    }
}

#[test]
fn strings_are_checked_strictly() {
    for text in
        [r#""""#, r#""a\u0041\/\b\f\n\r\t\"\\""#, r#""\ud83d\uDE00""#, "\"a – b, longer than sixteen bytes\""]
    {
        assert_eq!(string(text), Some(&text[1..text.len() - 1]));
        assert!(serde_json::from_str::<String>(text).is_ok());
    }
    for text in [
        r#""\x""#,
        r#""\u12""#,
        r#""\u12g4""#,
        r#""\ud800""#,
        r#""\ud800\u0041""#,
        r#""\udc00""#,
        "\"\n\"",
        "\"\u{1f}\"",
        r#""a"#,
        r#""\"#,
        "a",
    ] {
        assert_eq!(string(text), None, "{text}");
        assert!(serde_json::from_str::<String>(text).is_err());
    }
}

#[test]
fn a_value_of_any_depth_is_skipped() {
    let deep = format!("{}{}", "[{\"a\":".repeat(100_000), "}]".repeat(100_000));
    assert_eq!(skip(&deep), Some(&*deep));
    assert_eq!(skip(&deep[..deep.len() - 1]), None);
}

#[test]
fn blanks_between_tokens_are_skipped() {
    let mut cursor = Cursor::new("{ \"a\" : 1 ,\n\"b\":[ 1 ] }");
    let mut keys = Vec::new();
    cursor
        .object(|cursor, start, key| {
            keys.push((start, key.raw));
            cursor.skip_value()
        })
        .unwrap();
    assert!(cursor.is_at_end());
    assert_eq!(keys, [(2, "a"), (12, "b")]);
}

proptest! {
    #[test]
    fn blocks_agree_with_a_scan_byte_by_byte(text in r#"[\[{]([\[\]{}"\\ax ]|\\\\\\|\\"){0,300}"#) {
        let expected = end_of_nested_slowly(text.as_bytes());
        prop_assert_eq!(end_of_nested(text.as_bytes(), 0), expected);
        for level in levels() {
            let found = dispatch!(level, simd => Nesting::default().end_in_with(simd, text.as_bytes()));
            prop_assert_eq!(found, expected, "{:?}", level);
        }
    }

    #[test]
    fn ends_of_strings_agree_with_a_scan_byte_by_byte(text in r#"([{}a–]|\\\\|\\"){0,200}"?x{0,80}"#) {
        let expected = end_of_string_slowly(text.as_bytes());
        for level in levels() {
            let found = dispatch!(level, simd => end_of_string_with(simd, text.as_bytes()));
            prop_assert_eq!(found, expected, "{:?}", level);
        }
    }

    #[test]
    fn pieces_agree_with_the_whole_text(text in r#"[\[{]([\[\]{}"\\ax ]|\\\\\\){0,300}"#, sizes in prop::collection::vec(1..130_usize, 1..6)) {
        let (mut nesting, mut start, mut found) = (Nesting::default(), 0, None);
        for size in sizes.iter().cycle() {
            let piece = &text.as_bytes()[start..text.len().min(start + size)];
            if let Some(end) = nesting.end_in(piece) {
                found = Some(start + end);
                break;
            }
            start += piece.len();
            if start == text.len() {
                break;
            }
        }
        prop_assert_eq!(found, end_of_nested_slowly(text.as_bytes()));
    }

    #[test]
    fn values_that_serde_parses_are_skipped(text in r#"([\[\]{}":,\\a0 -]|null|true|1\.5|\\u00e9){0,12}"#) {
        if let Ok(value) = serde_json::from_str::<&RawValue>(&text) {
            let start = text.len() - text.trim_ascii_start().len();
            prop_assert_eq!(skip(&text[start..]), Some(value.get()));
        }
        if let Ok(value) = serde_json::from_str::<String>(&text) {
            let quoted = Cursor::new(text.trim_ascii()).string().unwrap();
            prop_assert!(quoted.is(&value));
        }
        prop_assert_eq!(string(&text).is_some(), text.starts_with('"') && serde_json::Deserializer::from_str(&text).into_iter::<String>().next().unwrap().is_ok());
    }
}
