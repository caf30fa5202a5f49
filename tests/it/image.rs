//! The container image: its layout is complete and reproducible, a registry takes it, and its binary runs on
//! its root alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, ensure};
use oarlock_tests::host_process::{binary, checkout};
use oarlock_tests::tool::{self, output};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::command::written;

#[test]
fn two_packings_of_one_binary_are_equal_and_every_blob_has_its_digest() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let layouts = ["one", "two"].map(|name| dir.path().join(name));
    for layout in &layouts {
        build(layout)?;
    }
    let files = layouts.iter().map(|layout| digests(layout)).collect::<Result<Vec<_>, _>>()?;
    assert_eq!(files[0], files[1]);
    let blobs =
        files[0].iter().filter_map(|(path, digest)| Some((path.strip_prefix("blobs/sha256/")?, digest)));
    let blobs: Vec<_> = blobs.collect();
    assert_eq!(blobs.len(), 7, "{blobs:?}");
    assert!(blobs.iter().all(|(name, digest)| name == digest), "{blobs:?}");

    let image = Image::read(&layouts[0])?;
    let (config, labels) = (&image.config["config"], &image.config["config"]["Labels"]);
    assert_eq!(config["User"], "65532:65532");
    assert_eq!(config["Entrypoint"], serde_json::json!(["/usr/bin/oarlock"]));
    assert_eq!(labels["org.opencontainers.image.version"], env!("CARGO_PKG_VERSION"));
    let diff_id = format!("sha256:{}", hex(&Sha256::digest(output_of_gzip(&image.layer)?)));
    assert_eq!(image.config["rootfs"]["diff_ids"], serde_json::json!([diff_id]));

    // The bill of materials is about the image, and names the crates of the binary and libraries.
    assert_eq!(image.sbom["bomFormat"], "CycloneDX");
    assert_eq!(image.sbom["metadata"]["component"]["name"], "oarlock");
    let components = image.sbom["components"].as_array().context("components is a list")?;
    let has = |kind: &str, name: &str| {
        let is_it =
            |it: &&Value| it["type"] == kind && it["name"].as_str().is_some_and(|it| it.contains(name));
        components.iter().any(|it| is_it(&it))
    };
    assert!(has("library", "wasmtime") && has("library", "kube") && has("file", "libc.so"));
    assert!(!has("library", "insta") && !has("library", "proptest"), "crates of tests are not in the binary");
    Ok(())
}

#[test]
fn a_registry_takes_the_image_and_its_binary_runs_on_its_root_alone() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let layout = dir.path().join("layout");
    build(&layout)?;
    let crane = tool::path("crane")?;
    let registry = Registry::start(&crane)?;
    let reference = format!("{}/oarlock:{}", registry.address, env!("CARGO_PKG_VERSION"));
    output(Command::new(&crane).arg("push").arg(&layout).arg(&reference))?;
    output(Command::new(&crane).args(["validate", "--remote", &reference]))?;
    let digest = output(Command::new(&crane).args(["digest", &reference]))?;
    let image = Image::read(&layout)?;
    assert_eq!(digest.trim(), image.digest);

    let archive = dir.path().join("root.tar");
    let platform = format!("linux/{}", image.config["architecture"].as_str().unwrap_or_default());
    output(Command::new(&crane).args(["export", "--platform", &platform, &reference]).arg(&archive))?;
    let root = dir.path().join("root");
    fs::create_dir(&root)?;
    output(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&root))?;
    let certificates = fs::read_to_string(root.join("etc/ssl/certs/ca-certificates.crt"))?;
    assert!(certificates.matches("BEGIN CERTIFICATE").count() > 100);
    let mut run = Command::new("chroot");
    run.args(["--userspec=65532:65532"]).arg(&root).env_clear();
    let run = run.args(["/usr/bin/oarlock", "--version"]).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let printed = run.output().context("cannot run chroot")?;
    let errors = String::from_utf8_lossy(&printed.stderr);
    if errors.contains("chroot: cannot change root directory") {
        oarlock_built_guests::skip("in part: only root may run a program on another root");
    }
    ensure!(printed.status.success(), "{errors}");
    assert_eq!(String::from_utf8(printed.stdout)?, written(checkout(), &["--version"])?);
    Ok(())
}

/// An image as it is in a layout.
struct Image {
    /// The digest of the image index.
    digest: String,
    config: Value,
    layer: PathBuf,
    sbom: Value,
}

/// A registry on loopback. It ends when it is dropped.
struct Registry {
    process: Child,
    address: String,
}

// === impl Image ===

impl Image {
    fn read(layout: &Path) -> anyhow::Result<Self> {
        let blob = |descriptor: &Value| -> anyhow::Result<PathBuf> {
            let digest = descriptor["digest"].as_str().context("a descriptor has a digest")?;
            Ok(layout.join("blobs").join(digest.replace(':', "/")))
        };
        let json = |path: PathBuf| -> anyhow::Result<Value> { Ok(serde_json::from_slice(&fs::read(path)?)?) };
        let index = json(layout.join("index.json"))?;
        let digest = index["manifests"][0]["digest"].as_str().context("the index names an image index")?;
        let image_index = json(blob(&index["manifests"][0])?)?;
        let [image, artifact] = [0, 1].map(|n| &image_index["manifests"][n]);
        ensure!(image["platform"]["os"] == "linux" && artifact["platform"]["os"] == "unknown");
        let (manifest, artifact) = (json(blob(image)?)?, json(blob(artifact)?)?);
        ensure!(artifact["subject"]["digest"] == image["digest"], "the artifact is about the image");
        Ok(Self {
            digest: digest.to_owned(),
            config: json(blob(&manifest["config"])?)?,
            layer: blob(&manifest["layers"][0])?,
            sbom: json(blob(&artifact["layers"][0])?)?,
        })
    }
}

// === impl Registry ===

impl Registry {
    fn start(crane: &Path) -> anyhow::Result<Self> {
        let mut serve = Command::new(crane);
        serve.args(["registry", "serve", "--address", "127.0.0.1:0"]);
        let mut process = serve.stdin(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let stderr = process.stderr.take().context("stderr is piped")?;
        // Its first line is `… serving on port 40123`; it is read on, so that the registry can write.
        let mut lines = BufReader::new(stderr).lines();
        let line = lines.next().context("the registry ended")??;
        std::thread::spawn(move || lines.for_each(drop));
        let port: u16 = line.rsplit(' ').next().unwrap_or_default().parse().context(line.clone())?;
        Ok(Self { process, address: format!("127.0.0.1:{port}") })
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Builds the image of the binary that is tested.
fn build(layout: &Path) -> anyhow::Result<()> {
    let mut xtask = Command::new(env!("CARGO"));
    xtask.args(["xtask", "image", "--profile", "dev", "--binary"]);
    xtask.arg(binary("oarlock")?).arg("--layout").arg(layout).current_dir(checkout());
    output(&mut xtask).map(drop)
}

/// Returns the digest of each file below a folder.
fn digests(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut digests = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder)?.display().to_string();
                digests.insert(name, hex(&Sha256::digest(fs::read(&path)?)));
            }
        }
    }
    Ok(digests)
}

fn output_of_gzip(file: &Path) -> anyhow::Result<Vec<u8>> {
    let output = Command::new("gzip").args(["-dc"]).stdin(fs::File::open(file)?).output()?;
    ensure!(output.status.success(), "gzip: {}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
