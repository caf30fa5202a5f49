//! A Sigstore of its own: a certificate authority, a log of certificates and a log of signatures (Rekor 1).

use std::rc::Rc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use oarlock_component_source::Digest;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType,
};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair},
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// When the certificates begin to be valid: 2026-01-01. They are valid for 10 minutes, as those of Fulcio.
const NOT_BEFORE: i64 = 1_767_225_600;
/// What a signature is for cosign.
pub(crate) const SIGN_PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";
pub(crate) const BUNDLE_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// A log: its key, and the digest that names it, which is that of the key.
struct Log {
    key: KeyPair,
    id: [u8; 32],
}

struct Authority {
    issuer: Issuer<'static, KeyPair>,
    der: Vec<u8>,
}

/// The certificate authority and the logs.
#[derive(Clone)]
pub(crate) struct PrivateSigstore {
    authority: Rc<Authority>,
    certificates: Rc<Log>,
    rekor: Rc<Log>,
}

/// What a signature is made of. The default is a valid one.
pub(crate) struct Signature<'a> {
    pub(crate) identity: &'a str,
    pub(crate) issuer: &'a str,
    /// The manifest of the statement.
    pub(crate) manifest: Digest,
    pub(crate) predicate: &'a str,
    /// When the log has it, in seconds after the certificate begins.
    pub(crate) logged_after: i64,
    pub(crate) has_sct: bool,
    pub(crate) is_for_code: bool,
}

impl Log {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        Self { id: sha256(&key.subject_public_key_info()), key }
    }

    /// Returns a log that has the name of this one, and another key.
    fn forged(&self) -> Self {
        Self { id: self.id, ..Self::new() }
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        sign(&self.key, message)
    }

    /// Returns its part of a trusted root.
    fn trusted(&self) -> Value {
        json!({
            "baseUrl": "https://log.example.com",
            "hashAlgorithm": "SHA2_256",
            "publicKey": {
                "rawBytes": STANDARD.encode(self.key.subject_public_key_info()),
                "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                "validFor": {"start": "2025-01-01T00:00:00Z"},
            },
            "logId": {"keyId": STANDARD.encode(self.id)},
        })
    }
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "Private Fulcio");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let der = params.self_signed(&key).unwrap().der().to_vec();
        Self { issuer: Issuer::new(params, key), der }
    }
}

impl PrivateSigstore {
    pub(crate) fn new() -> Self {
        let (authority, certificates, rekor) = (Authority::new(), Log::new(), Log::new());
        Self { authority: authority.into(), certificates: certificates.into(), rekor: rekor.into() }
    }

    /// Returns one with an authority of the same name and another key.
    pub(crate) fn with_other_authority(&self) -> Self {
        Self { authority: Authority::new().into(), ..self.clone() }
    }

    pub(crate) fn with_other_rekor(&self) -> Self {
        Self { rekor: Log::new().into(), ..self.clone() }
    }

    pub(crate) fn with_forged_rekor(&self) -> Self {
        Self { rekor: self.rekor.forged().into(), ..self.clone() }
    }

    pub(crate) fn with_forged_certificate_log(&self) -> Self {
        Self { certificates: self.certificates.forged().into(), ..self.clone() }
    }

    /// Returns its `trusted_root.json`.
    pub(crate) fn trusted_root(&self) -> String {
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [self.rekor.trusted()],
            "ctlogs": [self.certificates.trusted()],
            "certificateAuthorities": [{
                "uri": "https://fulcio.example.com",
                "certChain": {"certificates": [{"rawBytes": STANDARD.encode(&self.authority.der)}]},
                "validFor": {"start": "2025-01-01T00:00:00Z"},
            }],
        })
        .to_string()
    }

    /// Returns a bundle as cosign 3 writes it.
    pub(crate) fn sign(&self, signature: &Signature<'_>) -> Value {
        let (certificate, key) = self.certificate(signature);
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {"sha256": signature.manifest.to_hex()}}],
            "predicateType": signature.predicate,
            "predicate": {},
        })
        .to_string();
        let signed = format!("DSSEv1 28 application/vnd.in-toto+json {} {statement}", statement.len());
        let sig = STANDARD.encode(sign(&key, signed.as_bytes()));
        json!({
            "mediaType": BUNDLE_TYPE,
            "verificationMaterial": {
                "certificate": {"rawBytes": STANDARD.encode(&certificate)},
                "tlogEntries": [self.entry(&certificate, &statement, &sig, NOT_BEFORE + signature.logged_after)],
            },
            "dsseEnvelope": {
                "payload": STANDARD.encode(&statement),
                "payloadType": "application/vnd.in-toto+json",
                "signatures": [{"sig": sig}],
            },
        })
    }

    /// Returns a certificate with an SCT, and its key.
    fn certificate(&self, signature: &Signature<'_>) -> (Vec<u8>, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = params.not_before + std::time::Duration::from_secs(600);
        params.serial_number = Some(7_u64.into());
        params.subject_alt_names = vec![SanType::URI(signature.identity.try_into().unwrap())];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![if signature.is_for_code {
            ExtendedKeyUsagePurpose::CodeSigning
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        }];
        let issuer = [&[0x0c, u8::try_from(signature.issuer.len()).unwrap()], signature.issuer.as_bytes()];
        let issuer = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 57264, 1, 8], issuer.concat());
        params.custom_extensions = vec![issuer];
        if signature.has_sct {
            let without = params.signed_by(&key, &self.authority.issuer).unwrap();
            let sct = self.sct(signed_part(without.der()));
            params
                .custom_extensions
                .push(CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2], sct));
        }
        (params.signed_by(&key, &self.authority.issuer).unwrap().der().to_vec(), key)
    }

    /// Returns the extension with the signed certificate timestamp (RFC 6962) of what a certificate without
    /// it has in front of its signature.
    fn sct(&self, certificate: &[u8]) -> Vec<u8> {
        let time = u64::try_from(NOT_BEFORE * 1000).unwrap().to_be_bytes();
        let length = u32::try_from(certificate.len()).unwrap().to_be_bytes();
        let issuer = sha256(&self.authority.issuer.key().subject_public_key_info());
        let signed = [&[0, 0], &time[..], &[0, 1], &issuer, &length[1..], certificate, &[0, 0]].concat();
        let sig = self.certificates.sign(&signed);
        let id = self.certificates.id;
        let sct = [&[0], &id[..], &time, &[0, 0], &[4, 3], &with_length(&sig)].concat();
        let list = with_length(&with_length(&sct));
        [&[4, u8::try_from(list.len()).unwrap()], list.as_slice()].concat()
    }

    /// Returns the entry of a signature in the log, which has one other.
    fn entry(&self, certificate: &[u8], statement: &str, sig: &str, time: i64) -> Value {
        let pem = format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            STANDARD.encode(certificate)
        );
        let body = json!({
            "apiVersion": "0.0.1",
            "kind": "dsse",
            "spec": {
                "envelopeHash": {"algorithm": "sha256", "value": Digest::of(b"").to_hex()},
                "payloadHash": {"algorithm": "sha256", "value": Digest::of(statement.as_bytes()).to_hex()},
                "signatures": [{"signature": sig, "verifier": STANDARD.encode(pem)}],
            },
        })
        .to_string();
        let other = sha256(b"\0the other entry");
        let leaf = sha256(&[b"\0", body.as_bytes()].concat());
        let root = STANDARD.encode(sha256(&[&[1], &leaf[..], &other].concat()));
        let tree = format!("log.example.com - 1\n2\n{root}\n");
        let id = self.rekor.id;
        let tree_sig = STANDARD.encode([&id[..4], &self.rekor.sign(tree.as_bytes())].concat());
        let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let body = STANDARD.encode(body);
        let promise = format!(r#"{{"body":"{body}","integratedTime":{time},"logID":"{hex}","logIndex":0}}"#);
        json!({
            "logIndex": "0",
            "logId": {"keyId": STANDARD.encode(id)},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": time.to_string(),
            "inclusionPromise": {"signedEntryTimestamp": STANDARD.encode(self.rekor.sign(promise.as_bytes()))},
            "inclusionProof": {
                "logIndex": "0",
                "rootHash": root,
                "treeSize": "2",
                "hashes": [STANDARD.encode(other)],
                "checkpoint": {"envelope": format!("{tree}\n— log.example.com {tree_sig}\n")},
            },
            "canonicalizedBody": body,
        })
    }
}

impl<'a> Signature<'a> {
    pub(crate) fn of(manifest: Digest) -> Signature<'a> {
        Signature {
            identity: "https://example.com/mirror/release.yaml@refs/tags/v1",
            issuer: "https://issuer.example.com",
            manifest,
            predicate: SIGN_PREDICATE,
            logged_after: 60,
            has_sct: true,
            is_for_code: true,
        }
    }
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

fn sign(key: &KeyPair, message: &[u8]) -> Vec<u8> {
    let random = SystemRandom::new();
    let pair =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, key.serialized_der(), &random).unwrap();
    pair.sign(&random, message).unwrap().as_ref().to_vec()
}

/// Returns the bytes with their length in front, as TLS writes it.
fn with_length(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

/// Returns what a certificate has in front of its signature. Both lengths have two bytes.
fn signed_part(certificate: &[u8]) -> &[u8] {
    assert_eq!((certificate[1], certificate[5]), (0x82, 0x82));
    let length = usize::from(u16::from_be_bytes([certificate[6], certificate[7]]));
    &certificate[4..8 + length]
}
