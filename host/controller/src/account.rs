//! The ServiceAccount that a plugin acts as.
//!
//! Nothing here asks whether it exists or what it may do; see [`access`](crate::access).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// Names one ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a mapping such as {namespace: oarlock-plugins, name: my-plugin}")]
pub struct Account {
    /// The namespace it lives in.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Why a text names no ServiceAccount.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` names no ServiceAccount: write it as namespace/name")]
pub struct ParseError(String);

// === impl Account ===

impl Account {
    /// The user name under which the API server knows it.
    #[must_use]
    pub fn username(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// The groups that the API server puts every ServiceAccount of this namespace into.
    #[must_use]
    pub fn groups(&self) -> Vec<String> {
        vec![
            "system:serviceaccounts".to_owned(),
            format!("system:serviceaccounts:{}", self.namespace),
            "system:authenticated".to_owned(),
        ]
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl FromStr for Account {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(ParseError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_known_to_the_api_server_by_user_and_groups() {
        let account: Account = "oarlock-plugins/mirror".parse().unwrap();
        assert_eq!(account.username(), "system:serviceaccount:oarlock-plugins:mirror");
        assert_eq!(
            account.groups(),
            ["system:serviceaccounts", "system:serviceaccounts:oarlock-plugins", "system:authenticated"]
        );
        assert_eq!(account.to_string(), "oarlock-plugins/mirror");
        for bad in ["", "mirror", "/mirror", "a/", "a/b/c"] {
            assert!(bad.parse::<Account>().is_err(), "{bad}");
        }
    }
}
