//! The commands that ask a running host, in the ways of a person in a hurry.

use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::config::Kubeconfig;
use oarlock_informer::list_watch::transport;

use crate::rig::{Running, oarlock};
use oarlock_wait_until::{LIMIT, wait_until_blocking};

/// Returns a command of the binary whose state folder is below this one.
fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = oarlock(folder);
    command.env("HOME", folder).args(args);
    command
}

fn ask(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a command that goes on, until what it has printed is enough. Returns the lines.
fn until(folder: &Path, args: &[&str], is_enough: impl Fn(&[String]) -> bool) -> Vec<String> {
    let mut child = command(folder, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, printed) = mpsc::channel();
    let reader =
        thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|it| sender.send(it)));
    let deadline = Instant::now() + LIMIT;
    let mut lines = Vec::new();
    let has_enough = loop {
        match printed.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => lines.push(line),
            // It has ended, or the time is over.
            Err(_) => break false,
        }
        if is_enough(&lines) {
            break true;
        }
    };
    child.kill().unwrap();
    let ended = child.wait_with_output().unwrap();
    drop(printed);
    let _ = reader.join();
    assert!(has_enough, "{args:?} printed too little: {lines:#?}{}", stderr(&ended));
    lines
}

/// Starts a host with one plugin, `broken`, whose component is missing.
fn host(folder: &Path) -> (Running, String) {
    std::fs::create_dir_all(folder.join("plugins")).unwrap();
    let file = "name: broken\ncomponent: missing.wasm\nserviceAccount: {namespace: default, name: broken}\n";
    std::fs::write(folder.join("plugins/broken.yaml"), file).unwrap();
    let mut running = Running::start(command(folder, &["dev", "--output", "json", "plugins"]));
    let socket = running.until("control-listening")["socket"].as_str().unwrap().to_owned();
    running.until("plugin-refused");
    (running, socket)
}

#[test]
fn without_a_host_each_command_says_where_it_looked_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["plugins"][..],
        &["top", "--once"],
        &["logs", "mirror"],
        &["dead-letters"],
        &["redeliver", "mirror", "--all"],
        &["suspend", "mirror"],
        &["resume", "mirror"],
        &["rollback", "mirror"],
    ] {
        let output = ask(folder.path(), args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains("no running host was found") && said.contains("oarlock dev"), "{said}");
        assert!(said.contains(".local/state/oarlock/control"), "{said}");
    }
}

#[test]
fn resume_ends_only_the_suspension_by_an_operator() {
    let folder = tempfile::tempdir().unwrap();
    let (mut running, _) = host(folder.path());
    let folder = folder.path();
    let file = folder.join("plugins/broken.yaml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}suspend: true\n")).unwrap();
    assert_eq!(running.until("plugin-suspended")["by"], "definition");
    let refused = ask(folder, &["resume", "broken"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("plugin broken stays suspended"), "{}", stderr(&refused));
    ask(folder, &["suspend", "broken"]);
    let resumed = ask(folder, &["resume", "broken"]);
    assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));
    assert_eq!(
        stdout(&resumed),
        "plugin/broken resumed, and stays suspended: its file or object has `suspend: true`\n"
    );
    running.end("TERM");
}

#[test]
fn both_flags_win_over_the_variable_for_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let said = |args: &[&str]| {
        let mut command = command(folder.path(), args);
        stderr(&command.env("OARLOCK_SOCKET", "/no.sock").output().unwrap())
    };
    let by_variable = said(&["plugins"]);
    assert!(by_variable.contains("there is no socket /no.sock"), "{by_variable}");
    assert!(by_variable.contains("OARLOCK_SOCKET") && !by_variable.contains("--socket"), "{by_variable}");
    let by_socket = said(&["plugins", "--socket", "/other.sock"]);
    assert!(by_socket.contains("there is no socket /other.sock"), "{by_socket}");
    let by_admin = said(&["plugins", "--admin", "127.0.0.1:1"]);
    assert!(by_admin.contains("no host answers at 127.0.0.1:1"), "{by_admin}");
    let by_both = said(&["plugins", "--admin", "127.0.0.1:1", "--socket", "/other.sock"]);
    assert!(by_both.contains("cannot be used with"), "{by_both}");
}

#[test]
fn without_arguments_the_help_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let output = ask(folder.path(), &[]);
    let said = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
    assert!(said.contains("Usage: oarlock") && said.contains("dead-letters"), "{said}");
    assert!(!said.contains("compile-component"), "hidden: {said}");
}

#[test]
fn a_running_host_is_found_and_asked() {
    let folder = tempfile::tempdir().unwrap();
    let (running, socket) = host(folder.path());
    let folder = folder.path();

    let list = ask(folder, &["plugins"]);
    let text = stdout(&list);
    assert!(text.starts_with("NAME ") && text.contains("broken   refused"), "{text} {}", stderr(&list));
    assert!(!stdout(&ask(folder, &["plugins", "--no-headers"])).contains("NAME"));
    assert_eq!(stdout(&ask(folder, &["plugins", "-o", "name"])), "plugin/broken\n");
    let json: serde_json::Value =
        serde_json::from_slice(&ask(folder, &["plugins", "-o", "json"]).stdout).unwrap();
    assert_eq!(json["plugins"][0]["name"], "broken");
    let described = stdout(&ask(folder, &["plugins", "plugin/broken"]));
    assert!(described.contains("Newest refused:") && described.contains("missing.wasm"), "{described}");

    let top = stdout(&ask(folder, &["top", "--sort-by", "memory"]));
    assert!(top.starts_with("NAME ") && top.contains("broken") && !top.contains('\u{1b}'), "{top:?}");
    let json: serde_json::Value =
        serde_json::from_slice(&ask(folder, &["top", "-o", "json"]).stdout).unwrap();
    assert_eq!(json["plugins"][0]["calls-per-second"], 0.0);

    let logs = stdout(&ask(folder, &["logs", "broken", "--tail", "5"]));
    assert!(logs.contains("missing.wasm"), "{logs}");
    assert!(stderr(&ask(folder, &["dead-letters"])).contains("nothing is parked"));

    let samples = until(folder, &["top", "-w", "-o", "json"], |lines| lines.len() == 2);
    for sample in samples {
        let sample: serde_json::Value = serde_json::from_str(&sample).unwrap();
        assert_eq!(sample["plugins"][0]["name"], "broken");
    }
    let is_second = |lines: &[String]| lines.iter().filter(|line| *line == "refused-files: []").count() == 2;
    let documents = until(folder, &["plugins", "-w", "-o", "yaml"], is_second);
    assert_eq!(documents.iter().filter(|line| *line == "---").count(), 1, "{documents:#?}");

    assert_eq!(stdout(&ask(folder, &["suspend", "broken"])), "plugin/broken suspended\n");
    assert!(stdout(&ask(folder, &["plugins"])).contains("suspended"));
    assert_eq!(stdout(&ask(folder, &["resume", "broken"])), "plugin/broken resumed\n");
    for operation in ["suspend", "resume"] {
        let answer = ask(folder, &[operation, "broken", "-o", "json"]).stdout;
        let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer, serde_json::json!({"plugin": "broken"}));
        assert_eq!(stdout(&ask(folder, &[operation, "broken", "-o", "yaml"])), "plugin: broken\n");
    }
    let mut watch = Running::start(command(folder, &["plugins", "--watch"]));
    watch.until_text("broken");
    watch.close_output();
    assert_eq!(watch.code_unread(), Some(0));
    let mut follow = Running::start(command(folder, &["logs", "broken", "-f"]));
    follow.until_text("missing.wasm");
    follow.close_output();
    assert_eq!(follow.code_unread(), Some(0));
    let answer = ask(folder, &["rollback", "broken", "--release", "-o", "json"]).stdout;
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer, serde_json::json!({"plugin": "broken", "released": 0}));
    let output = ask(folder, &["rollback", "broken"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot be rolled back"), "{}", stderr(&output));
    let output = ask(folder, &["redeliver", "broken", "pods", "default/a"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no version of the plugin serves"), "{}", stderr(&output));
    let output = ask(folder, &["redeliver", "broken"]);
    assert!(stderr(&output).contains("--all"), "{}", stderr(&output));

    let output = ask(folder, &["suspend", "brokn"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean broken?"), "{}", stderr(&output));
    assert_eq!(
        stdout(&ask(folder, &["--state-dir", "/nowhere", "plugins", "--socket", &socket, "-o", "name"])),
        "plugin/broken\n"
    );

    // A variable that is empty counts as not set.
    let mut with_empty = command(folder, &["plugins", "-o", "name"]);
    with_empty.env("OARLOCK_SOCKET", "").env("OARLOCK_STATE_DIR", "").env("OARLOCK_CACHE_DIR", "");
    assert_eq!(stdout(&with_empty.output().unwrap()), "plugin/broken\n");

    // The reader of a pipe that ends early.
    let mut child =
        command(folder, &["plugins", "-w"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), stderr(&ended).as_str()), (Some(0), ""));

    let (other, _) = host(folder);
    let two = ask(folder, &["plugins"]);
    let said = stderr(&two);
    assert_eq!(two.status.code(), Some(2));
    assert!(said.contains("2 hosts run on this machine") && said.contains("--socket "), "{said}");
    other.end("TERM");
    assert!(ask(folder, &["plugins"]).status.success());

    // A host that does not answer may be the one that is meant.
    let socket = folder.join(".local/state/oarlock/control/1.sock");
    let silent = UnixListener::bind(&socket).unwrap();
    let two = ask(folder, &["suspend", "broken"]);
    let said = stderr(&two);
    assert_eq!(two.status.code(), Some(2));
    assert!(
        said.contains("2 hosts run on this machine") && said.contains("1.sock does not answer"),
        "{said}"
    );
    drop(silent);
    assert!(ask(folder, &["plugins"]).status.success());
    std::fs::remove_file(socket).unwrap();
    running.end("TERM");
    assert_eq!(std::fs::read_dir(folder.join(".local/state/oarlock/control")).unwrap().count(), 0);
}

/// Creates a ConfigMap in the cluster of `oarlock dev`.
fn create_config_map(folder: &Path, name: &str) {
    let create = async {
        let kubeconfig = Kubeconfig::read_from(folder.join(".oarlock/kubeconfig")).unwrap();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
        let api = Api::<ConfigMap>::namespaced(transport::client(config).unwrap(), "default");
        let object = serde_json::json!({"metadata": {"name": name}});
        api.create(&Default::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(create);
}

#[test]
fn what_a_plugin_failed_to_handle_is_listed_and_redelivered() {
    let folder = tempfile::tempdir().unwrap();
    let guest = oarlock_built_guests::component("traps");
    std::fs::copy(guest, folder.path().join("traps.wasm")).unwrap();
    let folder = folder.path();
    let mut running = Running::start(command(folder, &["dev", "--output", "json", "traps.wasm"]));
    let line = running.until_any(&["subscription-synced", "plugin-refused"]);
    assert_eq!(line["event"], "subscription-synced", "{line}");
    create_config_map(folder, "terminal");
    assert_eq!(running.until("delivered")["outcome"], "parked");

    let names = stdout(&ask(folder, &["dead-letters", "-o", "name"]));
    assert_eq!(names, "traps configmaps default/terminal\n");
    let list = stdout(&ask(folder, &["dead-letters", "traps", "--no-headers"]));
    assert!(list.contains("terminal") && list.contains("as asked"), "{list}");
    let redelivered = ask(folder, &["redeliver", "traps", "configmaps", "default/terminal"]);
    assert_eq!(
        stdout(&redelivered),
        "plugin/traps: 1 object or key is tried again\n",
        "{}",
        stderr(&redelivered)
    );
    assert_eq!(running.until("delivered")["name"], "terminal", "the host called the plugin again");
    let absent = ask(folder, &["redeliver", "traps", "configmaps", "default/absent"]);
    assert_eq!(absent.status.code(), Some(2));
    assert!(stderr(&absent).contains("it is not parked"), "{}", stderr(&absent));

    let page = ask(folder, &["plugins", "traps", "-o", "json"]).stdout;
    let plugin: serde_json::Value = serde_json::from_slice(&page).unwrap();
    let usage = &plugin["usage"];
    assert_eq!(usage["failures"], 2);
    for used in
        ["calls", "guest-cpu-ns", "call-wall-ns", "bytes-to-guest", "linear-memory-bytes", "instances"]
    {
        assert!(usage[used].as_u64().unwrap() > 0, "{used} in {usage}");
    }
    let logs = stdout(&ask(folder, &["logs", "traps", "-o", "json"]));
    assert_eq!(logs.matches(r#""outcome":"parked""#).count(), 2, "{logs}");
    let answer = ask(folder, &["redeliver", "traps", "--all", "-o", "json"]).stdout;
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer, serde_json::json!({"plugin": "traps", "redelivered": 1}));

    let answer = ask(folder, &["redeliver", "traps", "configmaps", "--existing"]);
    let said = stdout(&answer);
    assert!(said.starts_with("plugin/traps: delivers "), "{said} {}", stderr(&answer));
    assert!(said.ends_with("). `oarlock top traps` shows how many wait\n"), "{said}");
    assert_eq!(running.until("existing-delivered")["subscription"], "configmaps");
    assert_eq!(running.until("delivered")["name"], "terminal", "it is parked again");
    let answer = ask(folder, &["redeliver", "traps", "--existing", "-o", "json"]).stdout;
    let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["redelivered"], answer["subscriptions"][0]["objects"], "{answer}");
    ask(folder, &["suspend", "traps"]);
    let suspended = ask(folder, &["redeliver", "traps", "--existing"]);
    assert_eq!(suspended.status.code(), Some(2));
    assert!(stderr(&suspended).contains("it is suspended"), "{}", stderr(&suspended));
    running.end("TERM");
}

/// Writes the file of a plugin that adds a key to its work queue every second.
fn ticking(folder: &Path, name: &str) {
    let guest = oarlock_built_guests::component("reconciles");
    std::fs::create_dir_all(folder.join("plugins")).unwrap();
    let file = format!(
        "name: {name}\ncomponent: {}\nserviceAccount: {{namespace: default, name: {name}}}\nconfig: {{everySeconds: 1}}\n",
        guest.display()
    );
    std::fs::write(folder.join(format!("plugins/{name}.yaml")), file).unwrap();
}

#[test]
fn a_schedule_of_a_suspended_plugin_adds_one_key_that_waits_for_the_end_of_the_suspension() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["suspended", "clock"] {
        ticking(folder, name);
    }
    let mut running = Running::start(command(folder, &["dev", "--output", "json", "plugins"]));
    running.until("plugin-loaded");
    running.until("plugin-loaded");
    let status = |plugin: &str| -> serde_json::Value {
        serde_json::from_slice(&ask(folder, &["plugins", plugin, "-o", "json"]).stdout).unwrap()
    };
    let n_calls = |plugin: &str| status(plugin)["usage"]["calls"].as_u64().unwrap();
    let until_calls = |plugin: &str, n: u64| {
        wait_until_blocking("further calls", LIMIT, || match n_calls(plugin) {
            calls if calls >= n => Ok(calls),
            calls => Err(calls),
        })
    };
    until_calls("suspended", 1);
    assert_eq!(stdout(&ask(folder, &["suspend", "suspended"])), "plugin/suspended suspended\n");
    let pending = || status("suspended")["work-queue"]["pending"].as_u64();
    wait_until_blocking("a key that waits", LIMIT, || match pending() {
        Some(1) => Ok(()),
        other => Err(other),
    });
    let (n_before, n_ticks) = (n_calls("suspended"), n_calls("clock"));
    until_calls("clock", n_ticks + 3);
    assert_eq!((n_calls("suspended"), pending()), (n_before, Some(1)), "no call, and no second key");
    let queue = &status("suspended")["work-queue"];
    assert_eq!((&queue["ready"], &queue["delayed"]), (&1.into(), &0.into()), "{queue}");
    let top: serde_json::Value =
        serde_json::from_slice(&ask(folder, &["top", "suspended", "-o", "json"]).stdout).unwrap();
    let row = &top["plugins"][0];
    assert_eq!((&row["backlog"], &row["delayed-keys"]), (&1.into(), &0.into()), "{row}");
    assert!(row["backlog-oldest-seconds"].as_f64().unwrap() > 0.0, "{row}");
    assert_eq!(stdout(&ask(folder, &["resume", "suspended"])), "plugin/suspended resumed\n");
    until_calls("suspended", n_before + 2);
    running.end("TERM");
}

#[test]
fn a_component_without_a_file_is_recorded_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let guest = oarlock_built_guests::component("traps");
    std::fs::copy(guest, folder.join("traps.wasm")).unwrap();
    let args = ["dev", "--output", "json", "--level", "debug", "traps.wasm", "--record", "traps.record"];
    let mut running = Running::start(command(folder, &args));
    running.until("subscription-synced");
    create_config_map(folder, "harmless");
    running.until("delivered");
    running.end("TERM");
    let replayed = ask(folder, &["plugin", "replay", "traps.record", "traps.wasm"]);
    assert_eq!(replayed.status.code(), Some(0), "{} {}", stdout(&replayed), stderr(&replayed));
    // A mistake is found before an API server is started.
    std::fs::write(folder.join("broken.yaml"), "name: [").unwrap();
    let refused = ask(folder, &["dev", "broken.yaml", "--record", "broken.record"]);
    assert_eq!((refused.status.code(), stdout(&refused).as_str()), (Some(2), ""));
    assert!(stderr(&refused).contains("no plugin can be loaded now"), "{}", stderr(&refused));
}

#[test]
fn the_description_of_a_plugin_has_its_shadow_and_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let guest = oarlock_built_guests::component("traps");
    std::fs::create_dir_all(folder.join("plugins")).unwrap();
    let file = format!(
        "name: traps\ncomponent: {guest}\nshadow: {guest}\n\
         serviceAccount: {{namespace: default, name: traps}}\n",
        guest = guest.display()
    );
    std::fs::write(folder.join("plugins/traps.yaml"), file).unwrap();
    let args = ["dev", "--output", "json", "plugins", "--record", "traps.record"];
    let running = Running::start(command(folder, &args));
    let said = wait_until_blocking("a shadow that serves", LIMIT, || {
        let described = ask(folder, &["plugins", "traps"]);
        let said = stdout(&described);
        match said.contains("Compared:       0 writes: 0 equal, 0 different") {
            true => Ok(said),
            false => Err(format!("{said}{}", stderr(&described))),
        }
    });
    for line in [
        "Shadow:           traps.shadow\n",
        "  Phase:          serving\n",
        "Recorded:         traps.record: recording, ",
    ] {
        assert!(said.contains(line), "{line} is not in\n{said}");
    }
    let shadow = stdout(&ask(folder, &["plugins", "traps.shadow"]));
    assert!(shadow.contains("Recorded:         no\n") && !shadow.contains("Shadow:"), "{shadow}");
    running.end("TERM");
}
