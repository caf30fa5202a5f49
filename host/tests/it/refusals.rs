//! Errors that the caller has to correct end with exit code 2 and a hint.

use std::os::unix::process::CommandExt;
use std::path::Path;

use oarlock_dev_cluster::{Config, DevCluster};

use crate::rig::{Running, kubeconfig, oarlock, run};

#[tokio::test(flavor = "multi_thread")]
async fn rejected_credentials_and_missing_rights_are_different_errors() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = DevCluster::start(Config::default()).await.unwrap();
    let path = kubeconfig(folder.path(), &cluster.kubeconfig(), "wrong");
    let args = ["run", "--plugins", ".", "--kubeconfig", path.to_str().unwrap()];
    let said = run(folder.path(), &args);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stderr.replace(&cluster.url(), "SERVER"), @"
    error: SERVER rejects the credentials of kubeconfig FOLDER/kubeconfig: Unauthorized (401)
    hint:  check whether the token or the certificate has expired
    ");

    let powerless = cluster.token_for("default", "powerless");
    kubeconfig(folder.path(), &cluster.kubeconfig(), &powerless);
    let said = run(folder.path(), &args);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stderr.replace(&cluster.url(), "SERVER"), @"
    error: SERVER accepts the credentials of kubeconfig FOLDER/kubeconfig, but this user may not create subjectaccessreviews
    hint:  apply the rights that `oarlock rbac PLUGIN…` prints, or, for a host of Plugin objects, `oarlock install --print`
    ");
    cluster.shut_down().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hint_of_kubectl_oarlock_is_about_the_cluster_that_the_user_chose() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = DevCluster::start(Config::default()).await.unwrap();
    let path = kubeconfig(folder.path(), &cluster.kubeconfig(), "wrong");
    let stderr = |args: &[&str]| {
        let mut command = oarlock(folder.path());
        command.arg0("kubectl-oarlock").env("KUBECONFIG", &path).args(args);
        String::from_utf8(command.output().unwrap().stderr).unwrap()
    };
    insta::assert_snapshot!(stderr(&["plugins"]), @"
    error: the API server rejects the credentials: Unauthorized
    hint:  log in to the cluster again; kubectl auth whoami shows whether the API server accepts the login
    ");
    insta::assert_snapshot!(stderr(&["top", "-A", "--kubeconfig", "kubeconfig", "--context=oarlock-dev"]), @"
    error: the API server rejects the credentials: Unauthorized
    hint:  log in to the cluster again; kubectl --kubeconfig kubeconfig --context oarlock-dev auth whoami shows whether the API server accepts the login
    ");
    insta::assert_snapshot!(stderr(&["--context=oarlock-dev", "top", "a.b"]), @r#"
    error: "a.b" is not the name of a Plugin
    hint:  `kubectl oarlock --context oarlock-dev plugins -n default` lists the names
    "#);
    cluster.shut_down().await;
}

#[test]
fn a_port_in_use_is_reported_before_the_host_starts() {
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
fn a_state_folder_in_use_is_refused_until_its_host_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let dev = ["dev", "--output", "json", "--state-dir", "state", "empty"];
    let host = || {
        let mut command = oarlock(folder.path());
        command.args(dev);
        let mut running = Running::start(command);
        let socket = running.until("control-listening")["socket"].as_str().unwrap().to_owned();
        (running, Path::new(&socket).file_stem().unwrap().to_str().unwrap().to_owned())
    };
    let (first, pid) = host();
    let to_absent = ["run", "--plugins", "empty", "--kubeconfig", "absent", "--state-dir", "state"];
    for args in [dev.as_slice(), &to_absent] {
        let said = run(folder.path(), args);
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.stderr);
        insta::allow_duplicates! {
            insta::assert_snapshot!(said.stderr.replace(&pid, "4711"), @"
            error: --state-dir state cannot be used: another host uses it: process 4711
            hint:  end that host first, or give this one a folder of its own with --state-dir
            ");
        }
    }
    // Without a chance to clean up.
    first.end("KILL");
    let (next, _) = host();
    assert_eq!(next.end("TERM").0, Some(0));
}

#[test]
fn missing_files_and_unknown_values_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let mut errors = String::new();
    for args in [
        ["dev", "absent"].as_slice(),
        &["run", "--plugins", "absent"],
        &["rbac", "empty"],
        &["plugin", "inspect", "absent.wasm"],
        &["dev", "--fault", "explode"],
        &["dev", "--cache-dir", "/proc/nowhere"],
        &["run"],
        &["rbac"],
        &["plugin", "check", "ghcr.io/team-a/mirror:1.4.0"],
        &["dev", "--admin-addr", "8080"],
        // Flags and their files are read before the API server is asked.
        &[
            "run",
            "--watch-plugins",
            "--kubeconfig",
            "absent",
            "--cache-dir",
            "cache",
            "--max-limits",
            "absent.yaml",
        ],
        &[
            "run",
            "--watch-plugins",
            "--kubeconfig",
            "absent",
            "--leader-elect",
            "--leader-elect-lease-duration",
            "1s",
        ],
        &["run", "--plugins", "empty", "--source-policy", "absent.yaml"],
        &["run", "--plugins", "empty", "--max-component-bytes", "1Gi"],
        &["run", "--plugins", "empty", "--max-concurrency", "3"],
        &["run", "--plugins", "empty", "--max-weight", "50"],
        &["run", "--watch-plugins", "--leader-elect-retry-period", "1s"],
        &["run", "--watch-plugins", "--leader-elect", "--leader-elect-resource-name", "X_Y"],
        &["rbac", "--constrained", "empty"],
        &["rbac", "--leader-elect", "--leader-elect-resource-name", "X_Y", "empty"],
        &["rbac", "--service-account", "team-a/mirror", "empty"],
        &["install", "--print", "--image", "https://registry.example.com/oarlock"],
        &["new", "web", "--lang", "c"],
    ] {
        let said = run(folder.path(), args);
        assert_eq!(said.code, Some(2), "{args:?}: {}", said.stderr);
        errors.push_str(&said.stderr);
    }
    insta::assert_snapshot!(errors, @r#"
    error: absent does not exist
    hint:  name plugin files, or folders of them, such as plugins/mirror
    error: --plugins absent does not exist
    hint:  name a folder of plugin files, the folder of one plugin, or a plugin file
    error: empty: contains no plugin.yaml, plugin.yml or plugin.toml. Fix: name a plugin file or the folder of one; `oarlock plugin new NAME` makes a plugin
    error: absent.wasm cannot be read: No such file or directory (os error 2)
    hint:  build the component first, or check the path
    error: invalid value 'explode' for '--fault <ACTION[,KEY=VALUE]…>': unknown fault `explode`; the faults are close-watch, half-open-watch, slow-body, cut-body, garbage, repeat-events, swallow-event, 410, 429, 500, 401

    For more information, try '--help'.
    error: --cache-dir /proc/nowhere cannot be used: No such file or directory (os error 2)
    hint:  name a folder that only this user can write to
    error: run does not know which plugins to run
    hint:  name them with --plugins PATH, or run the Plugin objects of the cluster with --watch-plugins; oarlock dev PATH needs no cluster
    error: rbac does not know whose rights to print
    hint:  name plugin files or folders of plugins; or, for Plugin objects, the namespace that opts in, with --namespace NAME, or a component with --service-account NAMESPACE/NAME; `oarlock install --print` has the rights of a host of Plugin objects
    error: there is no file ghcr.io/team-a/mirror:1.4.0
    hint:  for an artifact of a registry, write oci://ghcr.io/team-a/mirror:1.4.0
    error: invalid value '8080' for '--admin-addr <ADDRESS>': write an IP address and a port, such as 127.0.0.1:8080 or [::]:8443

    For more information, try '--help'.
    error: --max-limits absent.yaml cannot be used: No such file or directory (os error 2)
    hint:  name a file that has the limits
    error: --leader-elect-lease-duration 1s is not greater than --leader-elect-renew-deadline 10s
    hint:  Kubernetes' own components use 15s, 10s and 2s
    error: --source-policy is about Plugin objects, which this host does not run
    hint:  add --watch-plugins, or leave --source-policy out
    error: --max-component-bytes is about Plugin objects, which this host does not run
    hint:  add --watch-plugins, or leave --max-component-bytes out
    error: --max-concurrency is about Plugin objects, which this host does not run
    hint:  add --watch-plugins, or leave --max-concurrency out
    error: --max-weight is about Plugin objects, which this host does not run
    hint:  add --watch-plugins, or leave --max-weight out
    error: the following required arguments were not provided:
      --leader-elect

    Usage: oarlock run --leader-elect --watch-plugins --leader-elect-retry-period <DURATION>

    For more information, try '--help'.
    error: invalid value 'X_Y' for '--leader-elect-resource-name <NAME>': the name of a Lease is a DNS subdomain: at most 253 lowercase letters, digits and, within it, `-` and `.`

    For more information, try '--help'.
    error: the argument '--constrained' cannot be used with '[PLUGIN]...'

    Usage: oarlock rbac --namespace <NAME> --constrained [PLUGIN]...

    For more information, try '--help'.
    error: invalid value 'X_Y' for '--leader-elect-resource-name <NAME>': the name of a Lease is a DNS subdomain: at most 253 lowercase letters, digits and, within it, `-` and `.`

    For more information, try '--help'.
    error: empty is no component, and --service-account is for components
    hint:  name the .wasm file of the Plugin object; for a plugin file, which names its account, leave --service-account out
    error: invalid value 'https://registry.example.com/oarlock' for '--image <IMAGE>': reference "https://registry.example.com/oarlock" has no well-formed host before the first /; write the reference of an image, such as registry.example.com/oarlock:0.1.0

    For more information, try '--help'.
    error: unrecognized subcommand 'new'

      tip: did you mean 'oarlock plugin new'?

    Usage: oarlock [OPTIONS] <COMMAND>

    For more information, try '--help'.
    "#);
}

#[test]
fn a_component_without_a_plugin_file_needs_dev() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("my.wasm"), b"").unwrap();
    for args in [["run", "--plugins", "my.wasm"].as_slice(), &["rbac", "my.wasm"]] {
        let said = run(folder.path(), args);
        assert_eq!(said.code, Some(2));
        insta::allow_duplicates! {
            insta::assert_snapshot!(said.stderr, @"error: my.wasm: a component needs a plugin file that names its ServiceAccount. Fix: write one with the keys `name`, `component` and `serviceAccount`; `oarlock dev`, and `oarlock rbac` with --service-account, need none");
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
fn every_bad_file_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.yaml"), "nam: a\n").unwrap();
    std::fs::write(folder.path().join("b.toml"), "name = 1\n").unwrap();
    let said = run(folder.path(), &["rbac", "."]);
    assert_eq!(said.code, Some(2));
    insta::assert_snapshot!(said.stderr, @"
    error: ./a.yaml:1:1: unknown key `nam`; did you mean `name`? (known keys: name, component, serviceAccount, config, limits, suspend, suspendWrites, dryRun, concurrency, weight, instances, probation, retry, shadow)
           ./b.toml:1:8: invalid type: integer `1`, expected a text (a number needs quotes)
    ");
}

#[test]
fn a_record_or_component_that_cannot_be_replayed_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("text.txt", b"some text");
    write("empty.record", b"OARLKREC\x01\0\0\0");
    write("cut.record", b"OARLKREC\x01\0\0\0\x64\0\0\0\xc8\0\0\0the first block");
    write("next.record", b"OARLKREC\x02\0\0\0");
    write("damaged.record", b"OARLKREC\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff");
    write("core.wasm", b"\0asm\x01\0\0\0");
    assert!(std::process::Command::new("mkfifo").arg(folder.path().join("fifo")).status().unwrap().success());
    let traps = oarlock_built_guests::component("traps");
    std::fs::copy(traps, folder.path().join("traps.wasm")).unwrap();
    let mut errors = String::new();
    for (record, component) in [
        ("absent.record", "traps.wasm"),
        (".", "traps.wasm"),
        ("fifo", "traps.wasm"),
        ("traps.wasm", "empty.record"),
        ("next.record", "traps.wasm"),
        ("damaged.record", "traps.wasm"),
        ("empty.record", "traps.wasm"),
        ("cut.record", "traps.wasm"),
        ("empty.record", "absent.wasm"),
        ("empty.record", "."),
        ("empty.record", "text.txt"),
        ("empty.record", "core.wasm"),
    ] {
        let said = run(folder.path(), &["plugin", "replay", record, component]);
        assert_eq!(said.code, Some(2), "{record} {component}: {}", said.stderr);
        errors.push_str(&said.stderr);
    }
    insta::assert_snapshot!(errors, @r"
    error: the record absent.record cannot be read: No such file or directory (os error 2)
    hint:  check the path; `oarlock dev PLUGIN --record FILE` writes a record
    error: the record . cannot be read: it is a folder, and only regular files are read
    hint:  name one of its files, such as NAME.record
    error: the record fifo cannot be read: it is a FIFO, and only regular files are read
    hint:  name the file that a host wrote with --record
    error: the record traps.wasm is not a record: it does not begin with OARLKREC
    hint:  name the record first and then the component: `oarlock plugin replay RECORD COMPONENT`
    error: the record next.record is a record in version 2 of the format; this oarlock reads version 1
    hint:  replay it with the version of oarlock that recorded it
    error: the record damaged.record is damaged at byte 12: a block of 4294967295 bytes, unpacked 4294967295
    hint:  copy the record again from where the host wrote it, or record again
    error: empty.record: the record ends before its first entry
    hint:  record again: the file was cut, or the host was ended while it began it
    error: cut.record: the record ends before its first entry
    hint:  record again: the file was cut, or the host was ended while it began it
    error: absent.wasm cannot be read: No such file or directory (os error 2)
    hint:  build the component first, or check the path
    error: . cannot be read: it is a folder, and only regular files are read
    hint:  name a component, which is a .wasm file
    error: text.txt: not WebAssembly: the file does not begin with \0asm (it begins with some tex)
    hint:  name a component, which is a .wasm file
    error: core.wasm: a core WebAssembly module, not a component: build for the component model (link with wasm-component-ld, or run `wasm-tools component new` on it)
    ");
}
