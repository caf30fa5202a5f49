//! The host keeps running while its output is not read. `oarlock dev` ends when no one can read it.
#![expect(clippy::unwrap_used, reason = "a test that cannot continue fails")]

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
};

use oarlock_wait_until::{LIMIT, wait_until_blocking};

use crate::rig::{Running, oarlock};

/// The number of refused plugin files, whose messages exceed the buffer of a pipe.
const FILES: usize = 600;

fn write_plugin_files(folder: &Path) {
    fs::create_dir(folder.join("plugins")).unwrap();
    for n in 0..FILES {
        let name = format!("plugin-{n}-{}", "x".repeat(30));
        let file = folder.join("plugins").join(format!("{n}.yaml"));
        fs::write(file, format!("name: {name}\ncomponent: {name}.wasm\n")).unwrap();
    }
}

/// Starts a host with many messages. Also returns the address of its pages.
fn host_with_many_messages(folder: &Path) -> (Running, String) {
    write_plugin_files(folder);
    start(folder, &["dev", "plugins"])
}

/// Starts a host with these arguments. Also returns the address of its pages.
fn start(folder: &Path, args: &[&str]) -> (Running, String) {
    let mut command = oarlock(folder);
    command.args(args).args(["--output", "json", "--admin-addr", "127.0.0.1:0"]);
    let mut running = Running::start(command);
    let address = running.until("admin-listening")["address"].as_str().unwrap().to_owned();
    (running, address)
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Reads the metrics until one has an expected value.
fn until_metric(address: &str, name: &str, is_it: impl Fn(f64) -> bool) {
    wait_until_blocking(name, LIMIT, || {
        let page = get(address, "/metrics");
        let mut values = page.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        if values.any(&is_it) { Ok(()) } else { Err(page) }
    });
}

/// Waits until the host is ready, which means that it has read the plugins' files.
fn until_ready(address: &str) {
    wait_until_blocking("the host is ready", LIMIT, || {
        let answer = get(address, "/readyz");
        if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { Err(answer) }
    });
}

/// Returns a socket without a reader: each write to it fails.
fn without_reader() -> OwnedFd {
    let (reader, writer) = UnixStream::pair().unwrap();
    drop(reader);
    writer.into()
}

#[test]
fn a_host_with_unread_output_keeps_running_and_ends_on_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let (running, address) = host_with_many_messages(folder.path());
    // The pipe is full, and further lines wait.
    until_metric(&address, "oarlock_reports_waiting_bytes", |bytes| bytes > 0.0);
    assert!(get(&address, "/livez").starts_with("HTTP/1.1 200"));
    until_ready(&address);
    assert_eq!(running.end_unread(), Some(0));
}

#[test]
fn a_host_with_closed_output_keeps_running_and_counts_lost_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = start(folder.path(), &["dev"]);
    write_plugin_files(folder.path());
    let args = ["run", "--plugins", "plugins", "--kubeconfig", ".oarlock/kubeconfig"];
    let (mut running, address) = start(folder.path(), &args);
    running.close_output();
    fs::write(folder.path().join("plugins/one-more.yaml"), "name: a\ncomponent: a.wasm\n").unwrap();
    until_metric(&address, "oarlock_reports_dropped_total", |lines| lines > 0.0);
    until_ready(&address);
    assert_eq!(running.end_unread(), Some(0));
    server.end("TERM");
}

#[test]
fn dev_ends_when_its_output_is_closed_although_it_has_nothing_to_print() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    let (mut running, address) = start(folder.path(), &["dev", "empty"]);
    running.until("plugin-refused");
    until_ready(&address);
    running.close_output();
    assert_eq!(running.code_unread(), Some(0));
    assert!(!folder.path().join(".oarlock/kubeconfig").exists());
}

/// The end of a socket's reader shows at a write alone, unlike that of a pipe. It ends before the host
/// begins: with lines that were not read, the kernel would report it as it does for a pipe.
#[test]
fn dev_ends_when_lines_cannot_be_printed() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = oarlock(folder.path());
    command.args(["dev", "--output", "json"]).stdout(without_reader());
    assert_eq!(Running::start_redirected(command).code_unread(), Some(0));
    assert!(!folder.path().join(".oarlock/kubeconfig").exists());
}

#[test]
fn a_closed_standard_error_ends_no_command() {
    let folder = tempfile::tempdir().unwrap();
    let help = oarlock(folder.path()).stderr(without_reader()).status().unwrap();
    assert_eq!(help.code(), Some(2));
    // The build of this plugin fails, and the host says that it goes on with the component that there is.
    let file = "name: a\ncomponent: a.bin\nserviceAccount: {namespace: plugins, name: a}\n";
    for (name, text) in [("plugin.yaml", file), ("a.bin", ""), ("requirements.txt", "")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let mut command = oarlock(folder.path());
    command.env("XDG_CACHE_HOME", folder.path().join("cache")).args(["dev", "--output", "json", "."]);
    command.stderr(without_reader());
    let mut running = Running::start(command);
    running.until("plugin-refused");
    assert_eq!(running.end("TERM").0, Some(0));
}

#[test]
fn lines_that_waited_can_be_read_later() {
    let folder = tempfile::tempdir().unwrap();
    let (mut running, address) = host_with_many_messages(folder.path());
    until_metric(&address, "oarlock_reports_waiting_bytes", |bytes| bytes > 0.0);
    for _ in 0..FILES {
        running.until("plugin-refused");
    }
    assert_eq!(running.end("TERM").0, Some(0));
}
