//! The last version of each plugin that passed its probation: its component, and the content of its file.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use oarlock_plugin::component::{Digest, MAX_COMPONENT_BYTES};
use serde::{Deserialize, Serialize};

use super::{Error, Quarantine, StateFolder, VersionId, files};
use crate::config::PluginFile;

/// The most plugins that the folder has versions of. The least recently used version is removed first.
const MAX_PLUGINS: usize = 4_096;

/// The most bytes of all components together.
const MAX_TOTAL_BYTES: u64 = 2 << 30;

/// The folder is brought within its limits after so many bytes were added.
pub(super) const CHECK_EVERY: u64 = 128 << 20;

/// What a version counts for beside its component, so that many small ones cause a check, too.
const MANIFEST_COST: u64 = 1 << 20;

/// The longest file about one version: a plugin file, and what the host adds.
const MAX_MANIFEST_BYTES: u64 = 8 << 20;

/// An unfinished file of this age is left over.
const ABANDONED: Duration = Duration::from_secs(3_600);

const GOOD: &str = "good";
const PREVIOUS: &str = "previous";
const CANDIDATE: &str = "candidate";
const CANDIDATE_BEFORE: &str = "candidate-before";

/// A version that can be loaded from the folder.
#[derive(Clone, Debug)]
pub(crate) struct LastGood {
    /// The content of its plugin's file.
    pub(crate) file: PluginFile,
    /// The version that the component states.
    pub(crate) version: String,
    /// The digest of the component.
    pub(crate) digest: Digest,
    /// The component.
    pub(crate) bytes: Vec<u8>,
    /// It passed its probation.
    pub(crate) has_passed: bool,
}

/// The content of a file about one version.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Manifest {
    plugin: String,
    /// The path of the plugin's file, and that of its component.
    path: PathBuf,
    component: PathBuf,
    version: String,
    digest: String,
    bytes: u64,
    file: serde_json::Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config_version: Option<Arc<str>>,
}

/// The folders, and the name of one plugin's files.
struct Place {
    plugins: PathBuf,
    components: PathBuf,
    name: String,
}

// === impl StateFolder ===

impl StateFolder {
    /// Returns whether this version is the last good one.
    pub(crate) fn is_last_good(&self, id: VersionId, file: &PluginFile) -> bool {
        let Some(place) = self.place(&file.name, &file.path) else { return false };
        let path = place.manifest(GOOD);
        let is_it = matches!(read_manifest(&path), Ok(Some((_, kept, digest)))
            if VersionId::of(digest, &kept) == id && place.component(digest).exists());
        if is_it {
            touch(&path);
        }
        is_it
    }

    /// Keeps a version that is on probation. Before [`StateFolder::promote`] only
    /// [`StateFolder::on_probation`] returns it.
    pub(crate) fn stage(
        &self,
        file: &PluginFile,
        version: &str,
        digest: Digest,
        bytes: &[u8],
    ) -> Result<(), Error> {
        let Some(place) = self.place(&file.name, &file.path) else { return Ok(()) };
        files::create_folder(&place.plugins)?;
        files::create_folder(&place.components)?;
        let manifest = Manifest {
            plugin: file.name.clone(),
            path: file.path.clone(),
            component: file.component.clone(),
            version: version.to_owned(),
            digest: digest.to_string(),
            bytes: bytes.len() as u64,
            file: file.to_json(),
            config_version: file.config_version.clone(),
        };
        let path = place.manifest(CANDIDATE);
        let text =
            serde_json::to_string(&manifest).map_err(|error| Error::damaged(&path, error.to_string()))?;
        self.make_room(&place, bytes.len() as u64)?;
        let component = place.component(digest);
        // An existing file may be damaged.
        let is_there = files::read(&component, MAX_COMPONENT_BYTES as u64)
            .is_ok_and(|found| found.is_some_and(|found| found == bytes));
        if !is_there {
            files::write(&component, &[bytes])?;
        }
        // While no version is good, a host that rolls this one back and is restarted needs the one before.
        let is_another =
            || !matches!(read_manifest(&path), Ok(Some((_, kept, of))) if (of, &kept) == (digest, file));
        if !place.manifest(GOOD).exists() && is_another() {
            let _ = fs::rename(&path, place.manifest(CANDIDATE_BEFORE));
        }
        files::write_checked(&path, &text)
    }

    /// Makes the version that was staged last the last good one, if it is this one. The one before is kept,
    /// too, unless it is in quarantine or cannot be read: then the good one before that stays.
    pub(crate) fn promote(
        &self,
        id: VersionId,
        file: &PluginFile,
        quarantine: &Quarantine,
    ) -> Result<(), Error> {
        let Some(place) = self.place(&file.name, &file.path) else { return Ok(()) };
        let [from, to, before] = [CANDIDATE, GOOD, PREVIOUS].map(|extension| place.manifest(extension));
        let id_in = |path: &Path| -> Result<Option<VersionId>, Error> {
            Ok(read_manifest(path)?.map(|(_, kept, digest)| VersionId::of(digest, &kept)))
        };
        let good = id_in(&to).unwrap_or_default();
        if good == Some(id) {
            // Another host with the same folder has done it. The next candidate replaces this one.
            return Ok(());
        }
        if id_in(&from)? != Some(id) {
            return Err(Error::OtherVersion { path: from });
        }
        if good.is_some_and(|good| quarantine.find(good).is_none()) {
            // An operator may go back to it. Without it the new one is still kept.
            let _ = fs::rename(&to, before);
        }
        let renamed = fs::rename(&from, &to).and_then(|()| files::sync_folder_of(&to));
        renamed.map_err(|source| Error::io(&to, "written", source))?;
        // With a good one it is not needed any more.
        let _ = fs::remove_file(place.manifest(CANDIDATE_BEFORE));
        Ok(())
    }

    /// Reads the newest good version of a plugin that may be used. Returns with it why newer ones cannot be
    /// read.
    pub(crate) fn last_good(
        &self,
        plugin: &str,
        file: &Path,
        may_be_used: impl Fn(VersionId) -> bool,
    ) -> (Option<LastGood>, Vec<Error>) {
        let mut errors = Vec::new();
        let Some(place) = self.place(plugin, file) else { return (None, errors) };
        for extension in [GOOD, PREVIOUS] {
            match place.read(plugin, extension, &may_be_used) {
                Ok(None) => {}
                Ok(found) => return (found, errors),
                Err(error) => errors.push(error),
            }
        }
        (None, errors)
    }

    /// Reads the newest version that was on probation and may be used: a host that ends during a probation
    /// has perhaps no good one.
    pub(crate) fn on_probation(
        &self,
        plugin: &str,
        file: &Path,
        may_be_used: impl Fn(VersionId) -> bool,
    ) -> Result<Option<LastGood>, Error> {
        let Some(place) = self.place(plugin, file) else { return Ok(None) };
        match place.read(plugin, CANDIDATE, &may_be_used)? {
            None => place.read(plugin, CANDIDATE_BEFORE, &may_be_used),
            found => Ok(found),
        }
    }

    /// Keeps the folder within its limits, once for each [`CHECK_EVERY`] bytes.
    fn make_room(&self, place: &Place, bytes: u64) -> Result<(), Error> {
        let added = bytes + MANIFEST_COST;
        if self.unchecked.fetch_add(added, Ordering::Relaxed).saturating_add(added) < CHECK_EVERY {
            return Ok(());
        }
        place.make_room(MAX_TOTAL_BYTES - CHECK_EVERY)?;
        self.unchecked.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn place(&self, plugin: &str, file: &Path) -> Option<Place> {
        let folder = self.folder.as_ref()?.join("last-good");
        let (plugins, components) = (folder.join("plugins"), folder.join("components"));
        Some(Place { plugins, components, name: Self::name_of(plugin, file) })
    }
}

fn read_manifest(path: &Path) -> Result<Option<(Manifest, PluginFile, Digest)>, Error> {
    let Some(text) = files::read_checked(path, MAX_MANIFEST_BYTES)? else { return Ok(None) };
    let manifest: Manifest =
        serde_json::from_str(&text).map_err(|error| Error::damaged(path, error.to_string()))?;
    let file = PluginFile::from_json(&manifest.path, &manifest.component, &manifest.file)
        .map_err(|error| Error::damaged(path, error.detail()))?;
    let file = PluginFile { config_version: manifest.config_version.clone(), ..file };
    let digest = manifest.digest.parse().map_err(|()| Error::damaged(path, "its digest is malformed"))?;
    Ok(Some((manifest, file, digest)))
}

/// Notes that a version is in use, so that others are removed first. Without this note it may be removed.
fn touch(path: &Path) {
    let _ = File::open(path).and_then(|file| file.set_modified(SystemTime::now()));
}

// === impl Place ===

impl Place {
    fn manifest(&self, extension: &str) -> PathBuf {
        self.plugins.join(format!("{}.{extension}", self.name))
    }

    fn component(&self, digest: Digest) -> PathBuf {
        self.components.join(format!("{digest}.wasm"))
    }

    fn read(
        &self,
        plugin: &str,
        extension: &str,
        may_be_used: impl Fn(VersionId) -> bool,
    ) -> Result<Option<LastGood>, Error> {
        let path = self.manifest(extension);
        let Some((Manifest { plugin: of, path: of_file, version, .. }, file, digest)) = read_manifest(&path)?
        else {
            return Ok(None);
        };
        if !may_be_used(VersionId::of(digest, &file)) {
            return Ok(None);
        }
        if of != plugin {
            return Err(Error::damaged(
                &path,
                format!("it is about the plugin {of} of {}", of_file.display()),
            ));
        }
        let component = self.component(digest);
        let bytes = files::read(&component, MAX_COMPONENT_BYTES as u64)?
            .ok_or_else(|| Error::damaged(&path, "its component is missing"))?;
        if Digest::of(&bytes) != digest {
            return Err(Error::damaged(&component, "it is damaged"));
        }
        touch(&path);
        Ok(Some(LastGood { file, version, digest, bytes, has_passed: [GOOD, PREVIOUS].contains(&extension) }))
    }

    /// Removes the least recently used versions of other plugins until the rest is within the limits, and
    /// components that no version has any more.
    fn make_room(&self, max_bytes: u64) -> Result<(), Error> {
        let mut manifests = Vec::new();
        let entries = |folder: &Path| -> Result<Vec<fs::DirEntry>, Error> {
            let read = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
            read.map_err(|source| Error::io(folder, "read", source))
        };
        for entry in entries(&self.plugins)? {
            let path = entry.path();
            let used = entry.metadata().and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            if is_left_over(&path, used) {
                let _ = fs::remove_file(&path);
                continue;
            }
            let is_own = path.file_stem().is_some_and(|stem| stem.to_str() == Some(self.name.as_str()));
            // A file that cannot be used has no component, and is removed in its turn.
            let (digest, size) = match read_manifest(&path) {
                Ok(Some((manifest, _, digest))) => (Some(digest), manifest.bytes),
                _ => (None, 0),
            };
            manifests.push((is_own, used, path, digest, size));
        }
        // The own ones last.
        manifests.sort_by_key(|it| (it.0, it.1));
        let mut left = manifests.len();
        // Shared components count for each plugin: the sum is an upper bound.
        let mut total = manifests.iter().map(|it| it.4).sum::<u64>();
        for (is_own, _, path, _, size) in &manifests {
            if *is_own || (left <= MAX_PLUGINS && total <= max_bytes) {
                break;
            }
            let _ = fs::remove_file(path);
            left -= 1;
            total -= size;
        }
        let first_kept = manifests.len() - left;
        let used: BTreeSet<_> =
            manifests[first_kept..].iter().filter_map(|it| it.3.as_ref().map(ToString::to_string)).collect();
        for entry in entries(&self.components)? {
            let path = entry.path();
            let age = entry.metadata().and_then(|it| it.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
            let is_used = path.file_stem().is_some_and(|it| it.to_str().is_some_and(|it| used.contains(it)));
            // Another task or host may have written it, and not yet the file about it.
            let is_new = age.elapsed().map_or(true, |age| age < Duration::from_secs(60));
            if is_left_over(&path, age)
                || (!is_used && !is_new && path.extension().is_some_and(|it| it == "wasm"))
            {
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }
}

fn is_left_over(path: &Path, modified: SystemTime) -> bool {
    path.extension().is_some_and(|it| it == "part") && modified.elapsed().is_ok_and(|age| age > ABANDONED)
}

#[cfg(test)]
impl StateFolder {
    pub(super) fn place_for_test(&self, plugin: &str) -> PathBuf {
        self.place(plugin, Path::new("plugins/p.yaml")).unwrap().manifest(GOOD)
    }

    pub(super) fn make_room_for_test(&self, plugin: &str, max_bytes: u64) {
        self.place(plugin, Path::new("plugins/p.yaml")).unwrap().make_room(max_bytes).unwrap();
    }
}
