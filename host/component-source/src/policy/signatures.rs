//! Who must have signed, as the policy says it.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Pattern,
    file::{pattern, read, refused},
};
use crate::{
    error::Error,
    signature::{PublicKey, Root, Signer, Signers},
};

/// The signatures that artifacts need: one by a key, or by a signer without a key.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SignaturesOf {
    /// The artifacts, in the form of `allow`; `*` for all.
    artifacts: String,
    /// The public keys of cosign. With an empty list, and without `keyless`, no signature is required.
    #[serde(default)]
    keys: Option<Vec<Key>>,
    /// Who may sign without a key, with a certificate of Fulcio. It needs `trustedRoot`.
    #[serde(default)]
    keyless: Option<Vec<Keyless>>,
}

/// A public key.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Key {
    /// The name, which the status of a Plugin shows.
    name: String,
    /// The key in PEM, as `cosign.pub` has it: ECDSA with P-256 or P-384, or Ed25519.
    #[serde(default)]
    pem: Option<String>,
    /// The file with the key, relative to the folder of this file. Either `pem` or `file` is set.
    #[serde(default)]
    file: Option<PathBuf>,
}

/// A signer without a key.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Keyless {
    /// Who says that the identity is right: `https://token.actions.githubusercontent.com` for GitHub Actions.
    issuer: String,
    /// The identity in the certificate: the address of a person, or the URI of a workflow with its Git
    /// reference.
    #[serde(default)]
    identity: Option<String>,
    /// A regular expression for the whole identity. Either `identity` or `identityRegex` is set.
    #[serde(default)]
    identity_regex: Option<String>,
}

// === impl SignaturesOf ===

impl SignaturesOf {
    pub(super) fn into_signers(
        self,
        folder: &Path,
        root: Option<&Root>,
    ) -> Result<(Pattern, Signers), Error> {
        let Self { artifacts, keys, keyless } = self;
        let matching = pattern("signatures", &artifacts)?;
        if keys.is_none() && keyless.is_none() {
            return Err(refused(format!("signatures: {artifacts} needs keys or keyless")));
        }
        let keys = keys.unwrap_or_default().into_iter().map(|key| key.into_public(folder));
        let keyless = keyless.unwrap_or_default().into_iter().map(Keyless::into_signer);
        let signers = Signers {
            keys: keys.collect::<Result<_, _>>()?,
            keyless: keyless.collect::<Result<_, _>>()?,
            root: root.cloned(),
        };
        if !signers.keyless.is_empty() && signers.root.is_none() {
            return Err(refused(format!("signatures: keyless of {artifacts} needs a trustedRoot")));
        }
        Ok((matching, signers))
    }
}

impl Key {
    fn into_public(self, folder: &Path) -> Result<PublicKey, Error> {
        let Self { name, pem, file } = self;
        let pem = match (pem, file) {
            (Some(pem), None) => pem,
            (None, Some(file)) => read(&folder.join(file))?,
            _ => return Err(refused(format!("signatures: key {name} needs either pem or file"))),
        };
        PublicKey::from_pem(&name, &pem).map_err(|why| refused(format!("signatures: key {name} {why}")))
    }
}

impl Keyless {
    fn into_signer(self) -> Result<Signer, Error> {
        let Self { issuer, identity, identity_regex } = self;
        if issuer.is_empty() {
            return Err(refused("signatures: keyless needs an issuer".to_owned()));
        }
        match (identity, identity_regex) {
            (Some(identity), None) if !identity.is_empty() => Ok(Signer::exact(issuer, identity)),
            (None, Some(text)) => Signer::pattern(issuer, text.clone())
                .map_err(|why| refused(format!("signatures: identityRegex {text:?}: {why}"))),
            _ => Err(refused(format!(
                "signatures: keyless of the issuer {issuer} needs either identity or identityRegex"
            ))),
        }
    }
}
