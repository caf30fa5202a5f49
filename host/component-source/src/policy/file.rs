//! The policy as it is written.

use std::{
    fmt, fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use ipnet::IpNet;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Deserialize;

use super::{DEFAULT_MAX_BYTES, Pattern, Policy, signatures::SignaturesOf};
use crate::{
    error::{Error, Reason},
    reference::is_host,
    signature::Root,
    source::Member,
};

/// The longest file of a policy, a key or certificates.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The source policy of a host, in YAML.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct PolicyFile {
    /// The kinds of sources that plugins may have.
    #[serde(default = "all_kinds")]
    kinds: Vec<Kind>,
    /// The registries with repositories, and the hosts with paths, that are allowed: `ghcr.io/team-a/*`, or
    /// without `/*` one exact name. Everything, if it is absent.
    #[serde(default)]
    allow: Option<Vec<String>>,
    /// The hosts, without port, and the networks, such as `10.0.0.0/8`, whose addresses may be private,
    /// link-local or loopback.
    #[serde(default)]
    private_addresses: Vec<String>,
    /// The registries, with their port, that are asked over plain HTTP.
    #[serde(default)]
    plain_http: Vec<String>,
    /// The mirrors of registries.
    #[serde(default)]
    mirrors: Vec<MirrorsOf>,
    /// Files with further certificate authorities in PEM, relative to the folder of this file. They are
    /// trusted beside those of the system.
    #[serde(default)]
    certificate_authorities: Vec<PathBuf>,
    /// The largest component, in bytes.
    #[serde(default = "default_max_bytes")]
    #[schemars(range(min = 1))]
    max_bytes: u64,
    /// Which artifacts must be signed. The longest pattern that matches decides.
    #[serde(default)]
    signatures: Vec<SignaturesOf>,
    /// The file with the certificates and keys that signatures without a key are verified with, as
    /// `cosign trusted-root create` writes it, relative to the folder of this file.
    #[serde(default)]
    trusted_root: Option<PathBuf>,
}

/// The mirrors of one registry.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MirrorsOf {
    /// The registry, as references name it.
    registry: String,
    /// The hosts of the mirrors, with or without a path that is put in front of the repository. They are
    /// asked in this order, and the registry last.
    endpoints: Vec<String>,
}

/// A kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum Kind {
    /// An artifact in a registry.
    Oci,
    /// A file of an HTTPS server.
    Https,
    /// A key of a ConfigMap.
    ConfigMap,
    /// A key of a Secret.
    Secret,
    /// A file of the host.
    File,
}

fn all_kinds() -> Vec<Kind> {
    Kind::ALL.to_vec()
}

fn default_max_bytes() -> u64 {
    DEFAULT_MAX_BYTES
}

// === impl PolicyFile ===

impl PolicyFile {
    pub(super) fn schema() -> serde_json::Value {
        let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
        settings.into_generator().into_root_schema_for::<Self>().to_value()
    }

    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let text = read(path)?;
        serde_norway::from_str(&text).map_err(|error| {
            let place =
                error.location().map(|it| format!(":{}:{}", it.line(), it.column())).unwrap_or_default();
            refused(format!("{}{place}: {error}", path.display()))
        })
    }

    /// Checks the values, and reads the files that are named.
    pub(super) fn into_policy(self, folder: &Path) -> Result<Policy, Error> {
        let Self {
            kinds,
            allow,
            private_addresses,
            plain_http,
            mirrors,
            certificate_authorities,
            max_bytes,
            signatures,
            trusted_root,
        } = self;

        let allow = allow.map(|it| it.iter().map(|text| pattern("allow", text)).collect()).transpose()?;
        let (networks, hosts): (Vec<_>, Vec<_>) = private_addresses
            .into_iter()
            .partition(|it| it.contains('/') || it.parse::<std::net::IpAddr>().is_ok());
        let network = |text: &String| {
            let network =
                text.parse::<IpNet>().or_else(|_| text.parse::<std::net::IpAddr>().map(IpNet::from));
            network.map_err(|_| {
                refused(format!("privateAddresses: {text:?} is not a network such as 10.0.0.0/8"))
            })
        };
        for text in &hosts {
            if !is_host(text) || text.contains(':') {
                return Err(refused(format!(
                    "privateAddresses: {text:?} is not a host without scheme and port"
                )));
            }
        }
        for text in &plain_http {
            check_host("plainHttp", text)?;
        }
        let mut all_mirrors = std::collections::BTreeMap::new();
        for MirrorsOf { registry, endpoints } in mirrors {
            check_host("mirrors: registry", &registry)?;
            for endpoint in &endpoints {
                check_host("mirrors: endpoints", endpoint.split('/').next().unwrap_or_default())?;
            }
            if all_mirrors.insert(registry.clone(), endpoints).is_some() {
                return Err(refused(format!("mirrors: {registry} is there twice")));
            }
        }
        let mut roots = Vec::new();
        for file in &certificate_authorities {
            let pem = read(&folder.join(file))?;
            let before = roots.len();
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                roots.push(certificate.map_err(|error| refused(format!("{}: {error}", file.display())))?);
            }
            if roots.len() == before {
                return Err(refused(format!(
                    "certificateAuthorities: {} has no certificate",
                    file.display()
                )));
            }
        }
        let root = match trusted_root {
            None => None,
            Some(file) => {
                let root = Root::parse(&read(&folder.join(&file))?);
                Some(root.map_err(|why| refused(format!("trustedRoot: {} {why}", file.display())))?)
            }
        };
        let signers = |it: SignaturesOf| it.into_signers(folder, root.as_ref());
        let all_signatures = signatures.into_iter().map(signers).collect::<Result<_, _>>()?;
        Ok(Policy {
            kinds,
            allow,
            private_hosts: hosts,
            private_networks: networks.iter().map(network).collect::<Result<_, _>>()?,
            any_address: false,
            plain_http,
            mirrors: all_mirrors,
            roots,
            max_bytes,
            signatures: all_signatures,
        })
    }
}

pub(super) fn pattern(key: &str, text: &str) -> Result<Pattern, Error> {
    text.parse().map_err(|why| refused(format!("{key}: {text:?}: {why}")))
}

fn check_host(key: &str, text: &str) -> Result<(), Error> {
    if is_host(text) {
        Ok(())
    } else {
        Err(refused(format!("{key}: {text:?} is not a host with or without port")))
    }
}

pub(super) fn refused(message: String) -> Error {
    Error::new(Reason::Invalid, format!("source policy: {message}"))
        .hint("correct the file of --source-policy; docs/sources.md has an example")
}

pub(super) fn read(path: &Path) -> Result<String, Error> {
    let read = || {
        let file = fs::File::open(path)?;
        if !file.metadata()?.is_file() {
            return Err(std::io::Error::other("it is not a regular file"));
        }
        let mut text = String::new();
        file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(std::io::Error::other(format!("it has more than {MAX_FILE_BYTES} bytes")));
        }
        Ok(text)
    };
    read().map_err(|error| refused(format!("{}: {error}", path.display())))
}

// === impl Kind ===

impl Kind {
    pub(super) const ALL: [Self; 5] = [Self::Oci, Self::Https, Self::ConfigMap, Self::Secret, Self::File];

    pub(super) fn of(member: Member<'_>) -> Self {
        match member {
            Member::Oci(_) => Self::Oci,
            Member::Https(_) => Self::Https,
            Member::ConfigMap(_) => Self::ConfigMap,
            Member::Secret(_) => Self::Secret,
            Member::File(_) => Self::File,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Oci => "oci",
            Self::Https => "https",
            Self::ConfigMap => "configMap",
            Self::Secret => "secret",
            Self::File => "file",
        })
    }
}
