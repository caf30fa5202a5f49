//! `inspect`, `check` and `rbac` refuse a plugin with the same message as a host. `cargo xtask guests`
//! builds the guest.

use std::{fs, path::Path};

use serde_json::Value;

use crate::rig::{Running, oarlock, run};

/// Writes the file of a plugin that returns this wrong description.
fn plugin(folder: &Path, how: &str) {
    let guest = oarlock_built_guests::component("misdescribes");
    let text = serde_json::json!({
        "name": "p",
        "component": guest,
        "serviceAccount": {"namespace": "default", "name": "p"},
        "config": {"how": how},
    });
    fs::write(folder.join("p.yaml"), text.to_string()).unwrap();
}

/// Returns the first line of a host about the plugin, which is loaded or refused.
fn hosted(folder: &Path) -> Value {
    let mut command = oarlock(folder);
    command.args(["dev", "--output", "json", "p.yaml"]);
    let mut running = Running::start(command);
    running.until_any(&["plugin-refused", "plugin-loaded"])
}

#[test]
fn inspect_check_and_rbac_refuse_a_plugin_with_the_message_of_a_host() {
    let folder = tempfile::tempdir().unwrap();
    let mut messages = String::new();
    for how in ["bad selector", "write with a verb of its own", "bad field", "refuses", "index of nothing"] {
        plugin(folder.path(), how);
        let refused = hosted(folder.path());
        let message = refused["message"].as_str().unwrap_or_else(|| panic!("{how}: {refused}"));
        for command in
            [["plugin", "inspect", "p.yaml"].as_slice(), &["plugin", "check", "p.yaml"], &["rbac", "p.yaml"]]
        {
            let output = run(folder.path(), command);
            assert_eq!(output.code, Some(2), "{how}");
            assert!(output.stderr.contains(message), "{how}: {}\n{message}", output.stderr);
        }
        messages.push_str(&format!("{message}\n"));
    }
    insta::assert_snapshot!(messages, @r#"
    subscription "configmaps": unable to parse requirement: found '', expected: ',' or ')'
    request for configmaps: "remove" is no verb of Kubernetes; did you mean `delete`? (verbs: get, list, watch, create, update, patch, delete, deletecollection, bind, escalate, impersonate, approve, sign)
    the plugin's description is invalid: subscriptions[configmaps].fields[1]: the JSON pointer "spec" does not begin with /, such as /metadata/name
    the plugin refuses to be loaded: `how` suits me not
    the plugin's description is invalid: indices[by-app].lister: no read has the name "pods"
    "#);
}

#[test]
fn rbac_prints_the_rights_of_a_component_for_the_account_of_its_plugin_object() {
    let folder = tempfile::tempdir().unwrap();
    let guest = oarlock_built_guests::component("hello-rust");
    let printed = |account: &str| {
        let mut command = oarlock(folder.path());
        let output = command.args(["rbac", "--service-account", account]).arg(&guest).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = printed("team-a/cm");
    assert!(
        text.contains("The plugin team-a.cm.hello-rust, which acts as the ServiceAccount team-a/cm."),
        "{text}"
    );
    assert_eq!(text.matches("kind: ClusterRoleBinding").count(), 1, "no rights of the host: {text}");
    // Roles of another account do not replace them.
    let name = "name: oarlock-plugin-team-a.cm.hello-rust";
    assert!(text.contains(name) && !printed("team-b/cm").contains(name), "{text}");
}

#[test]
fn a_guest_cannot_control_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let is_control = |it: char| it.is_control() && it != '\n';
    for how in ["controls terminals", "refuses and controls terminals"] {
        plugin(folder.path(), how);
        for args in
            [["plugin", "inspect", "p.yaml"].as_slice(), &["plugin", "check", "p.yaml"], &["rbac", "p.yaml"]]
        {
            let output = oarlock(folder.path()).args(args).output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
            assert!(!text.contains(is_control), "{how}: {text:?}");
            assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{how}: {text}");
        }
        let mut command = oarlock(folder.path());
        command.args(["dev", "--level", "debug", "p.yaml"]);
        let mut running = Running::start(command);
        let shown = running.until_text("p#1: ");
        assert!(!shown.contains(is_control), "{how}: {shown:?}");
        let (_, rest) = running.end("TERM");
        assert!(!rest.join("\n").contains(is_control), "{how}: {rest:?}");
    }
}

#[test]
fn the_component_of_a_shadow_is_checked_too() {
    let folder = tempfile::tempdir().unwrap();
    plugin(folder.path(), "controls terminals");
    let check = || run(folder.path(), &["plugin", "check", "p.yaml"]);
    assert_eq!(check().code, Some(0));
    let path = folder.path().join("p.yaml");
    let mut file: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    file["shadow"] = "none.wasm".into();
    fs::write(path, file.to_string()).unwrap();
    let output = check();
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains("none.wasm cannot be read"), "{}", output.stderr);
}
