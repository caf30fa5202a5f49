//! The name of the ServiceAccount that a plugin acts as.
//!
//! [`identity`](crate::identity) checks whether the account exists, [`access`](crate::access) what it may do.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The account of the host in an installation that names no other one.
pub const DEFAULT_HOST_ACCOUNT: &str = "oarlock-system/oarlock";

/// The name of one ServiceAccount.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a mapping such as {namespace: oarlock-plugins, name: my-plugin}")]
pub struct Account {
    /// The account's namespace.
    pub namespace: String,
    /// The account's name.
    pub name: String,
}

/// The error for a text that names no ServiceAccount.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` names no ServiceAccount: write it as namespace/name")]
pub struct ParseError(String);

// === impl Account ===

impl Account {
    /// Returns the user name under which the API server knows the account.
    #[must_use]
    pub fn username(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// Returns the account with this user name; none if it is the name of another user.
    #[must_use]
    pub fn of_username(username: &str) -> Option<Self> {
        let (namespace, name) = username.strip_prefix("system:serviceaccount:")?.split_once(':')?;
        Some(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }

    /// Returns the groups that the API server assigns to every ServiceAccount of this namespace.
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
    fn an_account_has_the_user_name_and_groups_of_the_api_server() {
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
