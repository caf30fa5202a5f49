//! Messages about numbers that their type cannot hold: they name the range of the key, as those about other
//! values do. It does not check values.

use serde_json::Value;

use super::PluginFile;

/// Returns the message for a number, size or duration that its type cannot hold; none for another message of
/// serde, and for a key without a range.
///
/// The key and the value are only in serde's text. If a later version words it differently, the range is
/// missing, but not the error.
pub(super) fn out_of_range(message: &str) -> Option<String> {
    let (key, problem) = message.split_once(": invalid ")?;
    let (_, problem) = problem.split_once(": ")?;
    let (got, expected) = problem.rsplit_once(", expected ")?;
    let got = match got.strip_prefix("integer `") {
        // A duration is a text.
        Some(_) if expected.starts_with("a duration") => return None,
        Some(number) => number.split('`').next()?,
        None => {
            let text = got.strip_prefix("string \"")?.strip_suffix('"')?;
            has_form(text, expected).then_some(text)?
        }
    };
    Some(format!("{key}: {got} is not {}", range_of(key)?))
}

/// Returns whether a text has the form of a size or duration, which is refused only because of its value.
fn has_form(text: &str, expected: &str) -> bool {
    let unit = text.trim_start_matches(|it: char| it.is_ascii_digit());
    if unit.len() == text.len() {
        return false;
    }
    if unit.is_empty() {
        return expected.starts_with("a size");
    }
    let units = expected.split_once("(units: ").and_then(|(_, units)| units.strip_suffix(')'));
    units.is_some_and(|units| units.split(", ").any(|it| it == unit))
}

/// Returns the range of a key such as `limits.memory`, as `between 64Ki and 4Gi`.
fn range_of(key: &str) -> Option<String> {
    let schema = PluginFile::schema();
    let pointer: String = key.split('.').flat_map(|part| ["/properties/", part]).collect();
    let schema = schema.pointer(&pointer)?;
    if let Some(range) = schema.get("x-range").and_then(Value::as_str) {
        // Such as `0s, or 100ms to 1440m`.
        let (zero, range) =
            range.split_once(", or ").map_or((None, range), |(zero, range)| (Some(zero), range));
        let (least, most) = range.split_once(" to ")?;
        let zero = zero.map(|zero| format!("{zero} or ")).unwrap_or_default();
        return Some(format!("{zero}between {least} and {most}"));
    }
    let least = schema.get("minimum")?;
    let most = schema.get("maximum").cloned().unwrap_or_else(|| u64::MAX.into());
    Some(format!("between {least} and {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_messages_about_numbers_of_keys_with_a_range_are_rewritten() {
        let size = "expected a size in bytes such as 64Mi (units: k, M, G, Ki, Mi, Gi)";
        let duration = "expected a duration such as 500ms (units: ms, s, m)";
        let rewritten = |message: &str| out_of_range(message).unwrap_or_else(|| "-".to_owned());
        let message = |key: &str, got: &str, expected: &str| {
            rewritten(&format!("{key}: invalid value: {got}, {expected}"))
        };
        assert_eq!(
            message("limits.memory", "string \"9Gi\"", size),
            "limits.memory: 9Gi is not between 64Ki and 4Gi"
        );
        assert_eq!(
            message("limits.memory", "string \"9\"", size),
            "limits.memory: 9 is not between 64Ki and 4Gi"
        );
        assert_eq!(
            message("instances.recycleAboveMemory", "integer `-1`", size),
            "instances.recycleAboveMemory: -1 is not 0 or between 64Ki and 4Gi"
        );
        assert_eq!(
            message("instances.recycleAfterCalls", "integer `-1`", "expected u64"),
            "instances.recycleAfterCalls: -1 is not between 0 and 18446744073709551615"
        );
        assert_eq!(
            message("instances.idleAfter", "string \"9m\"", duration),
            "instances.idleAfter: 9m is not 0s or between 100ms and 1440m"
        );
        for (key, got, expected) in [
            ("limits.memory", "string \"9MB\"", size),
            ("limits.memory", "string \"Gi\"", size),
            ("limits.callDeadline", "string \"9\"", duration),
            ("limits.callDeadline", "integer `9`", duration),
            ("name", "integer `9`", "expected a text (a number needs quotes)"),
            ("config.a", "integer `9`", "expected a mapping"),
            ("concurrency", "string \"many\"", "expected u32"),
        ] {
            assert_eq!(message(key, got, expected), "-", "{key}: {got}");
        }
        assert_eq!(rewritten("invalid value: integer `-1`, expected u32"), "-", "TOML has no key");
    }
}
