//! A plugin of one's own, in a folder outside of this repository: `oarlock plugin new`, `build`, `inspect`,
//! `dev`, with the real tools of each language.
//!
//! The test of a language whose tools `cargo xtask guests` did not find is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use kube::config::Kubeconfig;
use oarlock_built_guests::{missing, needs, skip_rest};
use oarlock_tests::cluster::Cluster;
use oarlock_tests::host_process::{HostProcess, Printed, binary};
use serde_json::{Value, json};

use crate::command::{refused, written};

/// A new plugin, in a folder that is removed at the end.
struct NewPlugin {
    folder: PathBuf,
    _parent: tempfile::TempDir,
}

impl NewPlugin {
    fn make(language: &str, kind: &str, watch: &str) -> anyhow::Result<Self> {
        let parent = tempfile::tempdir()?;
        written(
            parent.path(),
            &["plugin", "new", "web-watcher", "--lang", language, kind, "--watch", watch],
        )?;
        Ok(Self { folder: parent.path().join("web-watcher"), _parent: parent })
    }

    fn component(&self) -> anyhow::Result<Vec<u8>> {
        Ok(fs::read(self.folder.join("web-watcher.wasm"))?)
    }
}

/// Whether two builds of the same sources give the same bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bytes {
    Same,
    /// The component is a snapshot of an engine, whose start took random numbers.
    OfASnapshot,
}

/// Makes, builds and inspects a plugin of both kinds, and builds one of them again from nothing.
fn is_built(language: &str, bytes: Bytes) -> anyhow::Result<()> {
    needs(language);
    let handler = NewPlugin::make(language, "--handler", "apps/v1/deployments")?;
    written(&handler.folder, &["plugin", "build"])?;
    let inspected = written(&handler.folder, &["plugin", "check", "."])?;
    for part in
        ["handler-plugin, contract 0.1.0\n", "web-watcher 0.1.0, stateless", "objects: apps/v1/deployments"]
    {
        assert!(inspected.contains(part), "{language}: {part:?} is not in {inspected}");
    }

    let before = handler.component()?;
    let again = written(&handler.folder, &["plugin", "build"])?;
    assert!(again.contains("web-watcher.wasm is up to date"), "{language}: {again}");
    fs::remove_dir_all(handler.folder.join(".oarlock"))?;
    fs::remove_file(handler.folder.join("web-watcher.wasm"))?;
    written(&handler.folder, &["plugin", "build"])?;
    if bytes == Bytes::Same {
        assert!(handler.component()? == before, "{language}: two builds of the same sources differ");
    }

    let reconciler = NewPlugin::make(language, "--reconciler", "v1/configmaps")?;
    written(reconciler.folder.parent().context("a parent")?, &["plugin", "build", "web-watcher"])?;
    let inspected = written(&reconciler.folder, &["plugin", "check", "plugin.yaml"])?;
    for part in ["reconciler-plugin, contract 0.1.0\n", "objects: v1/configmaps"] {
        assert!(inspected.contains(part), "{language}: {part:?} is not in {inspected}");
    }
    Ok(())
}

#[test]
fn a_new_plugin_in_rust_is_built() -> anyhow::Result<()> {
    is_built("rust", Bytes::Same)
}

#[test]
fn a_new_plugin_in_python_is_built() -> anyhow::Result<()> {
    is_built("python", Bytes::OfASnapshot)
}

#[test]
fn a_new_plugin_in_typescript_is_built() -> anyhow::Result<()> {
    is_built("ts", Bytes::OfASnapshot)
}

#[test]
fn a_new_plugin_in_javascript_is_built() -> anyhow::Result<()> {
    is_built("js", Bytes::OfASnapshot)
}

#[test]
fn a_new_plugin_in_go_is_built() -> anyhow::Result<()> {
    is_built("go", Bytes::Same)
}

#[test]
fn a_new_plugin_in_c_is_built() -> anyhow::Result<()> {
    is_built("c", Bytes::Same)
}

/// Replaces a text in a source, which must contain it.
fn edit(path: &Path, from: &str, to: &str) -> anyhow::Result<()> {
    let text = fs::read_to_string(path)?;
    ensure!(text.contains(from), "{} does not contain {from:?}", path.display());
    Ok(fs::write(path, text.replace(from, to))?)
}

#[tokio::test(flavor = "multi_thread")]
async fn dev_builds_a_plugin_and_swaps_it_when_its_source_changes() -> anyhow::Result<()> {
    let plugin = NewPlugin::make("rust", "--handler", "v1/configmaps")?;
    let mut command = tokio::process::Command::new(binary("oarlock")?);
    command.current_dir(&plugin.folder);
    let mut host = HostProcess::start_program(command, ["dev"])?;
    let kubeconfig = host
        .wait_for("the API server", |printed| {
            let mut ready = printed.events("dev-cluster-ready");
            ready.find_map(|line| line["kubeconfig"].as_str().map(str::to_owned))
        })
        .await?;
    let cluster = Cluster::connect(Kubeconfig::read_from(plugin.folder.join(kubeconfig))?).await?;
    let create = async |name: &str| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        cluster.request("POST", "/api/v1/namespaces/default/configmaps", Some(&object)).await
    };
    let logged = |message: &'static str, name: &'static str| {
        move |printed: &Printed| {
            let mut lines = printed.events("guest-log");
            lines.any(|line| line["message"] == message && line["pairs"]["name"] == name).then_some(())
        }
    };
    create("first").await?;
    host.wait_for("the first object", logged("added", "first")).await?;

    let source = plugin.folder.join("src/lib.rs");
    edit(&source, "\"added\"", "\"seen\"")?;
    host.wait_for("the swap", |printed| {
        printed.events("plugin-loaded").any(|line| line["generation"] == 2).then_some(())
    })
    .await?;
    create("second").await?;
    host.wait_for("the second object", logged("seen", "second")).await?;

    // A build that fails leaves the component, and the plugin runs on.
    edit(&source, "fn start() ->", "fn start( ->")?;
    let error = refused(&plugin.folder, &["plugin", "build"], 1)?;
    assert!(error.contains("src/lib.rs:"), "{error}");
    create("third").await?;
    host.wait_for("the third object", logged("seen", "third")).await?;
    Ok(())
}

#[test]
fn errors_in_sources_are_shown_with_file_and_line() -> anyhow::Result<()> {
    let cases = [
        ("rust", "src/lib.rs", "fn start() ->", "fn start( ->", "src/lib.rs:"),
        (
            "python",
            "plugin.py",
            "def added(event: Added) ->",
            "def added(event: Added ->",
            "plugin.py\", line ",
        ),
        ("ts", "plugin.ts", "onAdd({ object })", "onAdd({ thing })", "plugin.ts("),
        ("js", "plugin.js", "onAdd({ object })", "onAdd({ object )", "plugin.js"),
        (
            "go",
            "main.go",
            "func setup(p *oarlock.Plugin) error",
            "func setup(p *oarlock.Plugin) string",
            "main.go:",
        ),
        ("c", "plugin.c", "oarlock_error on_add(", "oarlock_error on_added(", "plugin.c:"),
    ];
    let mut skipped = vec![];
    for (language, source, from, to, expected) in cases {
        if let Some(lack) = missing(language) {
            skipped.push(format!("{language}: {lack}"));
            continue;
        }
        let plugin = NewPlugin::make(language, "--handler", "v1/configmaps")?;
        edit(&plugin.folder.join(source), from, to)?;
        let error = refused(&plugin.folder, &["plugin", "build"], 1)?;
        assert!(error.contains(expected), "{language}: {expected:?} is not in {error}");
        assert!(plugin.component().is_err(), "{language}: there is a component");
    }
    skip_rest(&skipped);
    Ok(())
}

#[test]
fn mistakes_on_the_command_line_are_explained() -> anyhow::Result<()> {
    let parent = tempfile::tempdir()?;
    let new = |arguments: &[&str]| {
        let arguments = [&["plugin", "new"], arguments].concat();
        refused(parent.path(), &arguments, 2)
    };
    let error = new(&["Web_Watcher", "--lang", "rust"])?;
    assert!(error.contains("such as `web-watcher`"), "{error}");
    let error = new(&["a", "--lang", "ruby"])?;
    assert!(error.contains("possible values: rust, ts, js, python, go, c"), "{error}");
    let error = new(&["a", "--lang", "rust", "--watch", "deployments"])?;
    assert!(error.contains("such as apps/v1/deployments"), "{error}");
    fs::create_dir(parent.path().join("a"))?;
    fs::write(parent.path().join("a/notes"), "mine")?;
    let error = new(&["a", "--lang", "rust"])?;
    assert!(error.contains("a exists already") && error.contains("hint:"), "{error}");
    assert_eq!(fs::read_dir(parent.path().join("a"))?.count(), 1, "nothing was added");

    let error = refused(parent.path(), &["plugin", "build"], 2)?;
    assert!(error.contains("oarlock plugin new --help"), "{error}");
    fs::write(
        parent.path().join("plugin.yaml"),
        "name: a\ncomponent: a.wasm\nserviceAccount: {namespace: default, name: a}\n",
    )?;
    let error = refused(parent.path(), &["plugin", "build"], 2)?;
    assert!(error.contains("no project file") && error.contains("Cargo.toml"), "{error}");

    let plugin = NewPlugin::make("c", "--handler", "v1/configmaps")?;
    edit(&plugin.folder.join("oarlock.toml"), "world =", "wrold =")?;
    let error = refused(&plugin.folder, &["plugin", "build"], 1)?;
    assert!(error.contains("oarlock.toml:2:1: unknown key `wrold`; did you mean `world`?"), "{error}");
    edit(&plugin.folder.join("plugin.yaml"), "component:", "componet:")?;
    let error = refused(&plugin.folder, &["plugin", "build"], 2)?;
    assert!(error.contains("unknown key `componet`; did you mean `component`?"), "{error}");
    assert!(!error.contains("hint:"), "the error says what to change: {error}");
    Ok(())
}

#[test]
fn a_missing_tool_is_named_with_the_command_that_gets_it() -> anyhow::Result<()> {
    let plugin = NewPlugin::make("ts", "--handler", "v1/configmaps")?;
    let without_tools = |arguments: &[&str]| {
        let mut command = Command::new(binary("oarlock")?);
        let output =
            command.current_dir(&plugin.folder).args(arguments).env("PATH", &plugin.folder).output()?;
        anyhow::Ok(output)
    };
    let output = without_tools(&["plugin", "build"])?;
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("plugins in TypeScript need node 20 or newer: it is missing"), "{error}");
    assert!(error.contains("oarlock plugin doctor --lang ts"), "{error}");

    let output = without_tools(&["plugin", "doctor", "--lang", "ts,rust", "--output", "json"])?;
    assert_eq!(output.status.code(), Some(1));
    let listed: Value = serde_json::from_slice(&output.stdout)?;
    let state = |name: &str| {
        let tools = listed["tools"].as_array().into_iter().flatten();
        tools.into_iter().find(|tool| tool["tool"] == name).map(|tool| tool["state"].clone())
    };
    assert_eq!(state("node"), Some("missing".into()), "{listed}");
    assert_eq!(state("rustc"), Some("missing".into()), "{listed}");
    assert!(without_tools(&["plugin", "doctor"])?.status.success(), "without --lang it is a list");
    Ok(())
}
