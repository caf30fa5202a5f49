//! The binding with which a namespace lets the host act as its ServiceAccounts.

use std::fmt::Write;

use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};

use super::metadata;
use crate::{account::Account, report::OneLine};

/// The ClusterRole of the installation that allows to act as ServiceAccounts, and the name of the binding.
pub const IMPERSONATOR: &str = "oarlock-impersonator";
/// The ClusterRole that allows it for requests in the same namespace only.
pub const CONSTRAINED_IMPERSONATOR: &str = "oarlock-impersonator-constrained";

/// In which requests the host may act as an account of the namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Impersonation {
    /// In all that the account may make.
    Unconstrained,
    /// In those in the account's namespace. Needs Kubernetes 1.36.
    Constrained,
}

/// Returns the RoleBinding of a namespace, as YAML with a comment. It has no Namespace before it: who may
/// bind the role often may not write namespaces.
pub fn opt_in(
    host: &Account,
    namespace: &str,
    impersonation: Impersonation,
) -> Result<String, serde_norway::Error> {
    let (role, where_) = match impersonation {
        Impersonation::Unconstrained => (IMPERSONATOR, "in every request that they may make"),
        Impersonation::Constrained => {
            (CONSTRAINED_IMPERSONATOR, "on objects of this namespace (Kubernetes 1.36)")
        }
    };
    let binding = RoleBinding {
        metadata: metadata(IMPERSONATOR, Some(namespace)),
        role_ref: RoleRef {
            api_group: Some("rbac.authorization.k8s.io".to_owned()),
            kind: "ClusterRole".to_owned(),
            name: role.to_owned(),
        },
        subjects: Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: host.name.clone(),
            namespace: Some(host.namespace.clone()),
            ..Subject::default()
        }]),
    };
    let mut yaml = String::new();
    let comment =
        format!("Lets the host {host} act as the ServiceAccounts of the namespace {namespace}, {where_}.");
    // Writing into a String cannot fail.
    let _ = writeln!(yaml, "# {}", OneLine(&comment));
    let _ = writeln!(yaml, "# To stop all Plugins of the namespace, delete this binding.");
    yaml.push_str(&crate::yaml::to_string(&binding)?);
    Ok(yaml)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binding_of_a_namespace_names_the_host_and_the_role() {
        let host = "oarlock-system/oarlock".parse().unwrap();
        insta::assert_snapshot!(opt_in(&host, "team-a", Impersonation::Unconstrained).unwrap(), @"
        # Lets the host oarlock-system/oarlock act as the ServiceAccounts of the namespace team-a, in every request that they may make.
        # To stop all Plugins of the namespace, delete this binding.
        apiVersion: rbac.authorization.k8s.io/v1
        kind: RoleBinding
        metadata:
          labels:
            app.kubernetes.io/managed-by: oarlock
          name: oarlock-impersonator
          namespace: team-a
        roleRef:
          apiGroup: rbac.authorization.k8s.io
          kind: ClusterRole
          name: oarlock-impersonator
        subjects:
        - kind: ServiceAccount
          name: oarlock
          namespace: oarlock-system
        ");
        let constrained = opt_in(&host, "team-a", Impersonation::Constrained).unwrap();
        assert!(constrained.contains("  name: oarlock-impersonator\n  namespace: team-a\n"), "{constrained}");
        assert!(constrained.contains("  name: oarlock-impersonator-constrained\n"), "{constrained}");
    }
}
