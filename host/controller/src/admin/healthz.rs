//! The answers of `/livez` and `/readyz`, in the words of Kubernetes' own components.
//!
//! The reason of a failure is not withheld: what is wrong is no secret, and it is what an operator looks for.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::health::Check;

/// Answers with all checks but those that are excluded. Each is named with `verbose`, and whenever one fails; `notes` are lines for people, which
/// change nothing.
pub(super) fn all(name: &str, checks: Vec<Check>, notes: &[String], query: &[(String, String)]) -> Response {
    let is_verbose = query.iter().any(|(name, _)| name == "verbose");
    let mut excluded: BTreeSet<&str> =
        query.iter().filter(|(name, _)| name == "exclude").map(|(_, check)| &**check).collect();
    let mut lines = String::new();
    let mut all_hold = true;
    for check in checks {
        if excluded.remove(check.name) {
            lines.push_str(&format!("[+]{} excluded: ok\n", check.name));
        } else if check.holds() {
            lines.push_str(&format!("[+]{} ok\n", check.name));
        } else {
            all_hold = false;
            lines.push_str(&format!("[-]{} failed: {}\n", check.name, check.failures.join("; ")));
        }
    }
    if !excluded.is_empty() {
        let unknown: Vec<_> = excluded.into_iter().map(|name| format!("{name:?}")).collect();
        let unknown = unknown.join(",");
        lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {unknown}\n"));
    }
    let notes: String = notes.iter().map(|note| format!("{note}\n")).collect();
    match (all_hold, is_verbose) {
        (true, false) => format!("ok\n{notes}").into_response(),
        (true, true) => format!("{lines}{notes}{name} check passed\n").into_response(),
        (false, _) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("{lines}{notes}{name} check failed\n")).into_response()
        }
    }
}

/// Answers with one check.
pub(super) fn one(checks: Vec<Check>, name: &str) -> Response {
    match checks.into_iter().find(|check| check.name == name) {
        None => (StatusCode::NOT_FOUND, format!("there is no check {name:?}\n")).into_response(),
        Some(check) if check.holds() => "ok\n".into_response(),
        Some(check) => (StatusCode::SERVICE_UNAVAILABLE, check.failures.join("\n") + "\n").into_response(),
    }
}
