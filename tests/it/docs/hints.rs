//! Finds the hints in a source of the host: texts that say what to do about an error.
//!
//! A hint is a string in one of these places. This is no parser of Rust: it knows how the host writes hints.
//!
//! - the arguments of `.hint(…)`, `.hint_if(…)`, `.kubectl_hint(…)`
//! - the body of a function with `hint` in its name
//! - `let hint = …;`, `let (…, hint) = …;`, `const …HINT: … = …;`
//! - `hint: …` in a struct
//! - after `Fix: ` in any string

/// Where a hint begins, and what ends it.
const PLACES: [(&str, End); 9] = [
    (".hint(", End::Bracket),
    (".kubectl_hint(", End::Bracket),
    (".hint_if(", End::Bracket),
    ("fn hint", End::Body),
    ("fn forbidden_hint", End::Body),
    ("let hint = ", End::Semicolon),
    (", hint) = ", End::Semicolon),
    ("HINT: &str = ", End::Semicolon),
    (" hint: ", End::Comma),
];

/// What ends the text with a hint.
#[derive(Clone, Copy)]
enum End {
    /// The bracket that closes the one before it.
    Bracket,
    /// The brace that closes the next one.
    Body,
    Semicolon,
    /// A comma, or the end of the struct.
    Comma,
}

/// Returns the hints of a source, in which a string is one line.
pub(super) fn hints(source: &str) -> Vec<String> {
    let mut hints = Vec::new();
    for (place, end) in PLACES {
        for (at, _) in source.match_indices(place) {
            hints.extend(strings(extent(&source[at + place.len()..], end)));
        }
    }
    for string in strings(source) {
        if let Some((_, fix)) = string.split_once("Fix: ") {
            hints.push(fix.to_owned());
        }
    }
    // A pair such as `(what, hint)` has other texts too: they are messages, which the pages have as well.
    hints.retain(|hint| hint.len() > 8 && !hint.starts_with("{}"));
    hints
}

/// Returns the text up to its end.
fn extent(text: &str, end: End) -> &str {
    let mut depth = 0_usize;
    let mut is_string = false;
    let mut has_begun = false;
    let mut before = ' ';
    for (at, char) in text.char_indices() {
        if char == '"' && before != '\\' {
            is_string = !is_string;
        }
        before = char;
        if is_string {
            continue;
        }
        match (char, end) {
            ('(' | '{' | '[', _) => {
                depth += 1;
                has_begun |= char == '{';
            }
            (')' | '}' | ']', _) if depth == 0 => return &text[..at],
            (')' | '}' | ']', _) => {
                depth -= 1;
                if matches!(end, End::Body) && char == '}' && has_begun && depth == 0 {
                    return &text[..at];
                }
            }
            (';', End::Semicolon) | (',', End::Comma) if depth == 0 => return &text[..at],
            _ => {}
        }
    }
    text
}

/// Returns the strings of some code.
fn strings(code: &str) -> Vec<String> {
    let mut strings = Vec::new();
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let mut rest = line;
        while let Some((_, string)) = rest.split_once('"') {
            let Some(end) = end_of(string) else { break };
            strings.push(string[..end].replace("\\\"", "\""));
            rest = &string[end + 1..];
        }
    }
    strings
}

/// Returns where a string ends.
fn end_of(string: &str) -> Option<usize> {
    let mut is_escaped = false;
    string.char_indices().find_map(|(at, char)| {
        let is_end = char == '"' && !is_escaped;
        is_escaped = char == '\\' && !is_escaped;
        is_end.then_some(at)
    })
}

#[test]
fn hints_are_found_in_each_place() {
    let source = r#"
        // a "comment"
        Err(Failure::caller("not this").hint(format!("check {} and \"it\"", name))).and("nor this");
        let (what, hint) = match kind { A => ("what happened", "do the first"), B => ("other", f(1)) };
        pub(super) fn hint(&self) -> &'static str { match self { A => "do the second thing" } }
        const ASSETS_HINT: &str = "do the third thing";
        Self { error, hint: Some("do the fourth".to_owned()), other: "nor that one" }
        write!(f, "lost it. Fix: do the fifth")
    "#;
    let found = hints(source);
    for hint in [
        "check {} and \"it\"",
        "do the first",
        "do the second thing",
        "do the third thing",
        "do the fourth",
        "do the fifth",
    ] {
        assert!(found.iter().any(|it| it == hint), "{hint:?} is not in {found:?}");
    }
    assert!(
        !found.iter().any(|it| it.contains("not this") || it.contains("nor th") || it.contains("comment"))
    );
}
