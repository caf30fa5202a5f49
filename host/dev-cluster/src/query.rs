//! The query parameters of a request.

use crate::status::{Cause, GroupKind, StatusError};
use http::HeaderMap;
use http::header::USER_AGENT;

/// The decoded pairs of a query string.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

/// The options of a list or watch, without its selectors.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    pub(crate) watch: bool,
    pub(crate) limit: usize,
    pub(crate) continue_token: String,
    pub(crate) resource_version: Version,
    pub(crate) version_match: Option<VersionMatch>,
    pub(crate) send_initial_events: Option<bool>,
    pub(crate) bookmarks: bool,
    pub(crate) timeout_seconds: Option<u64>,
}

/// `resourceVersion`: missing, `0`, or a number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Version {
    #[default]
    Unset,
    Any,
    At(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum VersionMatch {
    Exact,
    NotOlderThan,
}

/// Returns the decoded names and values of a query string.
pub(crate) fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decode(name), decode(value))
    })
}

// === impl Query ===

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        Self { pairs: pairs(query).collect() }
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(is_true)
    }

    /// Returns the field manager of a request.
    pub(crate) fn manager(&self, headers: &HeaderMap) -> String {
        match self.get("fieldManager") {
            Some(manager) if !manager.is_empty() => manager.to_owned(),
            _ => {
                let agent = headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
                let name = agent.unwrap_or_default().split('/').next().unwrap_or_default();
                name.chars().filter(|c| !c.is_control()).take(128).collect()
            }
        }
    }

    fn number(&self, name: &str) -> Result<Option<i64>, StatusError> {
        match self.get(name).filter(|value| !value.is_empty()) {
            None => Ok(None),
            Some(value) => value.parse().map(Some).map_err(|_| {
                StatusError::bad_request(format!("strconv.ParseInt: parsing {value:?}: invalid syntax"))
            }),
        }
    }

    /// Returns whether the request is a dry run (`dryRun=All`).
    pub(crate) fn dry_run(&self) -> Result<bool, StatusError> {
        match self.get("dryRun") {
            None | Some("") => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(StatusError::invalid(
                &GroupKind::new("meta.k8s.io", "CreateOptions"),
                "",
                vec![Cause::new(
                    "FieldValueNotSupported",
                    "dryRun",
                    format!("Unsupported value: [{other:?}]: supported values: \"All\""),
                )],
            )),
        }
    }

    pub(crate) fn list_options(&self) -> Result<ListOptions, StatusError> {
        let text = |name: &str| self.get(name).unwrap_or_default().to_owned();
        let watch = self.flag("watch");
        let mut options = ListOptions {
            watch,
            limit: usize::try_from(self.number("limit")?.unwrap_or(0)).unwrap_or(0),
            continue_token: text("continue"),
            resource_version: self.resource_version()?,
            version_match: None,
            send_initial_events: self.get("sendInitialEvents").map(is_true),
            bookmarks: self.flag("allowWatchBookmarks"),
            timeout_seconds: self
                .number("timeoutSeconds")?
                .and_then(|s| u64::try_from(s).ok())
                .filter(|s| *s > 0),
        };
        let mut causes = Vec::new();
        options.version_match = self.version_match(&options, &mut causes);
        if causes.is_empty() {
            Ok(options)
        } else {
            Err(StatusError::invalid(&GroupKind::new("meta.k8s.io", "ListOptions"), "", causes))
        }
    }

    fn resource_version(&self) -> Result<Version, StatusError> {
        match self.get("resourceVersion") {
            None | Some("") => Ok(Version::Unset),
            Some("0") => Ok(Version::Any),
            Some(text) => text.parse().map(Version::At).map_err(|_| {
                let message = format!(
                    "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
                );
                if self.flag("watch") {
                    StatusError::untranslated(message)
                } else {
                    StatusError::bad_request(format!("invalid resource version: {message}"))
                }
            }),
        }
    }

    fn version_match(&self, options: &ListOptions, causes: &mut Vec<Cause>) -> Option<VersionMatch> {
        let mut forbidden = |field: &str, why: &str| causes.push(Cause::forbidden(field, why));
        let text = self.get("resourceVersionMatch").filter(|text| !text.is_empty());
        let found = match text {
            None => None,
            Some("Exact") => Some(VersionMatch::Exact),
            Some("NotOlderThan") => Some(VersionMatch::NotOlderThan),
            // For a watch, another check reports this error together with the others.
            Some(_) if options.watch => None,
            Some(other) => {
                causes.push(Cause::new(
                    "FieldValueNotSupported",
                    "resourceVersionMatch",
                    format!(
                        "Unsupported value: {other:?}: supported values: \"Exact\", \"NotOlderThan\", \"\""
                    ),
                ));
                return None;
            }
        };
        if options.watch {
            match (options.send_initial_events, found, text) {
                (Some(_), Some(VersionMatch::NotOlderThan), _) | (None, None, None) => {}
                (Some(_), _, _) => forbidden(
                    "resourceVersionMatch",
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ),
                (None, _, _) => forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ),
            }
            if let Some(text) = text.filter(|text| *text != "NotOlderThan") {
                causes.push(Cause::new(
                    "FieldValueNotSupported",
                    "resourceVersionMatch",
                    format!("Unsupported value: {text:?}: supported values: \"NotOlderThan\""),
                ));
            }
            return found;
        }
        if options.send_initial_events.is_some() {
            forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
        }
        if found.is_some() {
            if options.resource_version == Version::Unset {
                forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                );
            }
            if !options.continue_token.is_empty() {
                forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch is forbidden when continue is provided",
                );
            }
            if found == Some(VersionMatch::Exact) && options.resource_version == Version::Any {
                forbidden(
                    "resourceVersionMatch",
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                );
            }
        }
        found
    }
}

fn is_true(value: &str) -> bool {
    !matches!(value, "false" | "0" | "False" | "FALSE" | "f" | "F")
}

/// Decodes percent and plus encoding. Bytes that are not UTF-8 become replacement characters.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = bytes.get(at + 1..at + 3).and_then(|hex| std::str::from_utf8(hex).ok());
        match (bytes[at], hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'%', Some(byte)) => {
                plain.push(byte);
                at += 2;
            }
            (b'+', _) => plain.push(b' '),
            (byte, _) => plain.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc+in+%28d%29&watch=1&limit=5");
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        let options = query.list_options().unwrap();
        assert!(options.watch);
        assert_eq!(options.limit, 5);
    }

    #[test]
    fn version_match_needs_a_version() {
        let error = Query::parse("resourceVersionMatch=Exact").list_options().unwrap_err();
        assert_eq!(
            error.message,
            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is \
             forbidden unless resourceVersion is provided"
        );
    }

    #[test]
    fn initial_events_need_the_match() {
        let query = Query::parse("watch=true&sendInitialEvents=true");
        assert_eq!(query.list_options().unwrap_err().code, 422);
        let query = Query::parse("watch=true&sendInitialEvents=true&resourceVersionMatch=Roughly");
        let message = query.list_options().unwrap_err().message;
        assert!(
            message.ends_with("Unsupported value: \"Roughly\": supported values: \"NotOlderThan\"]"),
            "{message}"
        );
        let query = Query::parse("watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
        assert_eq!(query.list_options().unwrap().send_initial_events, Some(true));
    }
}
