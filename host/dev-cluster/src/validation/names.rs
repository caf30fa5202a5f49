//! The formats of names, and their error messages.
//!
//! The crate `oarlock-label-selector` has those of label keys and values, and of subdomains.

use crate::status::GroupKind;
use oarlock_label_selector::validation::subdomain_faults;

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";

/// The format of a kind's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// RFC 1123 subdomain, the format of most kinds.
    Subdomain,
    /// RFC 1123 label.
    Label,
    /// Any text that fits into one segment of a path.
    PathSegment,
}

// === impl NameRule ===

impl NameRule {
    pub(crate) fn of(kind: &GroupKind) -> Self {
        match (kind.group.as_str(), kind.kind.as_str()) {
            ("", "Namespace" | "Service") => Self::Label,
            ("rbac.authorization.k8s.io", _) => Self::PathSegment,
            _ => Self::Subdomain,
        }
    }

    /// Returns the errors of a name.
    pub(super) fn faults(self, name: &str) -> Vec<String> {
        match self {
            Self::Subdomain => subdomain_faults(name),
            Self::Label if name.contains('.') => vec!["must not contain dots".into()],
            Self::Label => label_faults(name),
            Self::PathSegment => {
                if name == "." || name == ".." {
                    return vec![format!("may not be '{name}'")];
                }
                ["/", "%"]
                    .iter()
                    .filter(|illegal| name.contains(**illegal))
                    .map(|illegal| format!("may not contain '{illegal}'"))
                    .collect()
            }
        }
    }
}

pub(super) fn label_faults(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > 63 {
        faults.push("must be no more than 63 characters".into());
    }
    if !is_label(name) {
        faults.push(format!(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
             end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
        ));
    }
    faults
}

fn is_label(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !name.is_empty() && name.bytes().all(inner) && !name.starts_with('-') && !name.ends_with('-')
}

/// Keys of ConfigMaps and Secrets.
pub(super) fn config_key_faults(key: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if key.len() > 253 {
        faults.push("must be no more than 253 characters".into());
    }
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) {
        faults.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .into(),
        );
    }
    if key == "." || key == ".." {
        faults.push(format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        faults.push("must not start with '..'".into());
    }
    faults
}
