use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _},
};

use super::*;

/// A key pair of P-256, with its public key as cosign writes it.
struct Signer(EcdsaKeyPair);

impl Signer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).unwrap())
    }

    fn public(&self, name: &str) -> PublicKey {
        let prefix = b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00";
        PublicKey::from_pem(name, &pem(&[prefix, self.0.public_key().as_ref()].concat())).unwrap()
    }

    fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.0.sign(&SystemRandom::new(), message).unwrap())
    }
}

fn pem(der: &[u8]) -> String {
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
}

fn keys(keys: impl Into<Vec<PublicKey>>) -> Signers {
    Signers { keys: keys.into(), ..Signers::default() }
}

/// Returns why the only signature does not count.
fn refusal(verified: Result<String, Vec<String>>) -> String {
    let refusals = verified.unwrap_err();
    assert_eq!(refusals.len(), 1);
    refusals[0].clone()
}

fn simple_payload(manifest: Digest) -> String {
    format!(
        r#"{{"critical":{{"identity":{{"docker-reference":"a.io/b"}},"image":{{"docker-manifest-digest":"{manifest}"}},"type":"cosign container image signature"}},"optional":null}}"#
    )
}

fn statement(manifest: Digest, predicate: &str) -> String {
    format!(
        r#"{{"_type":"https://in-toto.io/Statement/v1","subject":[{{"digest":{{"sha256":"{}"}}}}],"predicateType":"{predicate}","predicate":{{}}}}"#,
        manifest.to_hex()
    )
}

fn bundle(signer: &Signer, statement: &str) -> String {
    let signed = format!("DSSEv1 28 application/vnd.in-toto+json {} {statement}", statement.len());
    format!(
        r#"{{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","verificationMaterial":{{"publicKey":{{"hint":"x"}},"tlogEntries":[]}},"dsseEnvelope":{{"payload":"{}","payloadType":"application/vnd.in-toto+json","signatures":[{{"sig":"{}"}}]}}}}"#,
        STANDARD.encode(statement),
        signer.sign(signed.as_bytes())
    )
}

#[test]
fn a_signature_of_simple_signing_counts_for_its_manifest_and_key_only() {
    let (ours, theirs) = (Signer::new(), Signer::new());
    let (manifest, other) = (Digest::of(b"manifest"), Digest::of(b"other"));
    let payload = simple_payload(manifest);
    let evidence = [Evidence::of_simple_signing(payload.as_bytes(), &ours.sign(payload.as_bytes()))];
    let keys = self::keys([theirs.public("theirs"), ours.public("ours")]);
    assert_eq!(verify(&evidence, &keys, manifest), Ok("ours".to_owned()));
    let other_key = self::keys([theirs.public("theirs")]);
    assert_eq!(refusal(verify(&evidence, &other_key, manifest)), "no key of the policy made it");
    assert_eq!(refusal(verify(&evidence, &keys, other)), "it is about another manifest");

    let changed = simple_payload(other);
    let forged = [Evidence::of_simple_signing(changed.as_bytes(), &ours.sign(payload.as_bytes()))];
    assert_eq!(refusal(verify(&forged, &keys, other)), "no key of the policy made it");
    let foreign = payload.replace("cosign container image signature", "another type");
    let foreign = [Evidence::of_simple_signing(foreign.as_bytes(), &ours.sign(foreign.as_bytes()))];
    assert_eq!(refusal(verify(&foreign, &keys, manifest)), r#"its type is "another type""#);
}

#[test]
fn a_bundle_counts_if_its_statement_is_a_signature() {
    let ours = Signer::new();
    let manifest = Digest::of(b"manifest");
    let keys = self::keys([ours.public("ours")]);
    let verified = |text: String| verify(&[Evidence::of_bundle(text.into_bytes())], &keys, manifest);
    let statement_of = |digest| statement(digest, "https://sigstore.dev/cosign/sign/v1");
    assert_eq!(verified(bundle(&ours, &statement_of(manifest))), Ok("ours".to_owned()));
    let refusal = |text| refusal(verified(text));
    insta::assert_snapshot!(refusal(bundle(&ours, &statement_of(Digest::of(b"other")))), @"it is about another manifest");
    insta::assert_snapshot!(refusal(bundle(&Signer::new(), &statement_of(manifest))), @"no key of the policy made it");
    // An attestation that says something bad about the manifest is signed with the same key.
    let attestation = statement(manifest, "https://cosign.sigstore.dev/attestation/vuln/v1");
    insta::assert_snapshot!(refusal(bundle(&ours, &attestation)), @r#"it is no signature, but a statement of the type "https://cosign.sigstore.dev/attestation/vuln/v1""#);
    insta::assert_snapshot!(refusal("{}".to_owned()), @"it has no statement: it is the signature of a file");
    insta::assert_snapshot!(refusal("[".to_owned()), @"it is no bundle: EOF while parsing a list at line 1 column 1");
}

#[test]
fn evidence_survives_being_stored() {
    let simple = Evidence::of_simple_signing(b"payload", " c2ln\n");
    for evidence in [simple, Evidence::of_bundle(b"{}".to_vec())] {
        let stored = serde_json::to_string(&evidence).unwrap();
        assert_eq!(serde_json::from_str::<Evidence>(&stored).unwrap(), evidence);
    }
}

#[test]
fn keys_of_other_algorithms_are_refused() {
    let ed25519 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
    let ed25519 = Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap();
    let der = [b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00", ed25519.public_key().as_ref()].concat();
    let key = PublicKey::from_pem("key", &pem(&der)).unwrap();
    assert!(key.verifies(b"message", ed25519.sign(b"message").as_ref()));
    assert!(!key.verifies(b"other", ed25519.sign(b"message").as_ref()));

    let refusal = |text: &str| PublicKey::from_pem("key", text).unwrap_err();
    assert_eq!(refusal("no key"), "is not PEM with the label PUBLIC KEY");
    assert_eq!(refusal(&pem(&der[..40])), "is not a key of ECDSA with P-256 or P-384, or of Ed25519");
    assert_eq!(refusal(&pem(b"\x30\x82")), "is not a key of ECDSA with P-256 or P-384, or of Ed25519");
}

/// What `cosign sign --key` of version 3.1.3 wrote into a registry, by default and with
/// `--new-bundle-format=false`.
#[test]
fn signatures_that_cosign_made_count() {
    let digest = "sha256:db79b4aef56bafdbbbf9bcabff2d4336e7d7d7667a15d0196bbba219bbb6c7ea";
    let manifest = digest.parse().unwrap();
    let key = PublicKey::from_pem("release", include_str!("cosign-3.1.3/cosign.pub")).unwrap();
    let bundle = Evidence::of_bundle(include_bytes!("cosign-3.1.3/bundle.json").to_vec());
    // The annotation of the manifest under the tag `sha256-….sig`.
    let annotation =
        "MEUCIChGOFEkAxAZj2nCaY+cNNYhusUzSoAvv2IkKV0aKP7IAiEAvt8OfrBsuhho3w7LKB0vCAlChpDranQjxvc2Gn4CyQ4=";
    let simple = Evidence::of_simple_signing(include_bytes!("cosign-3.1.3/payload.json"), annotation);
    for evidence in [bundle, simple] {
        let verified = |key| verify(std::slice::from_ref(&evidence), &keys([key]), manifest);
        assert_eq!(verified(key.clone()), Ok("release".to_owned()));
        assert_eq!(refusal(verified(Signer::new().public("other"))), "no key of the policy made it");
    }
}
