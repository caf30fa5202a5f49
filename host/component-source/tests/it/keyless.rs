//! Signatures without a key, as cosign 3 stores them.

use oarlock_component_source::{Digest, Fetcher, Reason, Source, Verified};
use serde_json::{Value, json};

use super::{
    artifact::{MANIFEST, blob, component, content, fetch, fetcher, loopback, oci, put, put_manifest},
    private_sigstore::{BUNDLE_TYPE, PrivateSigstore, Signature},
    server::Server,
};

const SIGNER: &str = "{issuer: 'https://issuer.example.com', identity: 'https://example.com/mirror/release.yaml@refs/tags/v1'}";

/// A registry with an artifact, whose policy requires a signature.
struct Scene {
    server: Server,
    dir: tempfile::TempDir,
    sigstore: PrivateSigstore,
    manifest: Digest,
    source: Source,
}

impl Scene {
    async fn new() -> Self {
        let server = Server::start().await;
        let manifest = put(&server, "1", &component("one"));
        let source = oci(&server, ":1");
        Self { server, dir: tempfile::tempdir().unwrap(), sigstore: PrivateSigstore::new(), manifest, source }
    }

    /// Returns a fetcher whose policy accepts this signer.
    fn fetcher(&self, signer: &str) -> Fetcher {
        let policy = loopback(&self.server)
            + "trustedRoot: trusted_root.json\nsignatures:\n- artifacts: '*'\n  keyless:\n  - "
            + signer;
        std::fs::write(self.dir.path().join("trusted_root.json"), self.sigstore.trusted_root()).unwrap();
        fetcher(self.dir.path(), &policy)
    }

    fn attach(&self, bundle: &[u8]) {
        attach(&self.server, self.manifest, bundle);
    }

    /// Returns why the artifact is refused with this bundle, after the name of the signer that is accepted.
    async fn refusal(&self, bundle: &Value) -> String {
        self.refusal_of_text(bundle.to_string().as_bytes()).await
    }

    async fn refusal_of_text(&self, bundle: &[u8]) -> String {
        self.attach(bundle);
        let error = fetch(&self.fetcher(SIGNER), &self.source).await.unwrap_err();
        assert_eq!(error.reason(), Reason::NotSigned, "{error}");
        assert!(
            !self.server.requests().iter().any(|it| it.ends_with(&Digest::of(&component("one")).to_string()))
        );
        let message = error.to_string();
        let (head, refusal) = message.split_once(", and ").unwrap();
        let signer = "by https://example.com/mirror/release.yaml@refs/tags/v1 (https://issuer.example.com)";
        assert!(head.ends_with(signer), "{head}");
        refusal.trim_start_matches("none of its 1 signatures is valid: ").to_owned()
    }
}

/// Attaches a bundle to a manifest, by the tag that stands for the referrers.
fn attach(server: &Server, manifest: Digest, bundle: &[u8]) {
    let digest = blob(server, bundle);
    let referrer = json!({
        "schemaVersion": 2,
        "artifactType": BUNDLE_TYPE,
        "layers": [{"mediaType": BUNDLE_TYPE, "digest": digest, "size": bundle.len()}],
    });
    let referrer = put_manifest(server, "unused", referrer.to_string().as_bytes(), MANIFEST);
    let index = json!({
        "schemaVersion": 2,
        "manifests": [{"mediaType": MANIFEST, "digest": referrer, "size": 1, "artifactType": BUNDLE_TYPE}],
    });
    let index_type = "application/vnd.oci.image.index.v1+json";
    let tag = format!("sha256-{}", manifest.to_hex());
    put_manifest(server, &tag, index.to_string().as_bytes(), index_type);
}

#[tokio::test]
async fn a_signature_of_an_accepted_identity_counts_also_without_the_registry() {
    let mut scene = Scene::new().await;
    let unsigned = fetch(&scene.fetcher(SIGNER), &scene.source).await.unwrap_err();
    assert!(unsigned.to_string().ends_with("and it has no signature"), "{unsigned}");

    scene.attach(scene.sigstore.sign(&Signature::of(scene.manifest)).to_string().as_bytes());
    let signed_by = Verified::SignedBy(
        "https://example.com/mirror/release.yaml@refs/tags/v1 (https://issuer.example.com)".to_owned(),
    );
    let pattern = "{issuer: 'https://issuer.example.com', identityRegex: 'https://example[.]com/mirror/.*'}";
    for signer in [SIGNER, pattern] {
        let fetched = fetch(&scene.fetcher(signer), &scene.source).await.unwrap();
        assert_eq!(fetched.verified, signed_by);
        assert_eq!(content(&fetched), component("one"));
    }

    scene.server.stop().await;
    let fetched = fetch(&scene.fetcher(SIGNER), &scene.source).await.unwrap();
    assert_eq!(fetched.verified, signed_by);
    assert_eq!(fetched.stale.unwrap().reason(), Reason::Unavailable);
    let part = "{issuer: 'https://issuer.example.com', identityRegex: 'https://example[.]com/mirror'}";
    let other_policy = fetch(&scene.fetcher(part), &scene.source).await.unwrap_err();
    assert_eq!(other_policy.reason(), Reason::Unavailable, "the pattern matches a part only");
}

#[tokio::test]
async fn another_signer_is_refused() {
    let scene = Scene::new().await;
    let valid = || Signature::of(scene.manifest);
    let refusal = async |signature| scene.refusal(&scene.sigstore.sign(&signature)).await;
    let identity = Signature { identity: "https://example.com/mirror/release.yaml@refs/heads/x", ..valid() };
    insta::assert_snapshot!(refusal(identity).await, @"its identity is https://example.com/mirror/release.yaml@refs/heads/x (https://issuer.example.com)");
    let issuer = Signature { issuer: "https://evil.example.com", ..valid() };
    insta::assert_snapshot!(refusal(issuer).await, @"the issuer of its identity https://example.com/mirror/release.yaml@refs/tags/v1 is https://evil.example.com");
    let manifest = Signature { manifest: Digest::of(b"other"), ..valid() };
    insta::assert_snapshot!(refusal(manifest).await, @"artifact mismatch: artifact hash does not match any subject in attestation");
    let attestation = Signature { predicate: "https://slsa.dev/provenance/v1", ..valid() };
    insta::assert_snapshot!(refusal(attestation).await, @r#"it is no signature, but a statement of the type "https://slsa.dev/provenance/v1""#);
}

#[tokio::test]
async fn a_certificate_that_proves_nothing_is_refused() {
    let scene = Scene::new().await;
    let valid = || Signature::of(scene.manifest);
    let refusal = async |signature| scene.refusal(&scene.sigstore.sign(&signature)).await;
    insta::assert_snapshot!(refusal(Signature { logged_after: 601, ..valid() }).await, @"certificate chain is invalid: certificate chain validation failed: CertExpired { time: UnixTime(1767226201), not_after: UnixTime(1767226200) }");
    insta::assert_snapshot!(refusal(Signature { logged_after: -1, ..valid() }).await, @"certificate chain is invalid: certificate chain validation failed: CertNotValidYet { time: UnixTime(1767225599), not_before: UnixTime(1767225600) }");
    insta::assert_snapshot!(refusal(Signature { has_sct: false, ..valid() }).await, @"invalid signed certificate timestamp: certificate is missing SCT extension (Signed Certificate Timestamp)");
    insta::assert_snapshot!(refusal(Signature { is_for_code: false, ..valid() }).await, @"certificate chain is invalid: certificate chain validation failed: RequiredEkuNotFoundContext(RequiredEkuNotFoundContext { required: KeyPurposeId(1.3.6.1.5.5.7.3.3), present: [KeyPurposeId(1.3.6.1.5.5.7.3.1)] })");

    let with = async |sigstore: PrivateSigstore| scene.refusal(&sigstore.sign(&valid())).await;
    insta::assert_snapshot!(with(scene.sigstore.with_other_authority()).await, @"certificate chain is invalid: certificate chain validation failed: InvalidSignatureForPublicKey");
    insta::assert_snapshot!(with(scene.sigstore.with_forged_certificate_log()).await, @"invalid signed certificate timestamp: SCT signature verification failed: Verification error: the ECDSA_P256_SHA256 signature is not valid");
}

#[tokio::test]
async fn a_log_entry_that_proves_nothing_is_refused() {
    let scene = Scene::new().await;
    let valid = || scene.sigstore.sign(&Signature::of(scene.manifest));
    let with =
        async |sigstore: PrivateSigstore| scene.refusal(&sigstore.sign(&Signature::of(scene.manifest))).await;
    let unknown = with(scene.sigstore.with_other_rekor()).await;
    assert!(unknown.starts_with("invalid inclusion promise: No log key valid"), "{unknown}");
    insta::assert_snapshot!(with(scene.sigstore.with_forged_rekor()).await, @"invalid inclusion promise: SET verification failed: Verification error: the ECDSA_P256_SHA256 signature is not valid");

    let swapped = |pointer: &str| {
        let mut bundle = valid();
        *bundle.pointer_mut(pointer).unwrap() = valid().pointer(pointer).unwrap().clone();
        bundle
    };
    let entry = "/verificationMaterial/tlogEntries/0";
    insta::assert_snapshot!(scene.refusal(&swapped("/dsseEnvelope/signatures/0/sig")).await, @"invalid signature: DSSE signature verification failed: Verification error: the ECDSA_P256_SHA256 signature is not valid");
    insta::assert_snapshot!(scene.refusal(&swapped(entry)).await, @"log entry does not match the bundle: DSSE signature in bundle does not match any signature in Rekor entry (signature or verifier mismatch)");
    for part in ["inclusionPromise", "inclusionProof", "inclusionProof/checkpoint", "canonicalizedBody"] {
        let refusal = scene.refusal(&swapped(&format!("{entry}/{part}"))).await;
        assert!(refusal.contains("invalid") || refusal.contains("does not match"), "{part}: {refusal}");
    }
}

#[tokio::test]
async fn what_is_no_bundle_is_refused() {
    let scene = Scene::new().await;
    let valid = scene.sigstore.sign(&Signature::of(scene.manifest));
    let changed = |pointer: &str, value: Value| {
        let mut bundle = valid.clone();
        *bundle.pointer_mut(pointer).unwrap() = value;
        bundle
    };
    let version = json!("application/vnd.dev.sigstore.bundle.v0.4+json");
    insta::assert_snapshot!(scene.refusal(&changed("/mediaType", version)).await, @"it is no bundle: JSON error: Invalid media type: application/vnd.dev.sigstore.bundle.v0.4+json at line 1 column 60");
    insta::assert_snapshot!(scene.refusal_of_text(b"{\"mediaType\":").await, @"it is no bundle: JSON error: EOF while parsing a value at line 1 column 13");
    insta::assert_snapshot!(scene.refusal_of_text(b"\xff\xfe").await, @"it is no bundle: JSON error: EOF while parsing a value at line 1 column 0");
    insta::assert_snapshot!(scene.refusal(&changed("/verificationMaterial/tlogEntries", json!([]))).await, @"Bundle error: application/vnd.dev.sigstore.bundle.v0.3+json bundle must have an inclusion proof");
    let kind = changed("/verificationMaterial/tlogEntries/0/kindVersion/version", json!("0.0.9"));
    let kind = scene.refusal(&kind).await;
    // The column depends on the lengths of signatures.
    let kind = kind.split(" at line").next().unwrap();
    insta::assert_snapshot!(kind, @"it is no bundle: JSON error: unsupported Rekor entry format: dsse/0.0.9");
    let key = changed("/verificationMaterial", json!({"publicKey": {"hint": "x"}, "tlogEntries": []}));
    insta::assert_snapshot!(scene.refusal(&key).await, @"it has no certificate, and no key of the policy made it");
    let message = json!({
        "mediaType": BUNDLE_TYPE,
        "verificationMaterial": valid["verificationMaterial"],
        "messageSignature": {"signature": "c2ln"},
    });
    insta::assert_snapshot!(scene.refusal(&message).await, @"it has no statement: it is the signature of a file");

    scene.attach(&vec![b' '; (256 << 10) + 1]);
    let huge = fetch(&scene.fetcher(SIGNER), &scene.source).await.unwrap_err();
    assert_eq!(huge.reason(), Reason::Unavailable);
    assert!(huge.to_string().ends_with("answers with more than 262144 bytes"), "{huge}");
}
