//! Bad input gets an error that says what to do, and the host keeps running.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Output;

use kube::config::Kubeconfig;
use oarlock_built_guests::component;
use oarlock_dev_cluster::{Config, DevCluster};
use oarlock_tests::cluster::Cluster;
use oarlock_tests::host_process::{HostProcess, binary};
use oarlock_tests::wait::wait_until;
use serde_json::{Value, json};
use tokio::process::Command;

async fn embedded() -> anyhow::Result<(DevCluster, Cluster)> {
    let server = DevCluster::start(Config::default()).await?;
    let cluster = Cluster::connect(Kubeconfig::from_yaml(&server.kubeconfig())?).await?;
    Ok((server, cluster))
}

/// Writes a plugin file for a component, with more lines of YAML.
fn plugin(folder: &Path, name: &str, component: &Path, more: &str) -> std::io::Result<PathBuf> {
    let file = folder.join(format!("{name}.yaml"));
    let component = component.display();
    let account = "serviceAccount: {namespace: default, name: census}";
    std::fs::write(&file, format!("name: {name}\ncomponent: {component}\n{account}\n{more}"))?;
    Ok(file)
}

/// Returns the message of the host about a plugin that it refuses, or cannot run yet.
async fn refusal(host: &mut HostProcess, plugin: &str) -> anyhow::Result<String> {
    host.wait_for(&format!("the refusal of {plugin}"), |printed| {
        let file = format!("{plugin}.yaml");
        let about = |line: &&Value| {
            line["plugin"] == plugin || line["file"].as_str().is_some_and(|path| path.ends_with(&file))
        };
        let mut lines = printed.events("plugin-refused").chain(printed.events("plugin-waiting"));
        lines.find(about).map(ToString::to_string)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_plugins_are_refused_by_name_and_the_others_run() -> anyhow::Result<()> {
    let (_server, cluster) = embedded().await?;
    let folder = cluster.path("plugins");
    std::fs::create_dir(&folder)?;
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).map(|()| path)
    };
    let whole = std::fs::read(component("hello-c"))?;
    let files = [
        ("not-wasm", write("not-wasm.wasm", b"#!/bin/sh\necho hello\n")?, "", "not-wasm"),
        ("core-module", write("core-module.wasm", b"\0asm\x01\0\0\0")?, "", "core"),
        ("other-world", write("other-world.wasm", b"\0asm\x0d\0\x01\0")?, "", "lacks `metadata`"),
        ("truncated", write("truncated.wasm", &whole[..whole.len() / 2])?, "", "truncated"),
        ("nowhere", folder.join("nowhere.wasm"), "", "nowhere.wasm"),
        ("unknown-key", component("census"), "serviceAcount: {}\n", "serviceAcount"),
        ("no-account", component("census"), "", "oarlock rbac"),
        ("bad-limit", component("census"), "limits: {memory: much}\n", "memory"),
    ];
    for (name, component, more, _) in &files {
        let file = plugin(&folder, name, component, more)?;
        if *name == "no-account" {
            let text = std::fs::read_to_string(&file)?.replace("name: census}", "name: absent}");
            std::fs::write(&file, text)?;
        }
    }
    let good = plugin(&folder, "good", &component("census"), "config: {resource: {plural: configmaps}}\n")?;
    let kubeconfig = cluster.provision(&[good]).await?;
    let mut host = cluster.run(&kubeconfig, &[folder])?;
    for (name, _, _, expected) in files {
        let refusal = refusal(&mut host, name).await?;
        assert!(refusal.contains(expected), "{name}: {refusal:?} does not contain {expected:?}");
    }
    let object = json!({"metadata": {"name": "works"}});
    cluster.request("POST", "/api/v1/namespaces/default/configmaps", Some(&object)).await?;
    host.wait_for("a notification of the good plugin", |printed| {
        let received = printed.received().into_iter();
        received.filter(|it| it.plugin == "good").find(|it| it.key == "default/works")
    })
    .await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_does_not_exist_yet_is_reported_and_watched_when_it_appears() -> anyhow::Result<()> {
    let (_server, cluster) = embedded().await?;
    let config = "config: {resource: {group: harbour.example.com, version: v1, plural: boats}}\n";
    let folder = cluster.path("plugins");
    std::fs::create_dir(&folder)?;
    let boats = plugin(&folder, "boats", &component("census"), config)?;
    let kubeconfig = cluster.provision(&[boats]).await?;
    let mut host = cluster.run(&kubeconfig, &[folder])?;
    host.wait_for("the report that the resource is absent", |printed| {
        printed.events("resource-absent").find(|line| line.to_string().contains("boats")).map(|_| ())
    })
    .await?;
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.harbour.example.com"},
        "spec": {
            "group": "harbour.example.com",
            "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    cluster.request("POST", definitions, Some(&definition)).await?;
    let boat = json!({"apiVersion": "harbour.example.com/v1", "kind": "Boat", "metadata": {"name": "skiff"}});
    let boats = "/apis/harbour.example.com/v1/namespaces/default/boats";
    let create = async || cluster.request("POST", boats, Some(&boat)).await;
    wait_until("the API server serves boats", create).await?;
    host.wait_for("a notification of the boat", |printed| {
        printed.received().into_iter().find(|received| received.key == "default/skiff")
    })
    .await?;
    Ok(())
}

/// Runs `oarlock` to its end and returns its output, and its standard error as text.
async fn oarlock(arguments: &[&str]) -> anyhow::Result<(Output, String)> {
    let output = Command::new(binary("oarlock")?).args(arguments).env_remove("KUBECONFIG").output().await?;
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output, error))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_that_is_missing_malformed_or_refused_is_reported() -> anyhow::Result<()> {
    let (_server, cluster) = embedded().await?;
    let folder = cluster.path("plugins");
    std::fs::create_dir(&folder)?;
    let folder = folder.display().to_string();
    let missing = cluster.path("missing").display().to_string();
    let malformed = cluster.path("malformed");
    std::fs::write(&malformed, "clusters: [")?;
    let wrong_token = cluster.kubeconfig_for("default", "default").await?;
    let text = std::fs::read_to_string(&wrong_token)?;
    let token = serde_json::from_str::<Value>(&text)?["users"][0]["user"]["token"].to_string();
    std::fs::write(&wrong_token, text.replace(&token, "\"wrong\""))?;
    for (kubeconfig, expected) in [
        (missing.clone(), missing.as_str()),
        (malformed.display().to_string(), "malformed"),
        (wrong_token.display().to_string(), "401"),
    ] {
        let (output, error) = oarlock(&["run", "--kubeconfig", &kubeconfig, "--plugins", &folder]).await?;
        assert!(!output.status.success(), "{kubeconfig}");
        assert!(error.contains(expected), "{error:?} does not contain {expected:?}");
        assert!(!error.contains("stack backtrace"), "{error}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_reported() -> anyhow::Result<()> {
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port().to_string();
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig").display().to_string();
    let (output, error) = oarlock(&["dev", "--port", &port, "--kubeconfig", &kubeconfig]).await?;
    assert!(!output.status.success() && error.contains("in use") && error.contains(&port), "{error}");
    let address = format!("127.0.0.1:{port}");
    let (output, error) = oarlock(&["dev", "--admin-addr", &address, "--kubeconfig", &kubeconfig]).await?;
    assert!(
        !output.status.success() && error.contains("another process listens") && error.contains(&port),
        "{error}"
    );
    Ok(())
}
