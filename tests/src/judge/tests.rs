use serde_json::json;

use super::*;

const ALL: fn(&Value) -> bool = |object| object["metadata"]["labels"]["app"] != "other";

fn watcher() -> Watcher<'static> {
    Watcher { plugin: "p", subscription: "s", matches: &ALL, stateless: false }
}

fn history(versions: &[(&str, bool)]) -> History {
    let version = |&(rv, deleted): &(&str, bool)| {
        let app = if rv.ends_with('x') { "other" } else { "mine" };
        let object = json!({"metadata": {"namespace": "n", "name": "a", "uid": "u", "resourceVersion": rv,
            "labels": {"app": app}}});
        Version { deleted, object: object.into() }
    };
    BTreeMap::from([("n/a".to_owned(), versions.iter().map(version).collect())])
}

fn told(generation: u64, kind: Kind, rv: &str, old: Option<&str>) -> Told {
    Told {
        plugin: "p".into(),
        generation,
        subscription: "s".into(),
        kind,
        key: "n/a".into(),
        uid: "u".into(),
        resource_version: rv.into(),
        old_resource_version: old.map(str::to_owned),
    }
}

const ADD: Kind = Kind::Add { initial: false };
const INITIAL: Kind = Kind::Add { initial: true };

#[test]
fn a_chain_that_skips_versions_and_reaches_the_end_is_in_order() {
    let history = history(&[("1", false), ("2", false), ("3", false), ("4", true)]);
    let told =
        [told(1, ADD, "1", None), told(1, Kind::Update, "3", Some("1")), told(1, Kind::Delete, "4", None)];
    assert_eq!(judge(&watcher(), &history, &told), Vec::<String>::new());
}

#[test]
fn what_was_swallowed_shows() {
    let history = history(&[("1", false), ("2", false), ("3", false)]);
    let broken = [told(1, ADD, "1", None), told(1, Kind::Update, "3", Some("2"))];
    assert_eq!(judge(&watcher(), &history, &broken).len(), 2, "a broken chain, and a wrong end");
    let short = [told(1, ADD, "1", None), told(1, Kind::Update, "2", Some("1"))];
    assert_eq!(
        judge(&watcher(), &history, &short),
        ["p (s) n/a: ended at version 3, was last told version 2"]
    );
    assert_eq!(judge(&watcher(), &history, &[]), ["p (s) n/a: ended at version 3, was last told nothing"]);
}

#[test]
fn disorder_doubles_and_inventions_show() {
    let history = history(&[("1", false), ("2", false)]);
    let back = [told(1, ADD, "2", None), told(1, Kind::Delete, "2", None), told(1, ADD, "1", None)];
    assert!(judge(&watcher(), &history, &back)[0].contains("out of order"));
    let double = [told(1, ADD, "1", None), told(1, ADD, "2", None)];
    assert!(judge(&watcher(), &history, &double)[0].contains("add of 2 after"));
    let twice = [told(1, ADD, "1", None), told(1, Kind::Delete, "1", None), told(1, Kind::Delete, "1", None)];
    assert!(judge(&watcher(), &history, &twice)[0].contains("did not know"));
    let invented = [told(1, ADD, "9", None)];
    assert!(judge(&watcher(), &history, &invented)[0].contains("never was"));
}

#[test]
fn an_object_that_ceases_to_match_must_be_told_as_deleted() {
    let history = history(&[("1", false), ("2x", false)]);
    let deleted = [told(1, ADD, "1", None), told(1, Kind::Delete, "1", None)];
    assert_eq!(judge(&watcher(), &history, &deleted), Vec::<String>::new());
    let updated = [told(1, ADD, "1", None), told(1, Kind::Update, "2x", Some("1"))];
    assert!(judge(&watcher(), &history, &updated)[0].contains("does not match"));
}

#[test]
fn a_new_generation_is_told_everything_anew_unless_it_is_stateless() {
    let history = history(&[("1", false), ("2", false)]);
    let replayed =
        [told(1, ADD, "1", None), told(2, INITIAL, "1", None), told(2, Kind::Update, "2", Some("1"))];
    assert_eq!(judge(&watcher(), &history, &replayed), Vec::<String>::new());
    let taken_over = [told(1, ADD, "1", None), told(2, Kind::Update, "2", Some("1"))];
    assert!(!judge(&watcher(), &history, &taken_over).is_empty());
    let stateless = Watcher { stateless: true, ..watcher() };
    assert_eq!(judge(&stateless, &history, &taken_over), Vec::<String>::new());
}
