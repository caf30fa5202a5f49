//! What becomes of the host when nobody reads what it says.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::{Duration, Instant},
};

use crate::rig::{Running, oarlock};

/// More refused plugin files than a pipe has room to tell of.
const FILES: usize = 600;

/// A host that has much to say, and the address of its pages.
fn talkative(folder: &Path) -> (Running, String) {
    fs::create_dir(folder.join("plugins")).unwrap();
    for n in 0..FILES {
        let name = format!("plugin-{n}-{}", "x".repeat(30));
        let file = folder.join("plugins").join(format!("{n}.yaml"));
        fs::write(file, format!("name: {name}\ncomponent: {name}.wasm\n")).unwrap();
    }
    let mut command = oarlock(folder);
    command.args(["dev", "--output", "json", "--admin-addr", "127.0.0.1:0", "plugins"]);
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

/// Reads the metrics until one has such a value; fails with the page after a minute.
fn until_metric(address: &str, name: &str, is_it: impl Fn(f64) -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let page = get(address, "/metrics");
        let values = page.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        if values.into_iter().any(&is_it) {
            return;
        }
        assert!(Instant::now() < deadline, "{name} never was as expected:\n{page}");
    }
}

/// Waits until the host is ready, which it is when it has read the plugins' files; fails with its answer after a minute.
fn until_ready(address: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = get(address, "/readyz");
        if answer.starts_with("HTTP/1.1 200") {
            return;
        }
        assert!(Instant::now() < deadline, "the host is not ready:\n{answer}");
    }
}

#[test]
fn a_host_whose_output_nobody_reads_goes_on_and_ends_when_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (running, address) = talkative(folder.path());
    // The pipe is full, and what it has no room for waits.
    until_metric(&address, "oarlock_reports_waiting_bytes", |bytes| bytes > 0.0);
    assert!(get(&address, "/livez").starts_with("HTTP/1.1 200"));
    until_ready(&address);
    assert_eq!(running.end_unread(), Some(0));
}

#[test]
fn a_host_whose_output_was_closed_goes_on_and_counts_what_it_cannot_say() {
    let folder = tempfile::tempdir().unwrap();
    let (mut running, address) = talkative(folder.path());
    running.close_output();
    fs::write(folder.path().join("plugins/one-more.yaml"), "name: a\ncomponent: a.wasm\n").unwrap();
    until_metric(&address, "oarlock_reports_dropped_total", |lines| lines > 0.0);
    until_ready(&address);
    assert_eq!(running.end_unread(), Some(0));
}

#[test]
fn what_was_said_while_nobody_read_is_there_for_who_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (mut running, address) = talkative(folder.path());
    until_metric(&address, "oarlock_reports_waiting_bytes", |bytes| bytes > 0.0);
    for _ in 0..FILES {
        running.until("plugin-refused");
    }
    assert_eq!(running.end("TERM").0, Some(0));
}
