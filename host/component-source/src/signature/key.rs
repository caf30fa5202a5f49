//! Public keys.

use std::fmt;

use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, ED25519, UnparsedPublicKey, VerificationAlgorithm,
};
use rustls::pki_types::{SubjectPublicKeyInfoDer, pem::PemObject as _};

/// An algorithm: its name, and what its keys begin with in DER, in front of the bytes of the key. DER has
/// exactly one form, so a comparison is enough.
struct Algorithm {
    prefix: &'static [u8],
    n_bytes: usize,
    verification: &'static dyn VerificationAlgorithm,
}

/// What a public key is in DER: a sequence with the identifiers of the algorithm and of the curve, and the
/// key as a bit string.
static ALGORITHMS: [Algorithm; 3] = [
    Algorithm {
        prefix: b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00",
        n_bytes: 65,
        verification: &ECDSA_P256_SHA256_ASN1,
    },
    Algorithm {
        prefix: b"\x30\x76\x30\x10\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x05\x2b\x81\x04\x00\x22\x03\x62\x00",
        n_bytes: 97,
        verification: &ECDSA_P384_SHA384_ASN1,
    },
    Algorithm { prefix: b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", n_bytes: 32, verification: &ED25519 },
];

/// A public key of the policy.
#[derive(Clone)]
pub(crate) struct PublicKey {
    name: String,
    bytes: Vec<u8>,
    verification: &'static dyn VerificationAlgorithm,
}

// === impl PublicKey ===

impl PublicKey {
    /// Parses a key as `cosign generate-key-pair` writes it.
    pub(crate) fn from_pem(name: &str, pem: &str) -> Result<Self, String> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes())
            .map_err(|_| "is not PEM with the label PUBLIC KEY".to_owned())?;
        let found = ALGORITHMS.iter().find_map(|it| {
            let bytes = der.strip_prefix(it.prefix)?;
            (bytes.len() == it.n_bytes).then_some((it, bytes))
        });
        let (algorithm, bytes) = found.ok_or("is not a key of ECDSA with P-256 or P-384, or of Ed25519")?;
        Ok(Self { name: name.to_owned(), bytes: bytes.to_owned(), verification: algorithm.verification })
    }

    /// Returns the name in the policy.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(self.verification, &self.bytes).verify(message, signature).is_ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicKey").field("name", &self.name).finish_non_exhaustive()
    }
}
