use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    sync::Barrier,
};

use super::*;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// The refusal of a path that the user named.
fn refusal(path: &Path) -> String {
    match KubeconfigFile::write(Some(path), "kubeconfig") {
        Ok(_) => panic!("{} was written", path.display()),
        Err((_, error)) => error.to_string(),
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn only_the_owner_can_read_the_file_and_it_is_removed_at_the_end() {
    let dir = folder();
    let path = dir.path().join("deeper/kubeconfig");
    let file = KubeconfigFile::write(Some(&path), "one: 1\n").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(MARKER) && text.ends_with("\none: 1\n"), "{text}");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(entries(path.parent().unwrap()), ["kubeconfig"]);
    drop(file);
    assert!(entries(path.parent().unwrap()).is_empty());
}

#[test]
fn a_users_kubeconfig_is_never_overwritten() {
    let dir = folder();
    let path = dir.path().join("config");
    for text in ["apiVersion: v1\nkind: Config\n", "", "# Written by another program\n"] {
        fs::write(&path, text).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        assert!(refusal(&path).contains("not written by `oarlock dev`"), "{}", refusal(&path));
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    }
    assert_eq!(entries(dir.path()), ["config"]);
}

#[test]
fn a_path_that_is_not_a_regular_file_is_refused_and_unchanged() {
    let dir = folder();
    let target = dir.path().join("target");
    fs::write(&target, "kind: Config\n").unwrap();
    let at = |name: &str| dir.path().join(name);
    symlink(&target, at("link")).unwrap();
    symlink(at("nowhere"), at("dangling")).unwrap();
    fs::create_dir(at("folder")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    let before = entries(dir.path());
    for (name, why) in [
        ("link", "a symbolic link"),
        ("dangling", "a symbolic link"),
        ("folder", "a folder"),
        ("socket", "not a regular file"),
        ("fifo", "not a regular file"),
    ] {
        assert!(refusal(&at(name)).contains(why), "{name}: {}", refusal(&at(name)));
    }
    assert!(refusal(&target.join("below")).contains("not a directory"), "{}", refusal(&target.join("below")));
    assert_eq!(entries(dir.path()), before);
    assert_eq!(fs::read_to_string(&target).unwrap(), "kind: Config\n");
}

#[test]
fn a_replaced_or_changed_file_is_not_removed() {
    let dir = folder();
    let path = dir.path().join("kubeconfig");
    // Another file of the same text.
    let file = KubeconfigFile::write(Some(&path), "one").unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    fs::write(&path, &text).unwrap();
    drop(file);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    fs::remove_file(&path).unwrap();

    // The same file with another text, as `kubectl config` leaves it.
    for changed in ["changed", "on\u{1}"] {
        let file = KubeconfigFile::write(Some(&path), "one").unwrap();
        let changed = fs::read_to_string(&path).unwrap().replace("one", changed);
        fs::write(&path, &changed).unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), changed);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_second_dev_does_not_touch_the_file_of_the_first() {
    let dir = folder();
    let default = dir.path().join(".oarlock/kubeconfig");
    let first = KubeconfigFile::write_beside(&default, "one").unwrap();
    let second = KubeconfigFile::write_beside(&default, "two").unwrap();
    assert_eq!(first.path(), default);
    assert_eq!(second.path(), dir.path().join(".oarlock/kubeconfig-2"));
    assert!(refusal(&default).contains("still running"), "{}", refusal(&default));
    let first_text = fs::read_to_string(&default).unwrap();
    drop(second);
    assert_eq!(entries(default.parent().unwrap()), ["kubeconfig"]);
    assert_eq!(fs::read_to_string(&default).unwrap(), first_text);
    let third = KubeconfigFile::write_beside(&default, "three").unwrap();
    drop(first);
    assert_eq!(entries(default.parent().unwrap()), ["kubeconfig-2"]);
    drop(third);
    assert!(entries(default.parent().unwrap()).is_empty());
}

#[test]
fn dev_uses_another_name_if_the_default_path_has_a_users_file() {
    let dir = folder();
    let default = dir.path().join("kubeconfig");
    fs::write(&default, "mine").unwrap();
    let file = KubeconfigFile::write_beside(&default, "dev's").unwrap();
    assert_eq!(file.path(), dir.path().join("kubeconfig-2"));
    drop(file);
    assert_eq!(fs::read_to_string(&default).unwrap(), "mine");
    assert_eq!(entries(dir.path()), ["kubeconfig"]);
}

#[test]
fn a_file_that_a_killed_dev_left_behind_is_reused() {
    let dir = folder();
    let path = dir.path().join("kubeconfig");
    let file = KubeconfigFile::write(Some(&path), "old").unwrap();
    // After a kill the lock is released and the file stays.
    let KubeconfigFile { claimed, .. } = &file;
    claimed.unlock();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let again = KubeconfigFile::write(Some(&path), "a longer text than before").unwrap();
    assert!(fs::read_to_string(&path).unwrap().ends_with("\na longer text than before"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    std::mem::forget(file);
    drop(again);
    assert!(entries(dir.path()).is_empty());
}

#[test]
fn processes_that_start_at_the_same_time_have_different_files() {
    const MANY: usize = 16;
    let dir = folder();
    let default = dir.path().join("kubeconfig");
    // One of them finds a file that was left behind.
    let left = KubeconfigFile::write(Some(&default), "left").unwrap();
    left.claimed.unlock();
    std::mem::forget(left);
    let barrier = Barrier::new(MANY);
    let files: Vec<_> = std::thread::scope(|scope| {
        let start = |n: usize| {
            let (barrier, default) = (&barrier, &default);
            scope.spawn(move || {
                barrier.wait();
                KubeconfigFile::write_beside(default, &format!("number {n}\n")).unwrap()
            })
        };
        let threads: Vec<_> = (0..MANY).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut paths: Vec<_> = files.iter().map(|file| file.path().to_owned()).collect();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), MANY);
    for (n, file) in files.iter().enumerate() {
        assert!(fs::read_to_string(file.path()).unwrap().ends_with(&format!("number {n}\n")));
    }
    drop(files);
    assert!(entries(dir.path()).is_empty(), "{:?}", entries(dir.path()));
}
