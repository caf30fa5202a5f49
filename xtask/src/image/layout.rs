//! The OCI image layout: a folder with blobs by their digest, and an index.
//!
//! `index.json` names one image index, as `crane push` wants it. The image index names, for each processor,
//! an image and its bill of materials: an artifact whose subject is the image, so that registries list it
//! as a referrer. Runtimes do not choose it as an image, since its platform is `unknown`.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use oci_spec::image::{
    ANNOTATION_CREATED, ANNOTATION_DESCRIPTION, ANNOTATION_LICENSES, ANNOTATION_REF_NAME,
    ANNOTATION_REVISION, ANNOTATION_TITLE, ANNOTATION_VERSION, Arch, ConfigBuilder, Descriptor,
    DescriptorBuilder, ImageConfigurationBuilder, ImageIndex, ImageIndexBuilder, ImageManifest,
    ImageManifestBuilder, MediaType, Os, Platform, PlatformBuilder, RootFsBuilder, Sha256Digest,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::root::{self, Layer, sha256};
use super::sbom;
use super::source::Source;

/// The version of manifests and indices.
const SCHEMA: u32 = 2;

/// A layout that is written.
pub(super) struct Layout {
    folder: PathBuf,
    /// The descriptors of the image index.
    manifests: Vec<Descriptor>,
}

// === impl Layout ===

impl Layout {
    /// Opens a layout, or makes one. Refuses a folder with other files.
    pub(super) fn open(folder: &Path) -> Result<Self> {
        let layout = Self { folder: folder.to_owned(), manifests: Vec::new() };
        let is_used = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if is_used && !folder.join("oci-layout").is_file() {
            bail!(
                "{} has files and is no image layout. Fix: name another folder with --layout",
                folder.display()
            );
        }
        fs::create_dir_all(layout.blobs()).with_context(|| format!("cannot create {}", folder.display()))?;
        let Ok(index) = fs::read(folder.join("index.json")) else { return Ok(layout) };
        let index: ImageIndex = serde_json::from_slice(&index).context("index.json is no image index")?;
        let mut manifests = Vec::new();
        for descriptor in index.manifests() {
            let image_index = fs::read(layout.blob(descriptor.digest().digest()))?;
            let image_index: ImageIndex = serde_json::from_slice(&image_index)?;
            manifests.extend(image_index.manifests().iter().cloned());
        }
        Ok(Self { manifests, ..layout })
    }

    /// Adds an image and its bill of materials, in place of those for the same processor. Images of another
    /// version or commit go.
    pub(super) fn add(&mut self, source: &Source, layer: &Layer, sbom: &[u8]) -> Result<()> {
        let mut kept = Vec::new();
        for descriptor in std::mem::take(&mut self.manifests) {
            if self.belongs_beside(&descriptor, source)? {
                kept.push(descriptor);
            }
        }
        self.manifests = kept;

        let layer_descriptor = self.write(MediaType::ImageLayerGzip, &layer.bytes)?;
        let config = self.write_json(MediaType::ImageConfig, &configuration(source, layer)?)?;
        let manifest = ImageManifestBuilder::default()
            .schema_version(SCHEMA)
            .media_type(MediaType::ImageManifest)
            .config(config)
            .layers([layer_descriptor])
            .annotations(annotations(source)?)
            .build()?;
        let mut image = self.write_json(MediaType::ImageManifest, &manifest)?;

        let empty = self.write(MediaType::EmptyJSON, b"{}")?;
        let media_type = MediaType::from(sbom::MEDIA_TYPE);
        let document = self.write(media_type.clone(), sbom)?;
        let artifact = ImageManifestBuilder::default()
            .schema_version(SCHEMA)
            .media_type(MediaType::ImageManifest)
            .artifact_type(media_type.clone())
            .config(empty)
            .layers([document])
            .subject(image.clone())
            .annotations(annotations(source)?)
            .build()?;
        let mut artifact = self.write_json(MediaType::ImageManifest, &artifact)?;

        image.set_platform(Some(platform(source.architecture.clone(), Os::Linux)?));
        image.set_annotations(Some(annotations(source)?));
        let unknown = platform(Arch::Other("unknown".to_owned()), Os::Other("unknown".to_owned()))?;
        artifact.set_platform(Some(unknown));
        artifact.set_artifact_type(Some(media_type));
        artifact.set_annotations(Some(annotations(source)?));
        self.manifests.extend([image, artifact]);
        Ok(())
    }

    /// Writes the index, and removes blobs that it does not reach. Returns the digest of the image index.
    pub(super) fn finish(mut self, source: &Source) -> Result<String> {
        self.manifests.sort_by_key(|it| (it.artifact_type().is_some(), it.digest().to_string()));
        let image_index = ImageIndexBuilder::default()
            .schema_version(SCHEMA)
            .media_type(MediaType::ImageIndex)
            .manifests(self.manifests.clone())
            .annotations(annotations(source)?)
            .build()?;
        let mut descriptor = self.write_json(MediaType::ImageIndex, &image_index)?;
        let digest = descriptor.digest().to_string();
        let name = HashMap::from([(ANNOTATION_REF_NAME.to_owned(), source.version.clone())]);
        descriptor.set_annotations(Some(name));
        let index = ImageIndexBuilder::default()
            .schema_version(SCHEMA)
            .media_type(MediaType::ImageIndex)
            .manifests([descriptor])
            .build()?;
        fs::write(self.folder.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#)?;
        fs::write(self.folder.join("index.json"), sorted(&index)?)?;
        self.remove_others(&digest)?;
        Ok(digest)
    }

    /// Returns whether a manifest of an existing layout stays beside the image of `source`.
    fn belongs_beside(&self, descriptor: &Descriptor, source: &Source) -> Result<bool> {
        let annotations = descriptor.annotations().clone().unwrap_or_default();
        let is_of_source = annotations.get(ANNOTATION_VERSION) == Some(&source.version)
            && annotations.get(ANNOTATION_REVISION) == source.revision.as_ref();
        let manifest: ImageManifest =
            serde_json::from_slice(&fs::read(self.blob(descriptor.digest().digest()))?)?;
        // The bill of materials goes with its image.
        let image = match manifest.subject() {
            Some(subject) => self.manifest_of(subject)?,
            None => manifest,
        };
        let configuration: Value =
            serde_json::from_slice(&fs::read(self.blob(image.config().digest().digest()))?)?;
        Ok(is_of_source && configuration["architecture"] != source.architecture.to_string())
    }

    fn manifest_of(&self, descriptor: &Descriptor) -> Result<ImageManifest> {
        Ok(serde_json::from_slice(&fs::read(self.blob(descriptor.digest().digest()))?)?)
    }

    /// Removes all blobs but those that the image index reaches.
    fn remove_others(&self, image_index: &str) -> Result<()> {
        let hex = |descriptor: &Descriptor| descriptor.digest().digest().to_owned();
        let mut reached = BTreeSet::from([image_index.trim_start_matches("sha256:").to_owned()]);
        for descriptor in &self.manifests {
            let manifest = self.manifest_of(descriptor)?;
            reached.extend([hex(descriptor), hex(manifest.config())]);
            reached.extend(manifest.layers().iter().map(hex));
        }
        for entry in fs::read_dir(self.blobs())? {
            let entry = entry?;
            if !reached.contains(&*entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn write_json(&self, media_type: MediaType, value: &impl Serialize) -> Result<Descriptor> {
        self.write(media_type, &sorted(value)?)
    }

    fn write(&self, media_type: MediaType, bytes: &[u8]) -> Result<Descriptor> {
        let digest = sha256(bytes);
        fs::write(self.blob(&digest), bytes)?;
        let digest: Sha256Digest = digest.parse()?;
        Ok(DescriptorBuilder::default()
            .media_type(media_type)
            .digest(digest)
            .size(bytes.len() as u64)
            .build()?)
    }

    fn blobs(&self) -> PathBuf {
        self.folder.join("blobs/sha256")
    }

    fn blob(&self, digest: &str) -> PathBuf {
        self.blobs().join(digest)
    }
}

/// Returns JSON with sorted members. The crate keeps annotations in hash maps, whose order is random.
fn sorted(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut value = json!(value);
    value.sort_all_objects();
    Ok(serde_json::to_vec(&value)?)
}

fn platform(architecture: Arch, os: Os) -> Result<Platform> {
    Ok(PlatformBuilder::default().architecture(architecture).os(os).build()?)
}

fn configuration(source: &Source, layer: &Layer) -> Result<impl Serialize> {
    let user = root::USER;
    let config = ConfigBuilder::default()
        .user(format!("{user}:{user}"))
        .entrypoint([root::PROGRAM.to_owned()])
        .env(["PATH=/usr/bin".to_owned(), "HOME=/home/oarlock".to_owned()])
        .working_dir("/")
        .labels(annotations(source)?)
        .build()?;
    let rootfs =
        RootFsBuilder::default().typ("layers").diff_ids([format!("sha256:{}", layer.diff_id)]).build()?;
    Ok(ImageConfigurationBuilder::default()
        .architecture(source.architecture.clone())
        .os(Os::Linux)
        .created(source.created()?)
        .config(config)
        .rootfs(rootfs)
        .build()?)
}

/// Returns what the image says about itself, with the keys of the image specification.
fn annotations(source: &Source) -> Result<HashMap<String, String>> {
    let Source { version, revision, time: _, architecture: _ } = source;
    let mut annotations = HashMap::from([
        (ANNOTATION_TITLE.to_owned(), "oarlock".to_owned()),
        (
            ANNOTATION_DESCRIPTION.to_owned(),
            "Runs Kubernetes controllers as WebAssembly plugins inside one host".to_owned(),
        ),
        (ANNOTATION_LICENSES.to_owned(), "Apache-2.0".to_owned()),
        (ANNOTATION_VERSION.to_owned(), version.clone()),
        (ANNOTATION_CREATED.to_owned(), source.created()?),
    ]);
    annotations.extend(revision.iter().map(|it| (ANNOTATION_REVISION.to_owned(), it.clone())));
    Ok(annotations)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(version: &str, architecture: Arch) -> Source {
        Source { version: version.to_owned(), revision: Some("c0ffee".to_owned()), time: 1, architecture }
    }

    fn write(folder: &Path, source: &Source, content: &str) -> String {
        let layer = Layer { bytes: content.as_bytes().to_vec(), diff_id: sha256(content.as_bytes()) };
        let mut layout = Layout::open(folder).unwrap();
        layout.add(source, &layer, b"{\"bomFormat\":\"CycloneDX\"}").unwrap();
        layout.finish(source).unwrap()
    }

    fn platforms(folder: &Path, digest: &str) -> Vec<String> {
        let blob = folder.join("blobs").join(digest.replace(':', "/"));
        let index: Value = serde_json::from_slice(&fs::read(blob).unwrap()).unwrap();
        let manifests = index["manifests"].as_array().unwrap().iter();
        let mut platforms: Vec<_> =
            manifests.map(|it| it["platform"]["architecture"].as_str().unwrap().to_owned()).collect();
        platforms.sort();
        platforms
    }

    #[test]
    fn the_index_has_one_image_for_each_processor_and_no_other_blobs() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("layout");
        let (amd, arm) = (source("1.0.0", Arch::Amd64), source("1.0.0", Arch::ARM64));
        let first = write(&folder, &amd, "amd64");
        let both = write(&folder, &arm, "arm64");
        assert_eq!(platforms(&folder, &both), ["amd64", "arm64", "unknown", "unknown"]);
        // The same again, in another order, is the same.
        assert_eq!(write(&folder, &amd, "amd64"), both);
        let n_blobs = || fs::read_dir(folder.join("blobs/sha256")).unwrap().count();
        // An index; for each processor an image, its configuration and layer, an artifact; two shared blobs.
        assert_eq!(n_blobs(), 1 + 2 * 4 + 2);

        let rebuilt = write(&folder, &amd, "amd64, rebuilt");
        assert_eq!(platforms(&folder, &rebuilt).len(), 4);
        assert_eq!(n_blobs(), 11);
        let next = write(&folder, &source("1.1.0", Arch::Amd64), "amd64");
        assert_eq!(platforms(&folder, &next), ["amd64", "unknown"]);
        assert_eq!(n_blobs(), 7);

        let fresh = dir.path().join("fresh");
        assert_eq!(write(&fresh, &amd, "amd64"), first);
    }

    #[test]
    fn a_folder_with_other_files_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("notes"), "").unwrap();
        let error = Layout::open(dir.path()).err().unwrap().to_string();
        assert!(error.contains("is no image layout") && error.contains("--layout"), "{error}");
        assert!(dir.path().join("notes").exists());
    }
}
