//! Signatures in a registry, as cosign stores them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use oarlock_component_source::{Digest, Reason, Verified};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _},
};

use super::{
    artifact::{MANIFEST, blob, component, content, fetch, fetcher, loopback, oci, put, put_manifest},
    server::{Answer, Server},
};

/// A key pair of cosign.
struct Signer(EcdsaKeyPair);

impl Signer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random).unwrap())
    }

    /// Returns the lines of a policy that require a signature of this key.
    fn required(&self, name: &str) -> String {
        let prefix = b"\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07\x03\x42\x00";
        let der = [prefix, self.0.public_key().as_ref()].concat();
        let pem =
            format!("-----BEGIN PUBLIC KEY-----\\n{}\\n-----END PUBLIC KEY-----\\n", STANDARD.encode(der));
        format!("signatures: [{{artifacts: '*', keys: [{{name: {name}, pem: \"{pem}\"}}]}}]\n")
    }

    fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.0.sign(&SystemRandom::new(), message).unwrap())
    }

    /// Signs a manifest as `cosign sign --new-bundle-format=false` does.
    fn sign_simply(&self, server: &Server, manifest: Digest) {
        let payload = format!(
            r#"{{"critical":{{"identity":{{"docker-reference":""}},"image":{{"docker-manifest-digest":"{manifest}"}},"type":"cosign container image signature"}},"optional":null}}"#
        );
        let digest = blob(server, payload.as_bytes());
        let signatures = format!(
            r#"{{"schemaVersion":2,"layers":[{{"mediaType":"application/vnd.dev.cosign.simplesigning.v1+json","digest":"{digest}","size":{},"annotations":{{"dev.cosignproject.cosign/signature":"{}"}}}}]}}"#,
            payload.len(),
            self.sign(payload.as_bytes())
        );
        put_manifest(server, &format!("sha256-{}.sig", manifest.to_hex()), signatures.as_bytes(), MANIFEST);
    }

    /// Signs a manifest as cosign 3 does. Returns the index of referrers.
    fn sign_with_bundle(&self, server: &Server, manifest: Digest) -> String {
        let statement = format!(
            r#"{{"_type":"https://in-toto.io/Statement/v1","subject":[{{"digest":{{"sha256":"{}"}}}}],"predicateType":"https://sigstore.dev/cosign/sign/v1","predicate":{{}}}}"#,
            manifest.to_hex()
        );
        let signed = format!("DSSEv1 28 application/vnd.in-toto+json {} {statement}", statement.len());
        let bundle = format!(
            r#"{{"mediaType":"application/vnd.dev.sigstore.bundle.v0.3+json","dsseEnvelope":{{"payload":"{}","payloadType":"application/vnd.in-toto+json","signatures":[{{"sig":"{}"}}]}}}}"#,
            STANDARD.encode(&statement),
            self.sign(signed.as_bytes())
        );
        let media_type = "application/vnd.dev.sigstore.bundle.v0.3+json";
        let digest = blob(server, bundle.as_bytes());
        let referrer = format!(
            r#"{{"schemaVersion":2,"artifactType":"{media_type}","layers":[{{"mediaType":"{media_type}","digest":"{digest}","size":{}}}]}}"#,
            bundle.len()
        );
        let referrer = put_manifest(server, "unused", referrer.as_bytes(), MANIFEST);
        format!(
            r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"{MANIFEST}","digest":"{referrer}","size":1,"artifactType":"{media_type}"}}]}}"#
        )
    }
}

#[tokio::test]
async fn an_artifact_that_must_be_signed_is_refused_without_a_valid_signature() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Signer::new(), Signer::new());
    let fetcher = fetcher(dir.path(), &(loopback(&server) + &ours.required("release")));
    let source = oci(&server, ":1");
    let manifest = put(&server, "1", &component("one"));
    let unsigned = fetch(&fetcher, &source).await.unwrap_err();
    assert_eq!(unsigned.reason(), Reason::NotSigned);
    let end = "must be signed by one of the keys release, and it has no signature";
    assert!(unsigned.to_string().ends_with(end), "{unsigned}");
    assert!(!server.requests().iter().any(|it| it.contains("/blobs/")), "the component is not downloaded");

    theirs.sign_simply(&server, manifest);
    let foreign = fetch(&fetcher, &source).await.unwrap_err();
    let end = "and none of its 1 signatures is valid: no key of the policy made it";
    assert!(foreign.to_string().ends_with(end), "{foreign}");

    ours.sign_simply(&server, manifest);
    let signed = fetch(&fetcher, &source).await.unwrap();
    assert_eq!(signed.verified, Verified::SignedBy("release".to_owned()));
    assert_eq!(content(&signed), component("one"));

    // The next version is not signed: the one before stays.
    put(&server, "1", &component("two"));
    let stale = fetch(&fetcher, &source).await.unwrap();
    assert_eq!(content(&stale), component("one"));
    assert_eq!(stale.stale.unwrap().reason(), Reason::NotSigned);
}

#[tokio::test]
async fn a_bundle_of_cosign_3_is_found_with_and_without_the_referrers_api() {
    for has_api in [true, false] {
        let server = Server::start().await;
        let dir = tempfile::tempdir().unwrap();
        let ours = Signer::new();
        let manifest = put(&server, "1", &component("one"));
        let index = ours.sign_with_bundle(&server, manifest);
        let index_type = "application/vnd.oci.image.index.v1+json";
        if has_api {
            let headers = vec![("content-type", index_type.to_owned())];
            let answer = Answer::Full(200, headers, index.into_bytes());
            server.answer(&format!("/v2/team/mirror/referrers/{manifest}"), answer);
        } else {
            put_manifest(&server, &format!("sha256-{}", manifest.to_hex()), index.as_bytes(), index_type);
        }
        let fetcher = fetcher(dir.path(), &(loopback(&server) + &ours.required("release")));
        let fetched = fetch(&fetcher, &oci(&server, ":1")).await.unwrap();
        assert_eq!(fetched.verified, Verified::SignedBy("release".to_owned()));
    }
}

#[tokio::test]
async fn attestations_and_what_cannot_be_read_do_not_hide_a_signature() {
    let server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Signer::new(), Signer::new());
    let manifest = put(&server, "1", &component("one"));
    let media_type = "application/vnd.dev.sigstore.bundle.v0.3+json";
    let descriptor = |digest: Digest, annotations: &str| {
        format!(
            r#"{{"mediaType":"{MANIFEST}","digest":"{digest}","size":1,"artifactType":"{media_type}","annotations":{{{annotations}}}}}"#
        )
    };
    // A bundle that is longer than any that is read.
    let long = blob(&server, &vec![b' '; 300 << 10]);
    let long = format!(
        r#"{{"schemaVersion":2,"artifactType":"{media_type}","layers":[{{"mediaType":"{media_type}","digest":"{long}","size":307200}}]}}"#
    );
    let long = put_manifest(&server, "unused", long.as_bytes(), MANIFEST);
    let missing = Digest::of(b"missing");
    // More attestations than signatures are read. None of them is asked for: they do not exist.
    let attestation =
        descriptor(missing, r#""dev.sigstore.bundle.predicateType":"https://spdx.dev/Document""#);
    let mut before: Vec<_> = std::iter::repeat_n(attestation, 40).collect();
    before.extend([descriptor(missing, ""), descriptor(long, "")]);
    let store = |index: String| {
        let index = index.replacen("[", &format!("[{},", before.join(",")), 1);
        let index_type = "application/vnd.oci.image.index.v1+json";
        put_manifest(&server, &format!("sha256-{}", manifest.to_hex()), index.as_bytes(), index_type);
    };
    let fetcher = fetcher(dir.path(), &(loopback(&server) + &ours.required("release")));
    store(theirs.sign_with_bundle(&server, manifest));
    let refused = fetch(&fetcher, &oci(&server, ":1")).await.unwrap_err().to_string();
    assert!(refused.contains("262144 bytes") || refused.contains("no key of the policy"), "{refused}");
    store(ours.sign_with_bundle(&server, manifest));
    let fetched = fetch(&fetcher, &oci(&server, ":1")).await.unwrap();
    assert_eq!(fetched.verified, Verified::SignedBy("release".to_owned()));
}

#[tokio::test]
async fn signatures_are_verified_again_without_the_registry() {
    let mut server = Server::start().await;
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Signer::new(), Signer::new());
    let manifest = put(&server, "1", &component("one"));
    ours.sign_simply(&server, manifest);
    let source = oci(&server, &format!("@{manifest}"));
    let policy = loopback(&server);
    fetch(&fetcher(dir.path(), &(policy.clone() + &ours.required("a"))), &source).await.unwrap();
    server.stop().await;

    let renamed =
        fetch(&fetcher(dir.path(), &(policy.clone() + &ours.required("b"))), &source).await.unwrap();
    assert_eq!(renamed.verified, Verified::SignedBy("b".to_owned()));
    let other_key = fetcher(dir.path(), &(policy + &theirs.required("c")));
    assert_eq!(fetch(&other_key, &source).await.unwrap_err().reason(), Reason::Unavailable);
}
