use proptest::prelude::*;
use sigstore_verify::trust_root::{SIGSTORE_PRODUCTION_TRUSTED_ROOT, SIGSTORE_STAGING_TRUSTED_ROOT};

use super::*;

const REKOR_1: &str = include_str!("../../../tests/bundles/rekor-1.sigstore.json");
const REKOR_2: &str = include_str!("../../../tests/bundles/rekor-2.sigstore.json");
/// The file that both bundles are about.
const SUBJECT: &str = "54303491a8418fbed24344b513546182c29b43bf282ceb433af65e2299f9271f";
const ISSUER: &str = "https://token.actions.githubusercontent.com";
const WORKFLOW: &str =
    "https://github.com/prefix-dev/sigstore-example/.github/workflows/action.yaml@refs/heads/main";

fn production() -> Root {
    Root::parse(SIGSTORE_PRODUCTION_TRUSTED_ROOT).unwrap()
}

fn staging() -> Root {
    Root::parse(SIGSTORE_STAGING_TRUSTED_ROOT).unwrap()
}

fn subject() -> Digest {
    Digest::from_hex(SUBJECT).unwrap()
}

#[test]
fn bundles_of_the_public_instances_are_verified() {
    for (bundle, root, identity, issuer) in [
        (REKOR_1, production(), WORKFLOW, ISSUER),
        (REKOR_2, staging(), "jku@goto.fi", "https://github.com/login/oauth"),
    ] {
        let (signed_by, statement) = root.verify(bundle, subject()).unwrap();
        assert_eq!(signed_by, SignedBy { identity: identity.to_owned(), issuer: issuer.to_owned() });
        assert!(String::from_utf8(statement).unwrap().contains(SUBJECT));
    }
}

#[test]
fn bundles_of_the_public_instances_count_for_their_subject_and_with_their_root_only() {
    for (bundle, root, other_root) in [(REKOR_1, production(), staging()), (REKOR_2, staging(), production())]
    {
        let other = root.verify(bundle, Digest::of(b"other")).unwrap_err();
        assert!(other.starts_with("artifact mismatch"), "{other}");
        assert!(other_root.verify(bundle, subject()).is_err());
    }
}

#[test]
fn an_attestation_is_no_signature() {
    let signers = super::super::Signers {
        keyless: vec![Signer::exact(ISSUER.to_owned(), WORKFLOW.to_owned())],
        root: Some(production()),
        ..Default::default()
    };
    let evidence = [super::super::Evidence::of_bundle(REKOR_1.into())];
    let refusals = super::super::verify(&evidence, &signers, subject()).unwrap_err();
    insta::assert_snapshot!(refusals.join("\n"), @r#"it is no signature, but a statement of the type "https://schemas.conda.org/attestations-publish-1.schema.json""#);
}

#[test]
fn a_signer_is_an_issuer_and_a_whole_identity() {
    let by = |identity: &str, issuer: &str| SignedBy { identity: identity.into(), issuer: issuer.into() };
    let accepts = |signer: Signer, identity: &str| by(identity, "https://i").check(&[signer]).is_ok();
    let pattern = |text: &str| Signer::pattern("https://i".to_owned(), text.to_owned()).unwrap();
    let exact = || Signer::exact("https://i".to_owned(), "a@b.io".to_owned());
    assert!(accepts(exact(), "a@b.io"));
    for other in ["a@b.ioo", "aa@b.io", "A@b.io", "a@bxio", "", "a@b.io\n"] {
        assert!(!accepts(exact(), other), "{other:?}");
    }
    assert!(accepts(pattern("a+@b[.]io"), "aaa@b.io"));
    for other in ["evil-aaa@b.io", "aaa@b.io.evil", "aaa@b.io\n", "x\naaa@b.io\ny"] {
        assert!(!accepts(pattern("a+@b[.]io"), other), "{other:?}");
        assert!(!accepts(pattern("(?m)^a+@b[.]io$"), other), "{other:?}");
        assert!(!accepts(pattern("never|a+@b[.]io"), other), "{other:?}");
    }
    assert!(accepts(pattern("a|ab"), "ab"), "the longer alternative is tried too");
    // A group that is closed too early would leave the rest without its end.
    for text in ["a)|(b", "(", "a{100000000}"] {
        assert!(Signer::pattern("https://i".to_owned(), text.to_owned()).is_err(), "{text}");
    }

    let check = |it: SignedBy| it.check(&[exact()]).unwrap_err();
    insta::assert_snapshot!(check(by("a@b.io", "https://evil\x1b[31m")), @"the issuer of its identity a@b.io is https://evil[31m");
    insta::assert_snapshot!(check(by("c@b.io", "https://i")), @"its identity is c@b.io (https://i)");
    assert_eq!(check(by(&"x".repeat(100_000), "https://i")).len(), 328);
}

#[test]
fn the_proofs_of_a_bundle_are_bounded() {
    let repeated = |pointer: &str, n: usize| {
        let mut bundle: serde_json::Value = serde_json::from_str(REKOR_2).unwrap();
        let list = bundle.pointer_mut(pointer).unwrap().as_array_mut().unwrap();
        *list = vec![list[0].clone(); n];
        staging().verify(&bundle.to_string(), subject())
    };
    let entries = "/verificationMaterial/tlogEntries";
    let timestamps = "/verificationMaterial/timestampVerificationData/rfc3161Timestamps";
    insta::assert_snapshot!(repeated(entries, 9).unwrap_err(), @"it has 9 log entries, and at most 8 are read");
    insta::assert_snapshot!(repeated(timestamps, 9).unwrap_err(), @"it has 9 timestamps, and at most 8 are read");
    assert!(repeated(timestamps, 1).is_ok());
    for pointer in [entries, timestamps] {
        assert!(repeated(pointer, 0).is_err(), "{pointer}");
    }
}

/// Returns the places of the signed or signing bytes in a bundle: each string that is longer than a number.
fn strings(value: &mut serde_json::Value) -> Vec<&mut String> {
    match value {
        serde_json::Value::String(text) if text.len() > 20 => vec![text],
        serde_json::Value::Array(list) => list.iter_mut().flat_map(strings).collect(),
        serde_json::Value::Object(map) => map.values_mut().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_bundle_with_a_changed_character_never_has_another_signer(
        which: prop::sample::Index,
        place: prop::sample::Index,
        with in "[A-Za-z0-9+/]",
    ) {
        for (bundle, root, identity) in
            [(REKOR_1, production(), WORKFLOW), (REKOR_2, staging(), "jku@goto.fi")]
        {
            let mut bundle: serde_json::Value = serde_json::from_str(bundle).unwrap();
            let mut strings = strings(&mut bundle);
            let text = which.get_mut(&mut strings);
            let place = place.index(text.len());
            if text.is_char_boundary(place) && text.is_char_boundary(place + 1) {
                text.replace_range(place..=place, &with);
            }
            // Not each byte is signed: the proof of Rekor 2 repeats the root of its checkpoint.
            if let Ok((signed_by, statement)) = root.verify(&bundle.to_string(), subject()) {
                prop_assert_eq!(signed_by.identity, identity);
                prop_assert!(String::from_utf8(statement).unwrap().contains(SUBJECT));
            }
        }
    }

    #[test]
    fn any_text_is_parsed_without_a_panic(text in ".{0,200}", cut: prop::sample::Index) {
        let root = production();
        prop_assert!(root.verify(&text, subject()).is_err());
        let cut = REKOR_1.floor_char_boundary(cut.index(REKOR_1.trim_end().len()));
        prop_assert!(root.verify(&REKOR_1[..cut], subject()).is_err());
        prop_assert!(Root::parse(&text).is_err());
    }
}
