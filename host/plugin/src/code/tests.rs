use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::engine::wasmtime_config;

/// A component with nothing in it.
const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

fn engine() -> wasmtime::Engine {
    wasmtime::Engine::new(&wasmtime_config()).unwrap()
}

fn store(folder: &Path, engine: &wasmtime::Engine, max_bytes: u64) -> CodeStore {
    CodeStore::open(folder, max_bytes, EngineTag::of(engine)).unwrap()
}

/// Stores the code of the empty component under the digest of a text.
fn keep(store: &CodeStore, engine: &wasmtime::Engine, text: &str) -> Digest {
    let digest = Digest::of(text.as_bytes());
    let mut part = store.part().unwrap();
    let code = engine.precompile_component(EMPTY).unwrap();
    io::Write::write_all(&mut part.file, &code).unwrap();
    store.keep(engine, &digest, part, &[]).unwrap();
    digest
}

#[test]
fn code_is_found_by_its_component() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let one = store(dir.path(), &engine, 1 << 30);
    let digest = keep(&one, &engine, "a");
    assert!(one.load(&engine, &digest).is_some());
    assert!(store(dir.path(), &engine, 1 << 30).load(&engine, &digest).is_some(), "after a restart");
    assert!(one.load(&engine, &Digest::of(b"b")).is_none());
    let other_engine = CodeStore::open(dir.path(), 1 << 30, EngineTag([0; 32])).unwrap();
    assert!(other_engine.load(&engine, &digest).is_none());
    let modes: Vec<_> = fs::read_dir(one.folder())
        .unwrap()
        .map(|it| it.unwrap().metadata().unwrap().permissions().mode() & 0o777)
        .collect();
    assert_eq!(modes, [0o600, 0o600]);
}

#[test]
fn promise_4_changed_code_is_not_run() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let store = store(dir.path(), &engine, 1 << 30);
    type Damage<'a> = (&'a str, &'a dyn Fn(&Path));
    let damages: [Damage<'_>; 6] = [
        ("cut off", &|path| OpenOptions::new().write(true).open(path).unwrap().set_len(100).unwrap()),
        ("changed", &|path| {
            let mut code = fs::read(path).unwrap();
            let middle = code.len() / 2;
            code[middle] ^= 1;
            fs::write(path, code).unwrap();
        }),
        ("without a sum", &|path| fs::remove_file(path.with_extension(SUM)).unwrap()),
        ("of another component", &|path| {
            let other = keep(&store, &engine, "other");
            fs::copy(store.path(&other, CODE), path).unwrap();
            fs::copy(store.path(&other, SUM), path.with_extension(SUM)).unwrap();
        }),
        ("readable by others", &|path| {
            fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
        }),
        ("a link", &|path| {
            let there = path.with_extension("there");
            fs::rename(path, &there).unwrap();
            symlink(&there, path).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let digest = keep(&store, &engine, "a");
        assert!(store.load(&engine, &digest).is_some());
        damage(&store.path(&digest, CODE));
        assert!(store.load(&engine, &digest).is_none(), "{what}");
    }
}

#[test]
fn the_least_recently_used_code_is_evicted() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let one = store(dir.path(), &engine, u64::MAX);
    let names = ["a", "b", "c"];
    let digests = names.map(|name| keep(&one, &engine, name));
    for (age, digest) in [(30, &digests[0]), (20, &digests[1]), (10, &digests[2])] {
        let file = File::open(one.path(digest, SUM)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    assert!(one.load(&engine, &digests[0]).is_some(), "now it is the most recently used");
    let size = fs::metadata(one.path(&digests[0], CODE)).unwrap().len();
    let two = store(dir.path(), &engine, size * 3);
    keep(&two, &engine, "d");
    let there: Vec<_> = digests.iter().map(|digest| two.load(&engine, digest).is_some()).collect();
    assert_eq!(there, [true, false, true]);
}

#[test]
fn code_in_use_is_evicted_last_also_that_of_other_engines() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let other_engine = CodeStore::open(dir.path(), u64::MAX, EngineTag([0; 32])).unwrap();
    let old = keep(&other_engine, &engine, "of another version");
    let one = store(dir.path(), &engine, u64::MAX);
    let [a, b] = ["a", "b"].map(|name| keep(&one, &engine, name));
    let size = fs::metadata(one.path(&a, CODE)).unwrap().len();
    for (store, digest, age) in [(&other_engine, &old, 20), (&one, &a, 30), (&one, &b, 10)] {
        let file = File::open(store.path(digest, SUM)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    let exist =
        || [other_engine.path(&old, CODE), one.path(&a, CODE), one.path(&b, CODE)].map(|path| path.exists());
    let evict = |most: u64| store(dir.path(), &engine, most).evict(&[a]);
    evict(3 * size);
    assert_eq!(exist(), [true, true, true]);
    evict(2 * size);
    assert_eq!(exist(), [false, true, true], "the oldest one is in use");
    evict(size);
    assert_eq!(exist(), [false, true, false]);
    let mapped = one.load(&engine, &a).unwrap();
    evict(0);
    assert_eq!(exist(), [false, false, false], "the bound is for all code");
    drop(mapped);
}

#[test]
fn code_is_read_again_only_when_its_file_changed() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let one = store(dir.path(), &engine, 1 << 30);
    let digest = keep(&one, &engine, "a");
    let store = store(dir.path(), &engine, 1 << 30);
    let n_digests = || store.n_digests.load(Ordering::Relaxed);
    assert!(store.load(&engine, &digest).is_some() && store.load(&engine, &digest).is_some());
    assert_eq!(n_digests(), 0);
    // A copy of the folder has other inodes and times.
    let path = store.path(&digest, CODE);
    let copy = path.with_extension("copy");
    fs::copy(&path, &copy).unwrap();
    fs::rename(&copy, &path).unwrap();
    assert!(store.load(&engine, &digest).is_some());
    assert_eq!(n_digests(), 1);
    assert!(store.load(&engine, &digest).is_some());
    assert_eq!(n_digests(), 1, "the new times are recorded");
}

#[test]
fn code_that_is_noted_as_used_is_not_read_again_and_not_evicted() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let one = store(dir.path(), &engine, 1 << 30);
    let [used, unused] = ["a", "b"].map(|name| keep(&one, &engine, name));
    for (age, digest) in [(30, &used), (20, &unused)] {
        let file = File::open(one.path(digest, SUM)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    one.touch(&used);
    let size = fs::metadata(one.path(&used, CODE)).unwrap().len();
    let second = store(dir.path(), &engine, size);
    assert!(second.load(&engine, &used).is_some());
    assert_eq!(second.n_digests.load(Ordering::Relaxed), 0);
    one.touch(&used);
    second.evict(&[]);
    assert_eq!([&used, &unused].map(|digest| second.path(digest, CODE).exists()), [true, false]);
}

#[test]
fn a_temporary_store_leaves_no_file_behind() {
    let engine = engine();
    let store = CodeStore::temporary(EngineTag::of(&engine)).unwrap();
    let digest = keep(&store, &engine, "a");
    assert!(store.load(&engine, &digest).is_none());
    assert_eq!(fs::read_dir(store.folder()).unwrap().count(), 0);
    let folder = store.folder().to_owned();
    drop(store);
    assert!(!folder.exists());
}

#[test]
fn hosts_with_the_same_process_id_use_different_files() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    // In containers that share the folder each host has the process id 1, and counts from zero.
    let stores = [store(dir.path(), &engine, 1 << 30), store(dir.path(), &engine, 1 << 30)];
    let [mut one, other] = stores.each_ref().map(|store| store.part().unwrap());
    assert_ne!(one.path, other.path);
    assert!(one.path.exists() && other.path.exists());
    let code = engine.precompile_component(EMPTY).unwrap();
    io::Write::write_all(&mut one.file, &code).unwrap();
    stores[0].keep(&engine, &Digest::of(b"a"), one, &[]).unwrap();
    assert!(other.path.exists(), "the file of the other host still exists");
}
