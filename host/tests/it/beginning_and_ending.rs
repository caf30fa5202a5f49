//! `oarlock dev` starts with a working kubeconfig, and leaves no file behind.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::rig::{Running, oarlock};

#[test]
fn dev_removes_its_files_after_sigterm_and_after_sigint() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = oarlock(folder.path());
        command.args(["dev", "--output", "json", "--admin-addr", "127.0.0.1:0"]);
        let mut running = Running::start(command);
        let ready = running.until("dev-cluster-ready");
        assert_eq!(ready["kubeconfig"], ".oarlock/kubeconfig");
        let kubeconfig = folder.path().join(".oarlock/kubeconfig");
        assert_eq!(fs::metadata(&kubeconfig).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&kubeconfig).unwrap().contains(ready["server"].as_str().unwrap()));
        running.until("host-started");
        running.until("admin-listening");

        let (code, rest) = running.end(signal);
        assert_eq!(code, Some(0), "{rest:?}");
        assert!(rest.iter().any(|line| line.contains("host-stopping")), "{rest:?}");
        assert!(rest.last().unwrap().contains("host-drained"), "{rest:?}");
        assert!(!kubeconfig.exists());
    }
}

#[test]
fn a_bad_plugin_file_is_reported_and_the_host_keeps_running() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.yaml");
    fs::write(&file, "name: a\ncomponent: a.wasm\n").unwrap();
    let mut command = oarlock(folder.path());
    command.args(["dev", "--output", "json", "a.yaml"]);
    let mut running = Running::start(command);
    let refused = running.until("plugin-refused");
    assert!(refused["message"].as_str().unwrap().contains("`serviceAccount` is missing"), "{refused}");

    let account = "serviceAccount: {namespace: plugins, name: a}\n";
    fs::write(&file, format!("name: a\ncomponent: a.wasm\n{account}")).unwrap();
    let refused = running.until("plugin-refused");
    assert!(refused["message"].as_str().unwrap().contains("a.wasm"), "{refused}");
    let (code, _) = running.end("TERM");
    assert_eq!(code, Some(0));
}
