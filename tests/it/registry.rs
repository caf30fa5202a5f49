//! A real registry on loopback: what `oarlock plugin push` writes, and what other tools write.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use oarlock_built_guests::component;
use oarlock_tests::tool;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::command::{refused, written};

/// `crane registry serve`, which ends with this value.
pub(crate) struct Registry {
    crane: PathBuf,
    process: Child,
    pub(crate) address: String,
}

impl Registry {
    /// Starts a registry with its content in memory. Skips the test if Go is missing.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let crane = tool::path("crane")?;
        let mut process = Command::new(&crane)
            .args(["registry", "serve", "--address", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run crane")?;
        let stderr = process.stderr.take().context("crane has no standard error")?;
        let mut registry = Self { crane, process, address: String::new() };
        let mut stderr = BufReader::new(stderr);
        let mut line = String::new();
        stderr.read_line(&mut line)?;
        let port = line.trim_end().rsplit(' ').next().and_then(|port| port.parse::<u16>().ok());
        registry.address = format!("127.0.0.1:{}", port.with_context(|| format!("crane printed {line:?}"))?);
        // It logs each request, and would wait for a reader.
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        Ok(registry)
    }

    /// Pushes a container image, as a hurried person does. Returns its reference with its digest.
    pub(crate) fn push_image(&self, folder: &Path, reference: &str) -> anyhow::Result<String> {
        let layer = folder.join("layer.tar");
        // The end of an archive, and so an empty one.
        fs::write(&layer, [0; 1024])?;
        let layer = layer.display().to_string();
        self.crane(&["append", "--oci-empty-base", "--new_layer", &layer, "--new_tag", reference])
    }

    fn crane(&self, arguments: &[&str]) -> anyhow::Result<String> {
        tool::output(Command::new(&self.crane).args(arguments))
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn digest(bytes: &[u8]) -> String {
    let digits: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

fn inspected(folder: &Path, what: &str) -> anyhow::Result<Value> {
    Ok(serde_json::from_str(&written(folder, &["plugin", "inspect", what])?)?)
}

#[test]
fn a_pushed_component_is_read_back_and_has_the_layout_of_the_guidance() -> anyhow::Result<()> {
    let component = component("mirror");
    let registry = Registry::start()?;
    let folder = tempfile::tempdir()?;
    let reference = format!("{}/team-a/mirror:1.0", registry.address);
    let path = component.display().to_string();
    let push = || written(folder.path(), &["plugin", "push", &reference, &path]);
    let pushed = push()?.trim_end().to_owned();
    ensure!(pushed == push()?.trim_end(), "the same component has the same digest");
    let manifest_digest = pushed.strip_prefix(&format!("{reference}@")).context(pushed.clone())?;

    let manifest = registry.crane(&["manifest", &reference])?;
    assert_eq!(digest(manifest.trim_end_matches('\n').as_bytes()), manifest_digest);
    let manifest: Value = serde_json::from_str(&manifest)?;
    let bytes = fs::read(&component)?;
    assert_eq!(
        manifest["layers"],
        json!([{ "mediaType": "application/wasm", "digest": digest(&bytes), "size": bytes.len() }])
    );
    assert_eq!(manifest["config"]["mediaType"], "application/vnd.wasm.config.v0+json");
    assert_eq!(manifest["annotations"]["org.opencontainers.image.title"], "mirror");
    let config: Value = serde_json::from_str(&registry.crane(&["config", &reference])?)?;
    assert_eq!((&config["os"], &config["architecture"]), (&json!("wasip2"), &json!("wasm")));
    assert_eq!(config["created"], "1970-01-01T00:00:00Z");
    assert_eq!(config["layerDigests"], json!([digest(&bytes)]));
    registry.crane(&["validate", "--fast", "--remote", &reference])?;

    let local = inspected(folder.path(), &path)?;
    for name in [reference.clone(), pushed] {
        let remote = inspected(folder.path(), &format!("oci://{name}"))?;
        assert_eq!(remote["digest"], local["digest"]);
        assert_eq!(remote["imports"], local["imports"]);
    }
    let checked = written(folder.path(), &["plugin", "check", &format!("oci://{reference}")])?;
    ensure!(checked.contains(&format!("oci://{reference}")), "{checked}");

    let absent = format!("oci://{}/team-a/mirror:2.0", registry.address);
    let refusal = refused(folder.path(), &["plugin", "inspect", &absent], 1)?;
    ensure!(refusal.contains("/team-a/mirror:2.0 does not exist (404 Not Found)"), "{refusal}");
    ensure!(refusal.contains("hint:  push it, or correct the source"), "{refusal}");
    Ok(())
}

#[test]
fn what_is_no_plugin_is_not_pushed() -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("a.wasm"), b"\0asm\x01\0\0\0")?;
    let push = |reference: &str, code| refused(folder.path(), &["plugin", "push", reference, "a.wasm"], code);
    let module = push("localhost:1/a:1", 2)?;
    ensure!(module.contains("a core WebAssembly module, not a component"), "{module}");
    let reference = push("mirror:1", 2)?;
    ensure!(reference.contains(r#"reference "mirror:1" names no registry"#), "{reference}");
    Ok(())
}

#[test]
fn a_container_image_is_refused_by_name() -> anyhow::Result<()> {
    let registry = Registry::start()?;
    let folder = tempfile::tempdir()?;
    let reference = format!("{}/image:1", registry.address);
    registry.push_image(folder.path(), &reference)?;
    let refusal = refused(folder.path(), &["plugin", "inspect", &format!("oci://{reference}")], 2)?;
    ensure!(refusal.contains("the artifact has no layer application/wasm"), "{refusal}");
    ensure!(refusal.contains("a container image is no component"), "{refusal}");
    Ok(())
}
