//! `oarlock dev` does not change files that it did not write.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use crate::rig::{Running, oarlock, run};

/// Starts `oarlock dev` in a folder and returns it with the kubeconfig that it names.
fn dev(folder: &Path, args: &[&str]) -> (Running, String) {
    let mut command = oarlock(folder);
    command.args(["dev", "--output", "json"]).args(args);
    let mut running = Running::start(command);
    let kubeconfig = running.until("dev-cluster-ready")["kubeconfig"].as_str().unwrap().to_owned();
    (running, kubeconfig)
}

fn server(folder: &Path, kubeconfig: &str) -> String {
    let text = fs::read_to_string(folder.join(kubeconfig)).unwrap();
    text.split_once("server: ").unwrap().1.lines().next().unwrap().to_owned()
}

#[test]
fn dev_does_not_overwrite_a_users_kubeconfig() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    fs::write(&path, "kind: Config # mine\n").unwrap();
    let inode = fs::metadata(&path).unwrap().ino();
    let said = run(folder.path(), &["dev", "--kubeconfig", "config"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stderr, @"
    error: the kubeconfig config cannot be written: the file exists and was not written by `oarlock dev`, so it is not overwritten
    hint:  name a file that does not exist, or leave out --kubeconfig: then the file is .oarlock/kubeconfig; to use this path, move the existing file away
    ");
    assert_eq!(fs::read_to_string(&path).unwrap(), "kind: Config # mine\n");
    assert_eq!(fs::metadata(&path).unwrap().ino(), inode);

    std::os::unix::fs::symlink("config", folder.path().join("link")).unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    let mut errors = String::new();
    for name in ["link", "folder", "config/below", "/proc/kubeconfig"] {
        let said = run(folder.path(), &["dev", "--kubeconfig", name]);
        assert_eq!(said.code, Some(2), "{name}: {}", said.stderr);
        errors.push_str(&said.stderr);
    }
    insta::assert_snapshot!(errors, @"
    error: the kubeconfig link cannot be written: it is a symbolic link, which is not followed
    hint:  name a file that does not exist, or leave out --kubeconfig: then the file is .oarlock/kubeconfig; to use this path, move the existing file away
    error: the kubeconfig folder cannot be written: it is a folder
    hint:  name a file in that folder
    error: the kubeconfig config/below cannot be written: not a directory
    hint:  name a file in a writable folder with --kubeconfig
    error: the kubeconfig /proc/kubeconfig cannot be written: entity not found
    hint:  name a file in a writable folder with --kubeconfig
    ");
    assert_eq!(fs::read_to_string(&path).unwrap(), "kind: Config # mine\n");
}

#[test]
fn two_devs_in_one_folder_use_different_files() {
    let folder = tempfile::tempdir().unwrap();
    let (first, first_file) = dev(folder.path(), &[]);
    let (second, second_file) = dev(folder.path(), &[]);
    assert_eq!(first_file, ".oarlock/kubeconfig");
    assert_ne!(first_file, second_file);
    let first_server = server(folder.path(), &first_file);
    assert_ne!(first_server, server(folder.path(), &second_file));
    let said = run(folder.path(), &["dev", "--kubeconfig", ".oarlock/kubeconfig"]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stderr, @"
    error: the kubeconfig .oarlock/kubeconfig cannot be written: it belongs to another `oarlock dev` that is still running
    hint:  name another file, or end the other process
    ");
    second.end("TERM");
    assert_eq!(server(folder.path(), &first_file), first_server);
    assert!(!folder.path().join(second_file).exists());
    first.end("INT");
    assert_eq!(fs::read_dir(folder.path().join(".oarlock")).unwrap().count(), 0);
}

#[test]
fn a_file_of_a_killed_dev_is_reused_and_a_changed_file_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (killed, file) = dev(folder.path(), &[]);
    let old = server(folder.path(), &file);
    killed.end("KILL");
    assert_eq!(server(folder.path(), &file), old, "a killed process removes nothing");
    let (again, same_file) = dev(folder.path(), &[]);
    assert_eq!(same_file, file);
    assert_ne!(server(folder.path(), &file), old);

    // As `kubectl config set-context --current --namespace=x` does.
    let changed =
        fs::read_to_string(folder.path().join(&file)).unwrap().replace("namespace: default", "namespace: x");
    fs::write(folder.path().join(&file), &changed).unwrap();
    let (code, _) = again.end("TERM");
    assert_eq!(code, Some(0));
    assert_eq!(fs::read_to_string(folder.path().join(&file)).unwrap(), changed);
}
