//! Signatures without a key: a certificate of Fulcio says who signed, and a transparency log when.
//!
//! The crate `sigstore-verify` verifies a bundle offline, with the certificates and keys of a trusted root.
//! Here is what it is asked for, what its input is bounded by, and who is accepted.

use std::{fmt, sync::Arc};

use regex::Regex;
use sigstore_verify::{
    VerificationPolicy, Verifier,
    crypto::install_default_provider,
    trust_root::TrustedRoot,
    types::{Bundle, Sha256Hash, SignatureContent, bundle::VerificationMaterialContent},
};

use super::{plain, provider::Ring};
use crate::digest::Digest;

/// The media types of trusted roots that are read.
const ROOT_TYPES: [&str; 3] = [
    "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    "application/vnd.dev.sigstore.trustedroot+json;version=0.2",
    "application/vnd.dev.sigstore.trustedroot.v0.2+json",
];
/// How many log entries, timestamps or certificates of a bundle are verified. cosign writes one of each.
const MAX_PROOFS: usize = 8;
/// The memory of a compiled pattern.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// The certificates and keys that keyless signatures are verified with.
#[derive(Clone)]
pub(crate) struct Root(Arc<Verifier>);

/// Who may sign.
#[derive(Debug, Clone)]
pub(crate) struct Signer {
    issuer: String,
    identity: Identity,
}

#[derive(Debug, Clone)]
enum Identity {
    Exact(String),
    Pattern { text: String, regex: Regex },
}

/// Who signed, by the certificate.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SignedBy {
    identity: String,
    issuer: String,
}

// === impl Root ===

impl Root {
    /// Parses a `trusted_root.json`.
    pub(crate) fn parse(json: &str) -> Result<Self, String> {
        // If a provider is installed already, it is this one.
        let _ = install_default_provider(&Ring);
        let root = TrustedRoot::from_json(json).map_err(|error| format!("is no trusted root: {error}"))?;
        if !ROOT_TYPES.contains(&root.media_type.as_str()) {
            return Err(format!("is no trusted root: it has the media type {:.100?}", root.media_type));
        }
        for (what, n) in [
            ("certificateAuthorities", root.certificate_authorities.len()),
            ("ctlogs", root.ctlogs.len()),
            ("tlogs", root.tlogs.len()),
        ] {
            if n == 0 {
                return Err(format!("has no {what}: no keyless signature could be verified"));
            }
        }
        let verifier = Verifier::new(&root).map_err(|error| format!("cannot be used: {error}"))?;
        Ok(Self(Arc::new(verifier)))
    }

    /// Returns who signed a statement about this manifest, and the statement. Nothing is left to check but
    /// whether this signer is accepted, and what the statement says.
    pub(super) fn verify(&self, bundle: &str, manifest: Digest) -> Result<(SignedBy, Vec<u8>), String> {
        let bundle = Bundle::from_json(bundle).map_err(|error| format!("it is no bundle: {error}"))?;
        let SignatureContent::DsseEnvelope(envelope) = &bundle.content else {
            return Err("it has no statement: it is the signature of a file".to_owned());
        };
        let material = &bundle.verification_material;
        let n_certificates = match &material.content {
            VerificationMaterialContent::X509CertificateChain { certificates } => certificates.len(),
            VerificationMaterialContent::Certificate(_) => 1,
            _ => return Err("it has no certificate, and no key of the policy made it".to_owned()),
        };
        for (what, n) in [
            ("certificates", n_certificates),
            ("log entries", material.tlog_entries.len()),
            ("timestamps", material.timestamp_verification_data.rfc3161_timestamps.len()),
        ] {
            if n > MAX_PROOFS {
                return Err(format!("it has {n} {what}, and at most {MAX_PROOFS} are read"));
            }
        }
        let digest = Sha256Hash::from_hex(&manifest.to_hex()).map_err(|error| error.to_string())?;
        // Who signed is compared below, where more than one signer can be accepted.
        let verified = self.0.verify(digest, &bundle, &VerificationPolicy::any_identity());
        let verified = verified.map_err(|error| error.to_string())?;
        if !(verified.certificate_verified() && verified.sct_verified() && verified.tlog_verified()) {
            return Err("its certificate or log entry was not verified".to_owned());
        }
        let identity = verified.identity().ok_or("its certificate has no identity")?.as_str().to_owned();
        let issuer = verified.issuer().ok_or("its certificate has no issuer of the identity")?.to_owned();
        Ok((SignedBy { identity, issuer }, envelope.payload.as_bytes().to_vec()))
    }
}

impl fmt::Debug for Root {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").finish_non_exhaustive()
    }
}

// === impl Signer ===

impl Signer {
    pub(crate) fn exact(issuer: String, identity: String) -> Self {
        Self { issuer, identity: Identity::Exact(identity) }
    }

    /// Returns a signer whose whole identity matches a regular expression.
    pub(crate) fn pattern(issuer: String, text: String) -> Result<Self, String> {
        let compile = |text: &str| {
            regex::RegexBuilder::new(text)
                .size_limit(MAX_REGEX_BYTES)
                .build()
                .map_err(|error| error.to_string())
        };
        // Alone first: a parenthesis too many would end the group that the ends are outside of.
        compile(&text)?;
        let regex = compile(&format!(r"\A(?:{text})\z"))?;
        Ok(Self { issuer, identity: Identity::Pattern { text, regex } })
    }

    fn is_identity(&self, identity: &str) -> bool {
        match &self.identity {
            Identity::Exact(exact) => exact == identity,
            Identity::Pattern { regex, .. } => regex.is_match(identity),
        }
    }
}

impl fmt::Display for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.identity {
            Identity::Exact(exact) => write!(f, "{exact} ({})", self.issuer),
            Identity::Pattern { text, .. } => write!(f, "an identity like {text} ({})", self.issuer),
        }
    }
}

// === impl SignedBy ===

impl SignedBy {
    /// Returns nothing if one of the signers is this one, and otherwise what is different.
    pub(super) fn check(&self, signers: &[Signer]) -> Result<(), String> {
        let Self { identity, issuer } = self;
        if signers.iter().any(|it| it.issuer == *issuer && it.is_identity(identity)) {
            return Ok(());
        }
        Err(if signers.iter().any(|it| it.is_identity(identity)) {
            format!("the issuer of its identity {} is {}", plain(identity), plain(issuer))
        } else {
            format!("its identity is {self}")
        })
    }
}

impl fmt::Display for SignedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", plain(&self.identity), plain(&self.issuer))
    }
}

#[cfg(test)]
mod tests;
