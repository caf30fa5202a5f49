//! What the caller has to mend is said, with exit code 2.

use oarlock_dev_cluster::{Config, DevCluster};

use crate::rig::{kubeconfig, run};

#[tokio::test(flavor = "multi_thread")]
async fn refused_credentials_are_told_apart_from_missing_rights() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = DevCluster::start(Config::default()).await.unwrap();
    let path = kubeconfig(folder.path(), &cluster.kubeconfig(), "wrong");
    let args = ["run", "--plugins", ".", "--kubeconfig", path.to_str().unwrap()];
    let said = run(folder.path(), &args);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stderr.replace(&cluster.url(), "SERVER"), @"
    error: SERVER refuses the credentials of kubeconfig FOLDER/kubeconfig: Unauthorized (401)
    hint:  has the token or the certificate expired?
    ");

    let powerless = cluster.token_for("default", "nobody");
    kubeconfig(folder.path(), &cluster.kubeconfig(), &powerless);
    let said = run(folder.path(), &args);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stderr.replace(&cluster.url(), "SERVER"), @"
    error: SERVER knows this user (kubeconfig FOLDER/kubeconfig), who may not create subjectaccessreviews
    hint:  the host needs the rights that `oarlock rbac` prints
    ");
    cluster.shut_down().await;
}

#[test]
fn a_port_in_use_is_told_before_anything_begins() {
    let folder = tempfile::tempdir().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let said = run(folder.path(), &["dev", "--port", &port]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stderr.replace(&port, "PORT"), @"error: port PORT of 127.0.0.1 is in use: choose another port, or 0 for a free one");
    let said = run(folder.path(), &["dev", "--admin-addr", &format!("127.0.0.1:{port}")]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stderr.replace(&port, "PORT"), @"error: another process listens on 127.0.0.1:PORT: stop it, or choose another port with --admin-addr (port 0 takes any free port)");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no kubeconfig is left behind");
}

#[test]
fn what_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let mut told = String::new();
    for args in [
        ["dev", "absent"].as_slice(),
        &["run", "--plugins", "absent"],
        &["rbac", "empty"],
        &["plugin", "inspect", "absent.wasm"],
        &["dev", "--fault", "explode"],
        &["dev", "--cache-dir", "/proc/nowhere"],
    ] {
        let said = run(folder.path(), args);
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.stderr);
        told.push_str(&said.stderr);
    }
    insta::assert_snapshot!(told, @"
    error: absent does not exist
    hint:  name plugin files, or folders of them, such as plugins/mirror
    error: --plugins absent does not exist
    hint:  name a folder of plugin files, the folder of one plugin, or a plugin file
    error: empty: contains no plugin.yaml or plugin.toml
    error: absent.wasm cannot be read: No such file or directory (os error 2)
    hint:  has the component been built?
    error: invalid value 'explode' for '--fault <ACTION[,KEY=VALUE]…>': unknown fault `explode`; the faults are close-watch, half-open-watch, slow-body, cut-body, garbage, repeat-events, swallow-event, 410, 429, 500, 401

    For more information, try '--help'.
    error: --cache-dir /proc/nowhere cannot be used: No such file or directory (os error 2)
    hint:  name a folder that only this user can write
    ");
}

#[test]
fn a_component_without_a_plugin_file_needs_dev() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("my.wasm"), b"").unwrap();
    for args in [["run", "--plugins", "my.wasm"].as_slice(), &["rbac", "my.wasm"]] {
        let said = run(folder.path(), args);
        assert_eq!(said.code, Some(2));
        insta::allow_duplicates! {
            insta::assert_snapshot!(said.stderr, @"error: my.wasm: a component needs a plugin file that names its ServiceAccount. Fix: write one with the keys `name`, `component` and `serviceAccount`, or use `oarlock dev`, which needs none");
        }
    }
    let mut command = crate::rig::oarlock(folder.path());
    command.args(["dev", "--output", "json", "my.wasm"]);
    let mut running = crate::rig::Running::start(command);
    let refused = running.until("plugin-refused");
    assert_eq!(refused["plugin"], "my", "{refused}");
    assert!(refused["message"].as_str().unwrap().contains("the file is empty"), "{refused}");
}

#[test]
fn every_bad_file_is_told_not_just_the_first() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.yaml"), "nam: a\n").unwrap();
    std::fs::write(folder.path().join("b.toml"), "name = 1\n").unwrap();
    let said = run(folder.path(), &["rbac", "."]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stderr, @"
    error: ./a.yaml:1:1: unknown key `nam`; did you mean `name`? (known keys: name, component, serviceAccount, config, limits, suspend)
           ./b.toml:1:8: invalid type: integer `1`, expected a string
    ");
}
