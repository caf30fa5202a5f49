//! Signatures that `cosign` made, in the forms that it stores in a registry.
//!
//! - cosign 2, and cosign 3 with `--new-bundle-format=false`: a payload of simple signing, in the tag
//!   `sha256-HEX.sig`. It counts if a key of the policy made it.
//! - cosign 3: a bundle with a DSSE envelope around an in-toto statement, as a referrer of the manifest. It
//!   counts if a key of the policy made it, or a signer of the policy with a certificate.

mod key;
mod keyless;
mod provider;

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};

pub(crate) use self::{
    key::PublicKey,
    keyless::{Root, Signer},
};
use crate::digest::Digest;

/// The media type of a payload of simple signing.
pub(crate) const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation with the signature of such a payload.
pub(crate) const SIGNATURE_ANNOTATION: &str = "dev.cosignproject.cosign/signature";
/// The media type of a bundle, without its version.
pub(crate) const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// The `critical.type` of simple signing.
const SIMPLE_TYPE: &str = "cosign container image signature";
/// The type of an in-toto statement in an envelope.
const STATEMENT: &str = "application/vnd.in-toto+json";
/// What says that a statement is a signature, and no other attestation.
pub(crate) const SIGN_PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";
/// The annotation of a referrer with the predicate of its statement.
pub(crate) const PREDICATE_ANNOTATION: &str = "dev.sigstore.bundle.predicateType";
/// The longest payload that is read.
pub(crate) const MAX_BYTES: usize = 256 << 10;
/// How many signatures of one artifact, and of one form, are read.
pub(crate) const MAX_SIGNATURES: usize = 32;

/// The longest text of another party in an error.
const MAX_PLAIN: usize = 300;

/// A signature with what it signs, as the registry has it. It is kept, so that it can be verified again
/// without the registry, and by other keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "format")]
pub(crate) enum Evidence {
    /// Payload and signature in base64.
    SimpleSigning { payload: String, signature: String },
    /// A bundle in JSON.
    Bundle { text: String },
}

/// Who must have signed an artifact: one of these. No signature is required if there is none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signers {
    pub(crate) keys: Vec<PublicKey>,
    pub(crate) keyless: Vec<Signer>,
    /// What the signatures without a key are verified with. It is there if `keyless` is not empty.
    pub(crate) root: Option<Root>,
}

#[derive(Deserialize)]
struct SimplePayload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Image {
    docker_manifest_digest: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    dsse_envelope: Option<Envelope>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    predicate_type: String,
    subject: Vec<Subject>,
}

#[derive(Deserialize)]
struct Subject {
    digest: SubjectDigest,
}

#[derive(Deserialize)]
struct SubjectDigest {
    sha256: Option<String>,
}

/// Returns who signed this manifest, if that is one of the signers; and otherwise why each signature does not
/// count.
pub(crate) fn verify(
    evidence: &[Evidence],
    signers: &Signers,
    manifest: Digest,
) -> Result<String, Vec<String>> {
    let mut refusals = Vec::new();
    for it in evidence {
        match it.signer(signers, manifest) {
            Ok(name) => return Ok(name),
            Err(why) => refusals.push(plain(&why)),
        }
    }
    Err(refusals)
}

// === impl Signers ===

impl Signers {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.keyless.is_empty()
    }

    fn key(&self, message: &[u8], signature: &[u8]) -> Option<String> {
        self.keys.iter().find(|key| key.verifies(message, signature)).map(|key| key.name().to_owned())
    }
}

impl fmt::Display for Signers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<_> = self.keys.iter().map(PublicKey::name).collect();
        let keyless: Vec<_> = self.keyless.iter().map(ToString::to_string).collect();
        if !keys.is_empty() {
            write!(f, "by one of the keys {}", keys.join(", "))?;
        }
        if !(keys.is_empty() || keyless.is_empty()) {
            f.write_str(" or ")?;
        }
        if !keyless.is_empty() {
            write!(f, "by {}", keyless.join(" or "))?;
        }
        Ok(())
    }
}

// === impl Evidence ===

impl Evidence {
    /// Returns the evidence of a layer of simple signing.
    pub(crate) fn of_simple_signing(payload: &[u8], signature: &str) -> Self {
        Self::SimpleSigning { payload: STANDARD.encode(payload), signature: signature.trim().to_owned() }
    }

    /// Returns the evidence of a bundle. What is no text is no bundle, as is an empty text.
    pub(crate) fn of_bundle(bundle: Vec<u8>) -> Self {
        Self::Bundle { text: String::from_utf8(bundle).unwrap_or_default() }
    }

    /// Returns the name of the signer, if it says that one of these signed this manifest.
    fn signer(&self, signers: &Signers, manifest: Digest) -> Result<String, String> {
        match self {
            Self::SimpleSigning { payload, signature } => {
                let not_base64 = |_| "it is not in base64".to_owned();
                let payload = STANDARD.decode(payload).map_err(not_base64)?;
                let signature = STANDARD.decode(signature).map_err(not_base64)?;
                let SimplePayload { critical } = serde_json::from_slice(&payload)
                    .map_err(|error| format!("its payload is not one of simple signing: {error}"))?;
                if critical.image.docker_manifest_digest.parse() != Ok(manifest) {
                    return Err("it is about another manifest".to_owned());
                }
                if critical.kind != SIMPLE_TYPE {
                    return Err(format!("its type is {:.100?}", critical.kind));
                }
                signers.key(&payload, &signature).ok_or_else(|| "no key of the policy made it".to_owned())
            }
            Self::Bundle { text } => {
                let by_key = signer_of_envelope(text, signers, manifest);
                match (by_key, &signers.root) {
                    (Err(_), Some(root)) if !signers.keyless.is_empty() => {
                        let (signed_by, statement) = root.verify(text, manifest)?;
                        check_statement(&statement, manifest)?;
                        signed_by.check(&signers.keyless)?;
                        Ok(signed_by.to_string())
                    }
                    (by_key, _) => by_key,
                }
            }
        }
    }
}

/// Returns the key that signed the envelope of a bundle.
fn signer_of_envelope(bundle: &str, signers: &Signers, manifest: Digest) -> Result<String, String> {
    let Bundle { dsse_envelope } =
        serde_json::from_str(bundle).map_err(|error| format!("it is no bundle: {error}"))?;
    let Envelope { payload, payload_type, signatures } =
        dsse_envelope.ok_or("it has no statement: it is the signature of a file")?;
    if payload_type != STATEMENT {
        return Err(format!("it has a payload of the type {payload_type:.100?}"));
    }
    let payload = STANDARD.decode(&payload).map_err(|_| "its payload is not in base64".to_owned())?;
    check_statement(&payload, manifest)?;
    let message = pre_authentication(&payload);
    let signatures = signatures.iter().take(MAX_SIGNATURES).filter_map(|it| STANDARD.decode(&it.sig).ok());
    let by_key = signatures.filter_map(|signature| signers.key(&message, &signature)).next();
    by_key.ok_or_else(|| "no key of the policy made it".to_owned())
}

/// Returns an error if a statement does not say that this manifest is signed.
fn check_statement(statement: &[u8], manifest: Digest) -> Result<(), String> {
    let Statement { predicate_type, subject } = serde_json::from_slice(statement)
        .map_err(|error| format!("its statement cannot be read: {error}"))?;
    let hex = manifest.to_hex();
    if !subject.iter().any(|it| it.digest.sha256.as_ref() == Some(&hex)) {
        return Err("it is about another manifest".to_owned());
    }
    if predicate_type != SIGN_PREDICATE {
        return Err(format!("it is no signature, but a statement of the type {predicate_type:.100?}"));
    }
    Ok(())
}

/// Returns a text of another party, bounded and without control characters.
fn plain(text: &str) -> String {
    text.chars().filter(|it| !it.is_control()).take(MAX_PLAIN).collect()
}

/// Returns what is signed of an envelope: the "pre-authentication encoding" of DSSE.
fn pre_authentication(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {STATEMENT} {} ", STATEMENT.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

#[cfg(test)]
mod tests;
