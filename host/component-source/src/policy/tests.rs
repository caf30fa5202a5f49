use std::fs;

use super::*;

const KEY: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEbfwR+RJudXscgRBRpKX1XFDy3Pyu
dDxz/SfnRi1fT8ekpfBd2O1uoz7jr3Z8nKzxA69EUQ+eFCFI3zeubPWU7w==
-----END PUBLIC KEY-----
";

fn read(text: &str) -> Result<Policy, Error> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("cosign.pub"), KEY).unwrap();
    fs::write(dir.path().join("empty.pem"), "").unwrap();
    fs::write(dir.path().join("other.json"), r#"{"mediaType":"application/json"}"#).unwrap();
    let bare = r#"{"mediaType":"application/vnd.dev.sigstore.trustedroot+json;version=0.1"}"#;
    fs::write(dir.path().join("bare.json"), bare).unwrap();
    let path = dir.path().join("policy.yaml");
    fs::write(&path, text).unwrap();
    Policy::read(&path).map_err(|error| {
        let message = error.to_string().replace(&format!("{}/", dir.path().display()), "");
        Error::new(error.reason(), message)
    })
}

#[test]
fn each_key_of_the_file_is_used() {
    let policy = read(&format!(
        "kinds: [oci, https]
allow: [ghcr.io/team-a/*, downloads.example.com/mirror.wasm]
privateAddresses: [registry.registry.svc, 10.0.0.0/8, 192.168.1.1]
plainHttp: ['registry.registry.svc:5000']
mirrors: [{{registry: docker.io, endpoints: [mirror.example.com/hub, '10.0.0.1:5000']}}]
maxBytes: 1000
signatures:
- artifacts: ghcr.io/*
  keys: [{{name: release, file: cosign.pub}}]
- artifacts: ghcr.io/team-a/*
  keys: []
- artifacts: ghcr.io/team-b/c
  keys: [{{name: inline, pem: {KEY:?}}}]
"
    ))
    .unwrap();
    assert!(policy.check_allowed("ghcr.io/team-a/b").is_ok());
    let refusal = policy.check_allowed("ghcr.io/team-c/b").unwrap_err();
    assert_eq!(refusal.to_string(), "the policy of this host does not allow ghcr.io/team-c/b");
    assert!(policy.check_allowed("downloads.example.com/mirror.wasm").is_ok());

    let allowed = |host, address: &str| policy.is_address_allowed(host, address.parse().unwrap());
    assert!(allowed("registry.registry.svc", "172.16.0.1"));
    assert!(allowed("any.example.com", "10.1.1.1"));
    assert!(allowed("any.example.com", "::ffff:10.1.1.1"));
    assert!(allowed("any.example.com", "192.168.1.1"));
    assert!(!allowed("any.example.com", "192.168.1.2"));
    assert!(!allowed("any.example.com", "127.0.0.1"));
    assert!(allowed("any.example.com", "1.1.1.1"));
    assert!(
        policy.is_plain_http("registry.registry.svc:5000") && !policy.is_plain_http("registry.registry.svc")
    );
    assert_eq!(policy.mirrors("docker.io"), ["mirror.example.com/hub", "10.0.0.1:5000"]);
    assert_eq!(policy.max_bytes, 1000);

    let keys = |name| {
        let keys = policy.signers_of(name).map(|it| it.keys.as_slice()).unwrap_or_default();
        keys.iter().map(crate::signature::PublicKey::name).collect::<Vec<_>>()
    };
    assert_eq!(keys("ghcr.io/other/b"), ["release"]);
    assert_eq!(keys("ghcr.io/team-a/b"), [""; 0], "the longest pattern decides");
    assert_eq!(keys("ghcr.io/team-b/c"), ["inline"]);
    assert_eq!(keys("quay.io/a"), [""; 0]);

    let file = crate::FileSource { path: "a".to_owned() };
    let refusal = policy.check_kind(Member::File(&file)).unwrap_err();
    assert_eq!(refusal.to_string(), "the policy of this host allows no file sources");
}

#[test]
fn the_default_allows_public_addresses_over_tls() {
    for policy in [Policy::default(), read("{}").unwrap()] {
        assert!(policy.check_allowed("any.example.com/a").is_ok());
        assert!(policy.is_address_allowed("a", "1.1.1.1".parse().unwrap()));
        assert!(!policy.is_address_allowed("localhost", "127.0.0.1".parse().unwrap()));
        assert!(!policy.is_plain_http("localhost:5000"));
        assert!(policy.signers_of("any.example.com/a").is_none());
        assert_eq!(policy.max_bytes, 64 << 20);
    }
}

#[test]
fn a_faulty_file_says_what_is_wrong() {
    let refusal = |text: &str| read(text).unwrap_err().to_string();
    insta::assert_snapshot!(refusal("alow: []"), @"source policy: policy.yaml:1:1: unknown field `alow`, expected one of `kinds`, `allow`, `privateAddresses`, `plainHttp`, `mirrors`, `certificateAuthorities`, `maxBytes`, `signatures`, `trustedRoot`");
    insta::assert_snapshot!(refusal("allow: [ghcr.io]"), @r#"source policy: allow: "ghcr.io": expected ghcr.io/* for everything of this host"#);
    insta::assert_snapshot!(refusal("privateAddresses: [10.0.0.0/99]"), @r#"source policy: privateAddresses: "10.0.0.0/99" is not a network such as 10.0.0.0/8"#);
    insta::assert_snapshot!(refusal("privateAddresses: ['a:5000']"), @r#"source policy: privateAddresses: "a:5000" is not a host without scheme and port"#);
    insta::assert_snapshot!(refusal("plainHttp: ['http://a']"), @r#"source policy: plainHttp: "http://a" is not a host with or without port"#);
    insta::assert_snapshot!(refusal("certificateAuthorities: [absent.pem]"), @"source policy: absent.pem: No such file or directory (os error 2)");
    insta::assert_snapshot!(refusal("certificateAuthorities: [empty.pem]"), @"source policy: certificateAuthorities: empty.pem has no certificate");
    insta::assert_snapshot!(refusal("signatures: [{artifacts: '*', keys: [{name: a}]}]"), @"source policy: signatures: key a needs either pem or file");
    insta::assert_snapshot!(refusal("signatures: [{artifacts: '*', keys: [{name: a, pem: x}]}]"), @"source policy: signatures: key a is not PEM with the label PUBLIC KEY");
    insta::assert_snapshot!(refusal("signatures: [{artifacts: '*'}]"), @"source policy: signatures: * needs keys or keyless");
    insta::assert_snapshot!(refusal("signatures: [{artifacts: '*', keyless: [{issuer: i, identity: a}]}]"), @"source policy: signatures: keyless of * needs a trustedRoot");
    insta::assert_snapshot!(refusal("signatures: [{artifacts: '*', keyless: [{issuer: i}]}]"), @"source policy: signatures: keyless of the issuer i needs either identity or identityRegex");
    insta::assert_snapshot!(refusal("signatures: [{artifacts: '*', keyless: [{issuer: i, identity: a, identityRegex: a}]}]"), @"source policy: signatures: keyless of the issuer i needs either identity or identityRegex");
    insta::assert_snapshot!(refusal("signatures: [{artifacts: '*', keyless: [{issuer: '', identity: a}]}]"), @"source policy: signatures: keyless needs an issuer");
    assert!(
        refusal("signatures: [{artifacts: '*', keyless: [{issuer: i, identityRegex: 'a)|(b'}]}]")
            .contains("unopened group")
    );
    insta::assert_snapshot!(refusal("trustedRoot: cosign.pub"), @"source policy: trustedRoot: cosign.pub is no trusted root: failed to parse JSON: invalid number at line 1 column 2");
    insta::assert_snapshot!(refusal("trustedRoot: other.json"), @r#"source policy: trustedRoot: other.json is no trusted root: it has the media type "application/json""#);
    insta::assert_snapshot!(refusal("trustedRoot: bare.json"), @"source policy: trustedRoot: bare.json has no certificateAuthorities: no keyless signature could be verified");
    insta::assert_snapshot!(refusal("mirrors: [{registry: a.io, endpoints: []}, {registry: a.io, endpoints: []}]"), @"source policy: mirrors: a.io is there twice");
}
