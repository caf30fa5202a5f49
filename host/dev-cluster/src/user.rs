//! The user of a request: the authenticated one, or the one that the request impersonates.

use std::collections::BTreeMap;

/// The name, uid, groups and extra of a user, as in a SubjectAccessReview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UserInfo {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) groups: Vec<String>,
    pub(crate) extra: BTreeMap<String, Vec<String>>,
}

/// The members of this group are allowed everything, regardless of RBAC.
pub(crate) const MASTERS: &str = "system:masters";
/// The group of all authenticated users.
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
/// The group of all unauthenticated users.
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The name of an unauthenticated user.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

// === impl UserInfo ===

impl UserInfo {
    /// Returns a user in these groups and in `system:authenticated`.
    pub(crate) fn new<S: Into<String>>(name: impl Into<String>, groups: impl IntoIterator<Item = S>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().map(Into::into).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.into());
        }
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// Returns the unauthenticated user.
    pub(crate) fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// Returns the user of a ServiceAccount, with its groups.
    pub(crate) fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(
            format!("system:serviceaccount:{namespace}:{name}"),
            ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
        )
    }

    /// Returns the namespace and name if this user is a ServiceAccount.
    pub(crate) fn as_service_account(&self) -> Option<(&str, &str)> {
        self.name.strip_prefix("system:serviceaccount:")?.split_once(':')
    }

    pub(crate) fn in_group(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }
}
