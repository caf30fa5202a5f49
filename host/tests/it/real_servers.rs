//! `oarlock dev --real`: the plugins run against a real etcd and kube-apiserver, and nothing of them is left
//! behind.
//!
//! The tests that need the executables use the folder that `KUBEBUILDER_ASSETS` names, or what `cargo xtask
//! control-plane` has built.
#![expect(clippy::expect_used, reason = "a test that cannot continue fails")]

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use oarlock_control_plane::Assets;
use oarlock_wait_until::{LIMIT, wait_until_blocking};

use crate::rig::{Running, oarlock};

/// Returns the executables of this machine.
fn assets() -> PathBuf {
    if let Some(named) = std::env::var_os("KUBEBUILDER_ASSETS") {
        return named.into();
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| std::env::home_dir().map(|home| home.join(".cache"))).unwrap();
    let built = Assets::newest_built(&cache.join("oarlock"));
    built.expect("run `cargo xtask control-plane` first").folder().to_owned()
}

/// Returns `oarlock dev --real` in a folder; its temporary files go into the folder `tmp` in it.
fn dev(folder: &Path, assets: &Path, more: &[&str]) -> Command {
    let temporary = folder.join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    let mut command = oarlock(folder);
    command.env("TMPDIR", temporary).env("KUBEBUILDER_ASSETS", assets);
    command.args(["dev", "--real"]).args(more);
    command
}

/// Runs the command to its end, which must be exit code 2, and returns its standard error.
fn refused(mut command: Command, folder: &Path) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).unwrap().replace(&folder.display().to_string(), "FOLDER")
}

/// Returns the command lines of the processes that have this path in one of their arguments.
fn processes_about(path: &Path) -> Vec<String> {
    let path = path.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().map_while(Result::ok) {
        let is_process = entry.file_name().to_string_lossy().parse::<u32>().is_ok();
        // A process may have ended meanwhile.
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if is_process && line.contains(path) {
            found.push(line);
        }
    }
    found
}

/// Waits until no server runs whose files lie in this folder.
fn wait_until_no_server_is_left(temporary: &Path) {
    wait_until_blocking("the end of etcd and kube-apiserver", LIMIT, || match processes_about(temporary) {
        left if left.is_empty() => Ok(()),
        left => Err(left),
    });
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn dev_real_serves_and_leaves_neither_process_nor_file_behind() {
    for signal in ["INT", "TERM"] {
        let folder = tempfile::tempdir().unwrap();
        let temporary = folder.path().join("tmp");
        let errors = folder.path().join("errors");
        let mut command = dev(folder.path(), &assets(), &["--output", "json"]);
        command.stderr(Stdio::from(fs::File::create(&errors).unwrap()));
        let mut running = Running::start(command);
        assert_eq!(running.until("dev-server-ready")["program"], "etcd");
        assert_eq!(running.until("dev-server-ready")["program"], "kube-apiserver");
        let ready = running.until("dev-cluster-ready");
        assert!(ready["version"].as_str().unwrap().starts_with("v1."), "{ready}");
        running.until("host-started");
        assert_eq!(processes_about(&temporary).len(), 2, "etcd and kube-apiserver");

        let (code, rest) = running.end(signal);
        assert_eq!(code, Some(0), "{rest:?}");
        assert_eq!(processes_about(&temporary), Vec::<String>::new());
        assert!(is_empty(&temporary), "the data folder is removed");
        assert!(is_empty(&folder.path().join(".oarlock")), "the kubeconfig is removed");
        assert_eq!(fs::read_to_string(&errors).unwrap(), "", "nothing is logged as an error");
    }
}

#[test]
fn a_signal_during_the_start_ends_the_servers() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    let mut running = Running::start(dev(folder.path(), &assets(), &["--output", "json"]));
    assert_eq!(running.until("dev-server-ready")["program"], "etcd");
    let (code, rest) = running.end("TERM");
    assert_eq!(code, Some(0), "{rest:?}");
    assert_eq!(processes_about(&temporary), Vec::<String>::new());
    assert!(is_empty(&temporary), "the data folder is removed");
}

#[test]
fn a_killed_dev_leaves_no_server_behind() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    let mut running = Running::start(dev(folder.path(), &assets(), &["--output", "json"]));
    running.until("dev-cluster-ready");
    running.end("KILL");
    wait_until_no_server_is_left(&temporary);
}

#[test]
fn a_server_that_ends_while_dev_runs_ends_dev_and_its_log_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("tmp");
    let mut command = dev(folder.path(), &assets(), &["--output", "json"]);
    let errors = folder.path().join("errors");
    command.stderr(Stdio::from(fs::File::create(&errors).unwrap()));
    let mut running = Running::start(command);
    let ready = running.until("dev-cluster-ready");
    running.until("host-started");
    let pid = pid_of("etcd", &temporary);
    assert!(Command::new("kill").args(["-s", "KILL", &pid]).status().unwrap().success());
    assert_eq!(running.code(), Some(1));
    let errors = fs::read_to_string(errors).unwrap();
    let log = Path::new(ready["logs"].as_str().unwrap()).join("etcd.log");
    assert!(errors.contains("etcd ended (signal: 9 (SIGKILL))"), "{errors}");
    assert!(errors.contains(log.to_str().unwrap()), "{errors}");
    assert!(log.is_file(), "the log that the error names is kept");
    assert_eq!(processes_about(&temporary), Vec::<String>::new());
}

fn pid_of(program: &str, temporary: &Path) -> String {
    let temporary = temporary.to_str().unwrap();
    let is_it = |pid: &OsString| {
        let line = fs::read(Path::new("/proc").join(pid).join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains(temporary) && line.split('\0').next().unwrap().ends_with(program)
    };
    let mut names = fs::read_dir("/proc").unwrap().map_while(Result::ok).map(|entry| entry.file_name());
    names.find(is_it).unwrap().into_string().unwrap()
}

#[test]
fn missing_executables_are_named_with_both_ways_to_get_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut without = dev(folder.path(), Path::new(""), &[]);
    without.env("HOME", folder.path());
    let mut errors = refused(without, folder.path());
    errors += &refused(dev(folder.path(), &folder.path().join("absent"), &[]), folder.path());
    let half = folder.path().join("half");
    fs::create_dir(&half).unwrap();
    script(&half.join("etcd"), "#!/bin/sh\n");
    errors += &refused(dev(folder.path(), &half, &[]), folder.path());
    insta::assert_snapshot!(errors, @"
    error: --real needs the executables etcd and kube-apiserver, and found none
    hint:  set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver (`setup-envtest use -p path` prints one), or run `cargo xtask control-plane` in a checkout of oarlock
    error: KUBEBUILDER_ASSETS cannot be used: there is no file `etcd` in FOLDER/absent
    hint:  set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver (`setup-envtest use -p path` prints one), or run `cargo xtask control-plane` in a checkout of oarlock
    error: KUBEBUILDER_ASSETS cannot be used: there is no file `kube-apiserver` in FOLDER/half
    hint:  set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver (`setup-envtest use -p path` prints one), or run `cargo xtask control-plane` in a checkout of oarlock
    ");
}

#[test]
fn an_executable_that_the_system_cannot_run_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let assets = folder.path().join("assets");
    fs::create_dir(&assets).unwrap();
    script(&assets.join("kube-apiserver"), "#!/bin/sh\n");
    fs::write(assets.join("etcd"), "#!/bin/sh\n").unwrap();
    let mut errors = refused(dev(folder.path(), &assets, &[]), folder.path());
    // The header of an executable for a 64-bit MIPS processor.
    let mut elf = b"\x7fELF\x02\x02\x01\0\0\0\0\0\0\0\0\0\0\x02\0\x08\0\0\0\x01".to_vec();
    elf.resize(64, 0);
    fs::write(assets.join("etcd"), elf).unwrap();
    fs::set_permissions(assets.join("etcd"), fs::Permissions::from_mode(0o755)).unwrap();
    errors += &refused(dev(folder.path(), &assets, &[]), folder.path());
    insta::assert_snapshot!(errors, @"
    error: FOLDER/assets/etcd cannot be run: Permission denied (os error 13)
    hint:  make it executable (chmod +x); if it is, get the build for this operating system and processor
    error: FOLDER/assets/etcd cannot be run: it is built for another system or processor
    hint:  make it executable (chmod +x); if it is, get the build for this operating system and processor
    ");
    assert!(is_empty(&folder.path().join("tmp")), "no file is left behind");
}

#[test]
fn a_server_that_ends_at_once_is_reported_with_its_log() {
    let folder = tempfile::tempdir().unwrap();
    let assets = folder.path().join("assets");
    fs::create_dir(&assets).unwrap();
    script(&assets.join("etcd"), "#!/bin/sh\necho unknown flag >&2\nexit 3\n");
    script(&assets.join("kube-apiserver"), "#!/bin/sh\n");
    let output = dev(folder.path(), &assets, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("etcd ended (exit status: 3)") && error.contains("unknown flag"), "{error}");
    let log = &error[error.find('/').unwrap()..];
    let log = &log[..log.find(":").unwrap()];
    assert_eq!(fs::read_to_string(log).unwrap(), "unknown flag\n");
}

#[test]
fn faults_and_real_servers_exclude_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let error = refused(dev(folder.path(), Path::new(""), &["--fault", "410"]), folder.path());
    insta::assert_snapshot!(error, @"
    error: --fault cannot be used with --real: only the embedded API server injects faults
    hint:  leave out --real, or --fault
    ");
}
