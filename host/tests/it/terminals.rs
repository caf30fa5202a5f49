//! Output to a terminal or a file.

use std::{fs, process::Stdio};

use crate::rig::{Running, oarlock, run};

#[test]
fn standard_error_has_no_colours_unless_it_is_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = oarlock(folder.path());
    command
        .args(["--log", "trace", "dev", "--output", "json"])
        .stderr(Stdio::from(fs::File::create(&log).unwrap()));
    let mut running = Running::start(command);
    running.until("host-started");
    running.end("TERM");
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("TRACE") || log.contains("DEBUG"), "{log}");
    assert!(!log.contains('\u{1b}'), "{log:?}");
}

#[test]
fn every_line_has_a_level_and_pages_for_other_machines_are_served_over_https() {
    let folder = tempfile::tempdir().unwrap();
    for (address, is_open) in [("127.0.0.1:0", false), ("0.0.0.0:0", true), ("[::ffff:127.0.0.1]:0", false)] {
        let mut command = oarlock(folder.path());
        command.args(["dev", "--output", "json", "--admin-addr", address]);
        let mut running = Running::start(command);
        assert_eq!(running.until("dev-cluster-ready")["level"], "info");
        let line = running.until("admin-listening");
        assert_eq!(
            (&line["level"], &line["scheme"]),
            (&"info".into(), &if is_open { "https" } else { "http" }.into())
        );
        if is_open {
            let line = running.until("admin-self-signed");
            assert!(line["address"].as_str().unwrap().starts_with("0.0.0.0:"), "{line}");
        }
        let (_, rest) = running.end("TERM");
        for line in rest {
            assert!(
                line.contains(r#""level":""#) && (is_open || !line.contains("admin-self-signed")),
                "{line}"
            );
        }
    }
}

#[test]
fn the_name_or_text_of_a_file_cannot_control_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let name = "a\u{1b}[2J\u{9b}31m.yaml";
    fs::write(folder.path().join(name), "\u{1b}[2Jkey: 1\n\u{9b}31m: 2\n").unwrap();
    let said = run(folder.path(), &["rbac", name]);
    assert_eq!(said.code, Some(2));
    assert!(!said.stderr.trim_end().contains(char::is_control), "{:?}", said.stderr);
    for args in [["dev", "no\u{1b}[2Jfile"].as_slice(), &["run", "--plugins", "no\u{9b}2Jfile"]] {
        let said = run(folder.path(), args);
        assert!(!said.stderr.replace('\n', "").contains(char::is_control), "{:?}", said.stderr);
    }
}
