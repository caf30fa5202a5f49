//! What the operator of the host allows: the file of `--source-policy`.

mod file;
mod pattern;
mod signatures;

use std::{collections::BTreeMap, net::IpAddr, path::Path};

use ipnet::IpNet;
use rustls::pki_types::CertificateDer;

use self::{
    file::{Kind, PolicyFile},
    pattern::Pattern,
};
use crate::{
    address,
    error::{Error, Reason},
    signature::Signers,
    source::Member,
};

/// The size of the largest component, if the policy does not say it: what the host compiles at most.
pub(crate) const DEFAULT_MAX_BYTES: u64 = 64 << 20;

/// What the operator of the host allows.
///
/// The default allows each kind of source, and each registry and server that has a public address and answers
/// over TLS. Kubernetes does the same for the images of Pods: who may create Plugins is decided by RBAC, and
/// what a plugin may do by the rights of its account, whatever its component does. It allows no private
/// address, because the host may reach servers that the author of a Plugin may not.
#[derive(Debug, Clone)]
pub struct Policy {
    kinds: Vec<Kind>,
    /// None: everything.
    allow: Option<Vec<Pattern>>,
    private_hosts: Vec<String>,
    private_networks: Vec<IpNet>,
    any_address: bool,
    plain_http: Vec<String>,
    mirrors: BTreeMap<String, Vec<String>>,
    pub(crate) roots: Vec<CertificateDer<'static>>,
    pub(crate) max_bytes: u64,
    signatures: Vec<(Pattern, Signers)>,
}

// === impl Policy ===

impl Default for Policy {
    fn default() -> Self {
        Self {
            kinds: Kind::ALL.to_vec(),
            allow: None,
            private_hosts: Vec::new(),
            private_networks: Vec::new(),
            any_address: false,
            plain_http: Vec::new(),
            mirrors: BTreeMap::new(),
            roots: Vec::new(),
            max_bytes: DEFAULT_MAX_BYTES,
            signatures: Vec::new(),
        }
    }
}

impl Policy {
    /// Reads a policy file, and the files of keys and certificates that it names. Blocks.
    pub fn read(path: &Path) -> Result<Self, Error> {
        PolicyFile::read(path)?.into_policy(path.parent().unwrap_or(Path::new(".")))
    }

    /// Returns the JSON schema of a policy file.
    #[must_use]
    pub fn schema() -> serde_json::Value {
        PolicyFile::schema()
    }

    /// Returns the policy for the commands of a person: any address, and plain HTTP for these hosts.
    #[must_use]
    pub fn of_person(plain_http: Vec<String>) -> Self {
        Self { any_address: true, plain_http, ..Self::default() }
    }

    /// Returns an error if this kind of source is not allowed.
    pub(crate) fn check_kind(&self, member: Member<'_>) -> Result<(), Error> {
        let kind = Kind::of(member);
        if self.kinds.contains(&kind) {
            return Ok(());
        }
        Err(Error::new(Reason::NotAllowed, format!("the policy of this host allows no {kind} sources"))
            .hint("use a source of a kind that the policy lists in kinds, or ask the operator of the host"))
    }

    /// Returns an error if a registry with repository, or host with path, is not in the allow-list.
    pub(crate) fn check_allowed(&self, name: &str) -> Result<(), Error> {
        match &self.allow {
            Some(allow) if !allow.iter().any(|pattern| pattern.matches(name)) => {
                Err(Error::new(Reason::NotAllowed, format!("the policy of this host does not allow {name}"))
                    .hint("use a place that the policy lists in allow, or ask the operator of the host"))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the host may connect to this address when it was found under this name, which has no
    /// port.
    pub(crate) fn is_address_allowed(&self, host: &str, address: IpAddr) -> bool {
        self.any_address
            || address::is_public(address)
            || self.private_hosts.iter().any(|listed| listed == host)
            || self.private_networks.iter().any(|network| network.contains(&address.to_canonical()))
    }

    /// Returns whether a host, with its port if it has one, is asked over plain HTTP.
    pub(crate) fn is_plain_http(&self, host: &str) -> bool {
        self.plain_http.iter().any(|listed| listed == host)
    }

    /// Returns the mirrors of a registry, in order: hosts, with or without a path.
    pub(crate) fn mirrors(&self, registry: &str) -> &[String] {
        self.mirrors.get(registry).map_or(&[], Vec::as_slice)
    }

    /// Returns who must have signed what has this name, or none if no signature is required. The longest
    /// pattern decides.
    pub(crate) fn signers_of(&self, name: &str) -> Option<&Signers> {
        let matching = self.signatures.iter().filter(|(pattern, _)| pattern.matches(name));
        let longest = matching.max_by_key(|(pattern, _)| pattern.len());
        longest.map(|(_, signers)| signers).filter(|it| !it.is_empty())
    }
}

#[cfg(test)]
mod tests;
