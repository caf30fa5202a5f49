//! The responses of `/livez` and `/readyz`, in the format of Kubernetes' own components.
//!
//! Where everybody may read them, the reason of a failed check is withheld, as there; the page of that check,
//! for which credentials are needed, has it. On a loopback address the reasons are in the list.

use std::collections::BTreeSet;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::health::Check;

/// Whether a list of checks says why one failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reasons {
    Shown,
    /// Neither reasons nor notes are shown.
    Withheld,
}

/// Returns the response for all checks except the excluded ones. It names each check if the query has
/// `verbose`, or if one fails. `notes` are lines for people, which do not change the status code.
pub(super) fn all(
    name: &str,
    checks: Vec<Check>,
    notes: &[String],
    query: &[(String, String)],
    reasons: Reasons,
) -> Response {
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
            let reason = match reasons {
                Reasons::Shown => check.failures.join("; "),
                Reasons::Withheld => "reason withheld".to_owned(),
            };
            lines.push_str(&format!("[-]{} failed: {reason}\n", check.name));
        }
    }
    if !excluded.is_empty() {
        let unknown: Vec<_> = excluded.into_iter().map(|name| format!("{name:?}")).collect();
        let unknown = unknown.join(",");
        lines.push_str(&format!("warn: some health checks cannot be excluded: no matches for {unknown}\n"));
    }
    let notes = if reasons == Reasons::Shown { notes } else { &[] };
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
