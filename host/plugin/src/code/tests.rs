use std::{
    fs::OpenOptions,
    os::unix::fs::{PermissionsExt as _, symlink},
    time::Duration,
};

use super::{part::MAX_IN_MEMORY, *};
use crate::engine::wasmtime_config;
use crate::{component::ComponentFile, inspect::Surface};

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
    let kept = keep_beside(store, engine, text, &[]).unwrap();
    assert_eq!(kept.trouble, None);
    Digest::of(text.as_bytes())
}

/// The same while other components are in use.
fn keep_beside(
    store: &CodeStore,
    engine: &wasmtime::Engine,
    text: &str,
    in_use: &[Digest],
) -> Result<Kept, String> {
    let code = engine.precompile_component(EMPTY).unwrap();
    let part = store.receive(code.len() as u64, &mut &*code, in_use).map_err(|error| error.to_string())?;
    store.keep(engine, &Digest::of(text.as_bytes()), part, in_use)
}

/// A disk with a place for so many bytes.
#[derive(Debug)]
struct SmallDisk {
    folder: PathBuf,
    bytes: u64,
    /// It notices only when a file is synchronised, as some file systems do.
    is_late: bool,
}

// === impl SmallDisk ===

impl SmallDisk {
    fn check(&self, more: usize) -> io::Result<()> {
        let used: u64 =
            fs::read_dir(&self.folder).unwrap().map(|it| it.unwrap().metadata().unwrap().len()).sum();
        if used + more as u64 > self.bytes { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl Disk for SmallDisk {
    fn create(&self, path: &Path) -> io::Result<File> {
        SystemDisk.create(path)
    }

    fn write(&self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(1_000)];
        if !self.is_late {
            self.check(bytes.len())?;
        }
        SystemDisk.write(file, bytes)
    }

    fn sync(&self, _: &File) -> io::Result<()> {
        self.check(0)
    }
}

/// Returns a store whose disk has a place for as many files of code.
fn store_on_small_disk(folder: &Path, engine: &wasmtime::Engine, n: u64, is_late: bool) -> CodeStore {
    let mut store = store(folder, engine, u64::MAX);
    let code = engine.precompile_component(EMPTY).unwrap().len() as u64;
    let bytes = code * n + code / 2;
    store.disk = Box::new(SmallDisk { folder: store.folder.clone(), bytes, is_late });
    store
}

#[test]
fn on_a_full_disk_the_least_recently_used_code_is_removed() {
    for is_late in [false, true] {
        let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
        let store = store_on_small_disk(dir.path(), &engine, 2, is_late);
        let [a, b] = ["a", "b"].map(|name| keep(&store, &engine, name));
        for (age, digest) in [(30, &a), (20, &b)] {
            let file = File::open(store.path(digest, SUM)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        }
        // The code in use keeps its place on the disk, whether its file has a name or not.
        let kept = keep_beside(&store, &engine, "c", &[a]).unwrap();
        assert_eq!((kept.trouble, kept.in_memory.is_none()), (None, true));
        let there = [a, b, Digest::of(b"c")].map(|digest| store.path(&digest, CODE).exists());
        assert_eq!(there, [true, false, true], "late: {is_late}");
    }
}

#[test]
fn code_that_the_disk_has_no_place_for_is_kept_in_memory() {
    for is_late in [false, true] {
        let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
        let store = store_on_small_disk(dir.path(), &engine, 1, is_late);
        let a = keep(&store, &engine, "a");
        let kept = keep_beside(&store, &engine, "b", &[a]).unwrap();
        assert_eq!(
            kept.trouble.as_deref(),
            Some(if is_late { "no storage space" } else { "the disk is full" })
        );
        let bytes = store.in_memory.load(Ordering::Relaxed);
        assert!(bytes > 0);
        assert!(store.load(&engine, &a).is_some() && store.load(&engine, &Digest::of(b"b")).is_none());
        let left: Vec<_> = fs::read_dir(&store.folder).unwrap().map(|it| it.unwrap().path()).collect();
        assert_eq!(left.len(), 2, "the code and the digest of a: {left:?}");
        drop(kept.in_memory);
        assert_eq!(store.in_memory.load(Ordering::Relaxed), 0);

        // The memory for code is bounded.
        store.in_memory.store(MAX_IN_MEMORY - bytes + 1, Ordering::Relaxed);
        let Err(error) = keep_beside(&store, &engine, "b", &[a]) else { panic!("more than the bound") };
        assert_eq!(error, "the disk is full, and with it the 256 MiB of memory that replace it");
        assert_eq!(fs::read_dir(&store.folder).unwrap().count(), 2, "late: {is_late}");
        // It is tried again with the next component.
        store.in_memory.store(0, Ordering::Relaxed);
        assert_eq!(keep_beside(&store, &engine, "b", &[]).unwrap().trouble, None);
    }
}

#[test]
fn code_that_ends_early_is_not_kept() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let store = store(dir.path(), &engine, u64::MAX);
    let error = store.receive(10, &mut &b"123456789"[..], &[]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    assert_eq!(fs::read_dir(&store.folder).unwrap().count(), 0);
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
    let code = engine.precompile_component(EMPTY).unwrap();
    let [one, other] =
        stores.each_ref().map(|store| store.receive(code.len() as u64, &mut &*code, &[]).unwrap());
    assert_ne!(one.path, other.path);
    assert!(one.path.exists() && other.path.exists());
    stores[0].keep(&engine, &Digest::of(b"a"), one, &[]).unwrap();
    assert!(other.path.exists(), "the file of the other host still exists");
}

#[test]
fn a_file_that_was_read_is_known_until_it_changes() {
    let (dir, engine) = (tempfile::tempdir().unwrap(), engine());
    let path = dir.path().join("component.wasm");
    fs::write(&path, "one").unwrap();
    let look = || ComponentFile::new(&path, &fs::metadata(&path).unwrap());
    let surface = Surface { imports: vec!["a:b/c@0.1.0".to_owned()], exports: vec!["d".to_owned()] };
    let known = Known { digest: Digest::of(b"one"), bytes: 3, surface };
    let one = store(dir.path(), &engine, u64::MAX);
    one.note(&look(), &known);
    assert_eq!(one.known(&look()), None, "it changed a moment ago, and may change again without a trace");
    one.note(&look().seen_later(), &known);
    assert_eq!(one.known(&look()), Some(known.clone()));
    assert_eq!(store(dir.path(), &engine, u64::MAX).known(&look()), Some(known.clone()), "after a restart");
    let other_engine = CodeStore::open(dir.path(), u64::MAX, EngineTag([0; 32])).unwrap();
    assert_eq!(other_engine.known(&look()), None, "another version of the host may find something else");

    type Change<'a> = (&'a str, &'a dyn Fn());
    let record = || {
        let mut entries = fs::read_dir(&one.folder).unwrap().map(|it| it.unwrap().path());
        entries.find(|it| it.extension().is_some_and(|it| it == known::FILE)).unwrap()
    };
    let changes: [Change<'_>; 5] = [
        ("the same length and times", &|| {
            let modified = fs::metadata(&path).unwrap().modified().unwrap();
            fs::write(&path, "two").unwrap();
            File::open(&path).unwrap().set_modified(modified).unwrap();
        }),
        ("another file", &|| {
            let beside = dir.path().join("beside");
            fs::write(&beside, "two").unwrap();
            fs::rename(&beside, &path).unwrap();
        }),
        ("a damaged record", &|| {
            let text = fs::read_to_string(record()).unwrap();
            fs::write(record(), text.replace("component.wasm", "componemt.wasm")).unwrap();
        }),
        ("a record that others can read", &|| {
            fs::set_permissions(record(), fs::Permissions::from_mode(0o644)).unwrap();
        }),
        ("a record of another file", &|| {
            let there = dir.path().join("there.wasm");
            fs::rename(&path, &there).unwrap();
            fs::write(&path, "two").unwrap();
        }),
    ];
    for (what, change) in changes {
        one.note(&look().seen_later(), &known);
        assert_eq!(one.known(&look()), Some(known.clone()), "before {what}");
        change();
        assert_eq!(one.known(&look()), None, "{what}");
    }
}

#[test]
fn the_oldest_records_of_files_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let records: Vec<_> = (0..5_u64)
        .map(|n| {
            let path = dir.path().join(n.to_string());
            fs::write(&path, "").unwrap();
            (SystemTime::UNIX_EPOCH + Duration::from_secs((n + 2) % 5), path)
        })
        .collect();
    known::evict(records, 2);
    let there: Vec<_> = (0..5).map(|n| dir.path().join(n.to_string()).exists()).collect();
    assert_eq!(there, [false, true, true, false, false]);
}
