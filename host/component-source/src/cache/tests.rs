use super::*;

const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

fn put(cache: &Cache, content: &[u8]) -> Result<CachedComponent, Error> {
    let mut part = cache.begin()?;
    part.write(content)?;
    cache.store(part)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("components")).unwrap();
    let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_component_survives_a_restart_and_is_verified_when_first_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = put(&Cache::open(dir.path(), 100).unwrap(), COMPONENT).unwrap().path().to_owned();
    let cache = Cache::open(dir.path(), 100).unwrap();
    let digest = Digest::of(COMPONENT);
    let found = cache.get(digest).unwrap();
    assert_eq!((found.path(), found.digest(), found.size()), (&*path, digest, 8));
    drop((found, cache));

    fs::write(&path, b"other").unwrap();
    let cache = Cache::open(dir.path(), 100).unwrap();
    assert!(cache.get(digest).is_none(), "its bytes have another digest");
    assert!(!path.exists());
}

#[test]
fn the_longest_unused_component_is_evicted_and_none_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::open(dir.path(), 30).unwrap();
    let [a, b, c] = [b"aaaaaaaaaa", b"bbbbbbbbbb", b"cccccccccc"];
    drop(put(&cache, a).unwrap());
    drop(put(&cache, b).unwrap());
    let in_use = put(&cache, c).unwrap();
    let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    for (content, seconds) in [(c, 1), (b, 2), (a, 3)] {
        let used = File::options().append(true).open(cache.path(Digest::of(content), "used")).unwrap();
        used.set_modified(at(seconds)).unwrap();
    }
    drop(put(&cache, b"dddddddddd").unwrap());
    assert!(cache.get(Digest::of(b)).is_none(), "the longest unused");
    assert!(cache.get(Digest::of(a)).is_some());
    assert!(in_use.path().exists());

    let error = put(&cache, &[b'e'; 21]).unwrap_err();
    assert_eq!(error.reason(), Reason::Cache);
    assert!(in_use.path().exists());
    assert_eq!(names(dir.path()).iter().filter(|name| name.starts_with(PART)).count(), 0, "no part is left");
}

#[test]
fn another_process_does_not_evict_what_this_one_uses() {
    let dir = tempfile::tempdir().unwrap();
    let ours = Cache::open(dir.path(), 10).unwrap();
    // Locks of two open files exclude each other also within a process.
    let theirs = Cache::open(dir.path(), 10).unwrap();
    let in_use = put(&ours, b"aaaaaaaaaa").unwrap();
    assert_eq!(put(&theirs, b"bbbbbbbbbb").unwrap_err().reason(), Reason::Cache);
    drop(in_use);
    put(&theirs, b"bbbbbbbbbb").unwrap();
    assert!(ours.get(Digest::of(b"aaaaaaaaaa")).is_none());
}

#[test]
fn what_a_crash_left_is_removed_once_it_is_old() {
    let dir = tempfile::tempdir().unwrap();
    drop(Cache::open(dir.path(), 10).unwrap());
    let old = dir.path().join("components/.part-old");
    File::create(&old).unwrap().set_modified(SystemTime::now() - 2 * LEFT_OVER).unwrap();
    File::create(dir.path().join("components/.part-new")).unwrap();
    Cache::open(dir.path(), 10).unwrap();
    assert_eq!(names(dir.path()), [".part-new"]);
}

#[test]
fn a_folder_that_others_can_write_to_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let error = Cache::open(dir.path(), 10).unwrap_err();
    assert!(error.to_string().ends_with("(run chmod go-w on it)"), "{error}");
}

#[test]
fn content_that_is_no_webassembly_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::open(dir.path(), 100).unwrap();
    let refusal = |content: &[u8]| {
        let mut part = cache.begin().unwrap();
        part.write(content).unwrap();
        part.check_is_wasm().map_err(|error| error.to_string())
    };
    assert_eq!(refusal(COMPONENT), Ok(()));
    let error = |what| Err(format!("the content is not a component: {what}"));
    assert_eq!(refusal(b""), error("it is empty"));
    assert_eq!(refusal(b"\n <!doctype html>"), error("it is an HTML or XML page"));
    assert_eq!(refusal(b"ELF"), error("it does not begin with the magic number of WebAssembly"));
}
