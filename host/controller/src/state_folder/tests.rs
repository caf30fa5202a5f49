use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use tempfile::TempDir;

use super::*;

/// A folder for state in which a version of the plugin `p` is the last good one.
fn kept() -> (TempDir, StateFolder) {
    let dir = tempfile::tempdir().unwrap();
    let state = StateFolder::new(Some(dir.path().to_owned()));
    keep(&state, &file("a: 1"), b"one");
    (dir, state)
}

fn file(config: &str) -> PluginFile {
    let text = format!(
        "{{name: p, component: p.wasm, serviceAccount: {{namespace: ns, name: p}}, config: {{{config}}}}}"
    );
    PluginFile::parse(Path::new("plugins/p.yaml"), &text).unwrap()
}

fn id_of(file: &PluginFile, bytes: &[u8]) -> VersionId {
    VersionId::of(Digest::of(bytes), file)
}

fn keep(state: &StateFolder, file: &PluginFile, bytes: &[u8]) {
    state.stage(file, "1.0.0", Digest::of(bytes), bytes).unwrap();
    state.promote(id_of(file, bytes), file, &Quarantine::default()).unwrap();
}

fn last_good(state: &StateFolder) -> Result<Option<LastGood>, Error> {
    good_of(state, "p", "plugins/p.yaml")
}

/// Returns the last good version, or the first error.
fn good_of(state: &StateFolder, plugin: &str, path: &str) -> Result<Option<LastGood>, Error> {
    let (found, errors) = state.last_good(plugin, Path::new(path), |_| true);
    errors.into_iter().next().map_or(Ok(found), Err)
}

fn only_file(dir: &TempDir, folder: &str) -> PathBuf {
    let mut entries = fs::read_dir(dir.path().join("last-good").join(folder)).unwrap();
    let path = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    path
}

#[test]
fn a_version_is_kept_with_its_file_and_only_after_its_probation() {
    let (dir, state) = kept();
    let found = last_good(&state).unwrap().unwrap();
    assert_eq!((found.file, &*found.bytes, &*found.version), (file("a: 1"), &b"one"[..], "1.0.0"));
    assert!(state.is_last_good(id_of(&file("a: 1"), b"one"), &file("a: 1")));
    assert!(!state.is_last_good(id_of(&file("a: 2"), b"one"), &file("a: 2")));

    state.stage(&file("a: 2"), "2.0.0", Digest::of(b"two"), b"two").unwrap();
    assert_eq!(last_good(&state).unwrap().unwrap().bytes, b"one", "the other one is on probation");
    state.promote(id_of(&file("a: 2"), b"two"), &file("a: 2"), &Quarantine::default()).unwrap();
    // As after a restart.
    let state = StateFolder::new(Some(dir.path().to_owned()));
    assert_eq!(last_good(&state).unwrap().unwrap().bytes, b"two");
    assert!(good_of(&state, "p", "elsewhere/p.yaml").unwrap().is_none(), "another plugin file");
    let bad = id_of(&file("a: 2"), b"two");
    let (found, errors) = state.last_good("p", Path::new("plugins/p.yaml"), |id| id != bad);
    assert!(errors.is_empty());
    assert_eq!(found.unwrap().bytes, b"one", "the good one before");
    let modes = ["components", "plugins"].map(|folder| {
        let entries = fs::read_dir(dir.path().join("last-good").join(folder)).unwrap();
        let mode =
            |it: io::Result<fs::DirEntry>| it.unwrap().metadata().unwrap().permissions().mode() & 0o777;
        entries.map(mode).collect::<Vec<_>>()
    });
    assert_eq!(modes, [vec![0o600; 2], vec![0o600; 2]]);
}

#[test]
fn promise_6_two_hosts_with_one_folder_keep_the_good_version() {
    let (_dir, state) = kept();
    let promote = |bytes: &[u8]| {
        let id = id_of(&file("a: 1"), bytes);
        state.promote(id, &file("a: 1"), &Quarantine::default())
    };
    // Both stage the same version, and promote it one after the other.
    for _ in 0..2 {
        state.stage(&file("a: 1"), "2.0.0", Digest::of(b"two"), b"two").unwrap();
    }
    promote(b"two").unwrap();
    promote(b"two").unwrap();
    assert_eq!(last_good(&state).unwrap().unwrap().bytes, b"two");
    let two = id_of(&file("a: 1"), b"two");
    let (before, _) = state.last_good("p", Path::new("plugins/p.yaml"), |id| id != two);
    assert_eq!(before.unwrap().bytes, b"one");
    // Another host staged another version meanwhile.
    state.stage(&file("a: 1"), "3.0.0", Digest::of(b"three"), b"three").unwrap();
    state.stage(&file("a: 1"), "4.0.0", Digest::of(b"four"), b"four").unwrap();
    let error = promote(b"three").unwrap_err();
    assert!(matches!(error, Error::OtherVersion { .. }), "{error}");
    let error = error.to_string();
    let why = error.split_once(".candidate").unwrap().1;
    insta::assert_snapshot!(why, @" cannot be used: the version that passed its probation is not in it");
    assert_eq!(last_good(&state).unwrap().unwrap().bytes, b"two");
}

#[test]
fn promise_6_a_version_in_quarantine_does_not_replace_the_good_one_before() {
    let (_dir, state) = kept();
    keep(&state, &file("a: 1"), b"two");
    // It passed its probation, and is rolled back later.
    let mut quarantine = Quarantine::default();
    quarantine.add(id_of(&file("a: 1"), b"two"), "2.0.0", "d", "an operator asked", "now".to_owned());
    state.stage(&file("a: 1"), "3.0.0", Digest::of(b"three"), b"three").unwrap();
    state.promote(id_of(&file("a: 1"), b"three"), &file("a: 1"), &quarantine).unwrap();
    assert_eq!(last_good(&state).unwrap().unwrap().bytes, b"three");
    let bad = id_of(&file("a: 1"), b"three");
    let may_be_used = |id| id != bad && quarantine.find(id).is_none();
    let (found, errors) = state.last_good("p", Path::new("plugins/p.yaml"), may_be_used);
    assert!(errors.is_empty());
    assert_eq!(found.expect("the good one before").bytes, b"one");
}

#[test]
fn promise_6_without_a_good_version_the_one_on_probation_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let state = StateFolder::new(Some(dir.path().to_owned()));
    let path = Path::new("plugins/p.yaml");
    assert!(state.on_probation("p", path, |_| true).unwrap().is_none());
    state.stage(&file("a: 1"), "1.0.0", Digest::of(b"one"), b"one").unwrap();
    assert!(last_good(&state).unwrap().is_none());
    let found = state.on_probation("p", path, |_| true).unwrap().unwrap();
    assert_eq!((found.bytes.as_slice(), found.has_passed), (&b"one"[..], false));
    assert!(state.on_probation("p", path, |_| false).unwrap().is_none(), "it is in quarantine");
    // The next one is rolled back; the one before it can still be read.
    let stage_second = || state.stage(&file("a: 1"), "2.0.0", Digest::of(b"two"), b"two").unwrap();
    stage_second();
    stage_second();
    let bad = id_of(&file("a: 1"), b"two");
    let found = state.on_probation("p", path, |id| id != bad).unwrap().unwrap();
    assert_eq!(found.bytes, b"one");
    state.stage(&file("a: 1"), "1.0.0", Digest::of(b"one"), b"one").unwrap();
    state.promote(id_of(&file("a: 1"), b"one"), &file("a: 1"), &Quarantine::default()).unwrap();
    assert!(last_good(&state).unwrap().unwrap().has_passed);
    assert!(state.on_probation("p", path, |_| true).unwrap().is_none(), "a good one replaces them");
}

#[test]
fn without_a_folder_nothing_is_kept() {
    let state = StateFolder::new(None);
    keep(&state, &file(""), b"one");
    assert!(last_good(&state).unwrap().is_none());
    let (mut quarantine, error) = state.quarantine("p", Path::new("p.yaml"));
    assert!(error.is_none());
    quarantine.add(id_of(&file(""), b"one"), "1", "d", "it traps", "now".to_owned());
    quarantine.save().unwrap();
}

#[test]
fn promise_4_texts_of_a_plugin_cannot_make_its_quarantine_too_long_to_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let state = StateFolder::new(Some(dir.path().to_owned()));
    let (mut quarantine, _) = state.quarantine("p", Path::new("p.yaml"));
    // Each byte takes six in JSON.
    let text = "\u{1}".repeat(4_096);
    let id = |n: usize| id_of(&file(""), n.to_string().as_bytes());
    for n in 0..32 {
        quarantine.add(id(n), &text, "d", &text, "now".to_owned());
    }
    quarantine.save().unwrap();
    let (read, error) = state.quarantine("p", Path::new("p.yaml"));
    assert!(error.is_none(), "{error:?}");
    assert!(read.find(id(31)).is_some() && read.find(id(0)).is_none());
}

#[test]
fn promise_4_a_changed_file_is_not_used() {
    type Damage<'a> = (&'a str, &'a str, &'a dyn Fn(&Path));
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    let cut = |path: &Path| fs::write(path, &fs::read(path).unwrap()[..2]).unwrap();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    let link = |path: &Path| {
        let there = path.with_extension("there");
        fs::rename(path, &there).unwrap();
        symlink(&there, path).unwrap();
    };
    let damages: [Damage<'_>; 8] = [
        ("plugins", "changed", &flip),
        ("plugins", "cut off", &cut),
        ("plugins", "readable by others", &open),
        ("plugins", "a link", &link),
        ("components", "changed", &flip),
        ("components", "cut off", &cut),
        ("components", "readable by others", &open),
        ("components", "gone", &|path| fs::remove_file(path).unwrap()),
    ];
    for (folder, what, damage) in damages {
        let (dir, state) = kept();
        assert!(last_good(&state).unwrap().is_some());
        damage(&only_file(&dir, folder));
        let error = last_good(&state).unwrap_err().to_string();
        assert!(error.contains("last-good"), "{what}: {error}");
        if what != "a link" {
            keep(&state, &file("a: 1"), b"one");
            assert!(last_good(&state).unwrap().is_some(), "{what}: it is written again");
        }
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_with_its_path() {
    let dir = tempfile::tempdir().unwrap();
    // Also for root, who may write to any folder.
    fs::write(dir.path().join("last-good"), b"").unwrap();
    fs::write(dir.path().join("quarantine"), b"").unwrap();
    let state = StateFolder::new(Some(dir.path().to_owned()));
    let error = state.stage(&file(""), "1", Digest::of(b"one"), b"one").unwrap_err().to_string();
    assert!(error.contains("last-good/plugins cannot be created"), "{error}");
    let (mut quarantine, error) = state.quarantine("p", Path::new("p.yaml"));
    let error = error.unwrap().to_string();
    assert!(error.contains("quarantine/p-") && error.contains("cannot be read"), "{error}");
    quarantine.add(id_of(&file(""), b"one"), "1", "d", "it traps", "now".to_owned());
    assert!(quarantine.save().is_err());
    assert!(quarantine.find(id_of(&file(""), b"one")).is_some(), "this host knows it");
}

#[test]
fn the_folder_stays_within_its_limits_and_the_least_recently_used_version_goes_first() {
    let dir = tempfile::tempdir().unwrap();
    let state = StateFolder::new(Some(dir.path().to_owned()));
    let names = ["a", "b", "c", "d"];
    let file_of = |name: &str| PluginFile { name: name.to_owned(), ..file("") };
    for (age, name) in names.iter().enumerate() {
        // `c` and `d` share a component.
        let bytes = vec![u8::try_from(age.min(2)).unwrap(); 100];
        keep(&state, &file_of(name), &bytes);
        assert!(good_of(&state, name, "plugins/p.yaml").unwrap().is_some());
        let manifest = state.place_for_test(name);
        let used = std::time::SystemTime::now() - std::time::Duration::from_secs(1_000 - age as u64);
        fs::File::options().write(true).open(manifest).unwrap().set_modified(used).unwrap();
    }
    let there = || names.map(|name| state.place_for_test(name).exists());
    assert_eq!(there(), [true; 4]);
    // Reading `a` makes it the most recently used one.
    assert!(good_of(&state, "a", "plugins/p.yaml").unwrap().is_some());
    state.make_room_for_test("d", 250);
    assert_eq!(there(), [true, false, false, true]);
}

#[test]
fn a_version_is_not_tried_again_until_its_bytes_or_its_settings_change() {
    let (dir, state) = kept();
    let path = Path::new("plugins/p.yaml");
    let (mut quarantine, _) = state.quarantine("p", path);
    let bad = id_of(&file("a: 1"), b"bad");
    quarantine.add(bad, "1.1.0", "d", "it lost 4 instances", "2026-01-01T00:00:00Z".to_owned());
    quarantine.save().unwrap();
    let state = StateFolder::new(Some(dir.path().to_owned()));
    let (mut quarantine, error) = state.quarantine("p", path);
    assert!(error.is_none());
    assert_eq!(quarantine.find(bad).unwrap().reason, "it lost 4 instances");
    assert!(quarantine.find(id_of(&file("a: 1"), b"good")).is_none(), "other bytes");
    assert!(quarantine.find(id_of(&file("a: 2"), b"bad")).is_none(), "another configuration");
    let suspended = PluginFile { suspend_writes: true, is_suspended: true, weight: 1, ..file("a: 1") };
    assert!(quarantine.find(id_of(&suspended, b"bad")).is_some(), "this changes nothing of the version");
    for n in 0..100 {
        let id = id_of(&file(&format!("n: {n}")), b"bad");
        quarantine.add(id, "1", "d", &"é".repeat(100_000), "now".to_owned());
    }
    quarantine.save().unwrap();
    let (mut quarantine, error) = state.quarantine("p", path);
    assert!(error.is_none(), "{error:?}");
    assert!(quarantine.find(bad).is_none(), "the oldest is forgotten");
    assert_eq!(quarantine.clear(), 32);
    quarantine.save().unwrap();
    assert_eq!(state.quarantine("p", path).0.clear(), 0);
}
