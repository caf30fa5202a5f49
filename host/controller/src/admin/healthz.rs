//! The responses of `/livez` and `/readyz`, in the format of Kubernetes' own components.
//!
//! Unlike those, a response contains the reason of a failed check: it is no secret, and the operator needs
//! it.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::health::Check;

/// Returns the response for all checks except the excluded ones. It names each check if the query has
/// `verbose`, or if one fails. `notes` are lines for people, which do not change the status code.
pub(super) fn all(name: &str, checks: Vec<Check>, notes: &[String], query: &[(String, String)]) -> Response {
    let is_verbose = query.iter().any(|(name, _)| name == "verbose");
    let mut excluded: BTreeSet<&str> =
        query.iter().filter(|(name, _)| name == "exclude").map(|(_, check)| &**check).collect();
    let mut lines = String::new();
    let mut all_pass = true;
    for check in checks {
        if excluded.remove(check.name) {
            lines.push_str(&format!("[+]{} excluded: ok\n", check.name));
        } else if check.passes() {
            lines.push_str(&format!("[+]{} ok\n", check.name));
        } else {
            all_pass = false;
            lines.push_str(&format!("[-]{} failed: {}\n", check.name, check.failures.join("; ")));
        }
    }
    if !excluded.is_empty() {
        let unknown: Vec<_> = excluded.into_iter().map(|name| format!("{name:?}")).collect();
        let unknown = unknown.join(",");
        lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {unknown}\n"));
    }
    let notes: String = notes.iter().map(|note| format!("{note}\n")).collect();
    match (all_pass, is_verbose) {
        (true, false) => format!("ok\n{notes}").into_response(),
        (true, true) => format!("{lines}{notes}{name} check passed\n").into_response(),
        (false, _) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("{lines}{notes}{name} check failed\n")).into_response()
        }
    }
}

/// Returns the response for one check.
pub(super) fn one(checks: Vec<Check>, name: &str) -> Response {
    match checks.into_iter().find(|check| check.name == name) {
        None => (StatusCode::NOT_FOUND, format!("unknown check {name:?}\n")).into_response(),
        Some(check) if check.passes() => "ok\n".into_response(),
        Some(check) => (StatusCode::SERVICE_UNAVAILABLE, check.failures.join("\n") + "\n").into_response(),
    }
}
