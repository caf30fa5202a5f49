//! Who is asking: the identity that authentication found, or that the request impersonates.

use std::collections::BTreeMap;

/// Name, uid, groups and extra of a requester, as SubjectAccessReviews carry them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The group whose members may do everything, whatever the Roles say.
pub const MASTERS: &str = "system:masters";
/// The group of everybody who showed credentials.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody who showed none.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of a requester without credentials.
pub const ANONYMOUS: &str = "system:anonymous";

// === impl UserInfo ===

impl UserInfo {
    /// Returns a user in the given groups and in `system:authenticated`.
    pub fn new<S: Into<String>>(name: impl Into<String>, groups: impl IntoIterator<Item = S>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().map(Into::into).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.into());
        }
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// Returns the one who showed no credentials.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// Returns a ServiceAccount's user, with the groups that come with it.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(
            format!("system:serviceaccount:{namespace}:{name}"),
            ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
        )
    }

    /// Returns namespace and name if this user is a ServiceAccount.
    pub fn as_service_account(&self) -> Option<(&str, &str)> {
        self.name.strip_prefix("system:serviceaccount:")?.split_once(':')
    }

    pub fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}
