//! Loads, reloads and unloads plugins while the host runs, as their files change (promise 6).
//!
//! The host reads the files whenever they may have changed. It [prepares] a new or changed plugin (its file,
//! or its component) beside the version that serves, and switches when the new version is ready. A version
//! that fails is reported and never serves; one that loses too many instances after the switch is
//! [switched back](roll_out). A plugin whose file cannot be read any more keeps running as it was; a plugin
//! whose file is [gone](absent_files) is unloaded.
//!
//! [prepares]: prepare

mod absent_files;
mod file_errors;
mod file_watch;
mod guest_lines;
mod load;
mod plugin_slot;
mod prepare;
mod roll_out;
mod rollback;
mod rolled_back;
mod seen_files;
mod suspended;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use oarlock_plugin::{Engine, Interception};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::absent_files::AbsentFiles;
use self::file_watch::{FileWatch, Woken, folders};
use self::plugin_slot::PluginSlot;
use self::roll_out::RollOut;
pub(crate) use self::rollback::{Request, Rollback, rollbacks};
pub(crate) use self::rollback::{RollbackError, RolledBack};
use self::seen_files::SeenFiles;
use self::suspended::Suspended;
use crate::access::Gate;
use crate::config::{self, Circumstances, Loaded, PluginFile};
use crate::discovery::Discovery;
use crate::dispatch::DispatcherShared;
use crate::health::Health;
use crate::identity::Identities;
use crate::informers::{Informers, Prunings};
use crate::metrics::Metrics;
use crate::plugin_resource::{Definitions, GoodVersions, Snapshot, is_of_object};
use crate::provision::Provision;
use crate::recordings::Recordings;
use crate::regular_file::Stamp;
use crate::report::{HostEvent, Reporter};
use crate::shadow::{self, Shadows};
use crate::state_folder::StateFolder;
use crate::status::StatusRegistry;
use crate::tasks::{Task, Tasks};

/// How long after a panic in a plugin's task the host loads the plugin again.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// How long the host collects changes of Plugin objects before it applies them.
const COLLECT: Duration = Duration::from_millis(50);

/// Where the operating system notifies of changes, the host looks at the files at one of so many polls.
const POLLS_PER_LOOK: u32 = 5;

/// The parts of the host that a plugin is made with. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) tasks: Tasks,
    pub(crate) reporter: Reporter,
    pub(crate) engine: Engine,
    pub(crate) client: kube::Client,
    pub(crate) gate: Arc<Gate>,
    pub(crate) identities: Identities,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) informers: Informers,
    pub(crate) prunings: Prunings,
    pub(crate) metrics: Metrics,
    pub(crate) statuses: StatusRegistry,
    pub(crate) provision: Option<Arc<dyn Provision>>,
    pub(crate) record: Option<Arc<Recordings>>,
    pub(crate) interception: Option<Interception>,
    pub(crate) shadows: Shadows,
    pub(crate) dispatch: DispatcherShared,
    pub(crate) state: StateFolder,
    /// What Plugin objects define, and which versions their statuses name.
    pub(crate) definitions: Definitions,
    pub(crate) good_versions: GoodVersions,
}

/// Keeps the loaded plugins equal to what the files say.
pub(crate) struct Reload {
    host: Arc<Host>,
    health: Health,
    sources: Vec<PathBuf>,
    /// The plugins that Plugin objects define.
    defined: watch::Receiver<Snapshot>,
    plugins: BTreeMap<Arc<str>, Plugin>,
    suspended: Suspended,
    absent_files: AbsentFiles,
    /// The last message about each bad file.
    reported: BTreeMap<PathBuf, String>,
    has_read_files: bool,
    requests: mpsc::Receiver<Request>,
    /// Notified when a plugin's task panicked.
    panicked: Arc<Notify>,
}

/// The result of reading the files once.
struct ReadFiles {
    loaded: Loaded,
    /// The stamps of the components.
    stamps: BTreeMap<PathBuf, Stamp>,
    /// The folders in which a relevant file may change.
    folders: BTreeSet<PathBuf>,
}

/// One plugin that has a file.
struct Plugin {
    slot: Arc<PluginSlot>,
    /// The file and the component's stamp of the newest version, whether it came to serve or not.
    newest: (Arc<PluginFile>, Option<Stamp>),
    preparing: Mutex<Task>,
    dispatcher: Task,
    /// When its dispatcher panicked.
    panicked_at: Arc<Mutex<Option<Instant>>>,
}

/// Why plugins are unloaded.
pub(crate) const SHADOW_GONE: &str = "its plugin was unloaded, or has no shadow any more";
pub(crate) const FILE_GONE: &str = "its file was removed, or names another plugin";
pub(crate) const OBJECT_GONE: &str = "its object was removed, names another account, or may not be run any more. \
                                      The conditions of an object that exists say why";

// === impl Reload ===

impl Reload {
    /// Creates the reload of the plugins in these files and folders.
    pub(crate) fn new(
        host: Arc<Host>,
        health: Health,
        sources: Vec<PathBuf>,
        requests: mpsc::Receiver<Request>,
    ) -> Self {
        Self {
            defined: host.definitions.subscribe(),
            host,
            health,
            sources,
            plugins: BTreeMap::new(),
            suspended: Suspended::default(),
            absent_files: AbsentFiles::default(),
            reported: BTreeMap::new(),
            has_read_files: false,
            requests,
            panicked: Arc::default(),
        }
    }

    /// Follows the files until the token is cancelled.
    pub(crate) async fn run(mut self, token: CancellationToken) {
        let mut requests = std::mem::replace(&mut self.requests, mpsc::channel(1).1);
        let mut watch = FileWatch::new(&self.host.reporter);
        let mut defined = self.defined.clone();
        loop {
            // A file system that does not answer must not delay the host's end.
            let read = tokio::select! {
                biased;
                () = token.cancelled() => return,
                read = self.read_files() => read,
            };
            let Some((ReadFiles { loaded, stamps, folders }, seen)) = read else { return };
            watch.set(folders);
            let unreadable = loaded.errors.iter().filter(|error| self.is_unreadable_source(error));
            let unreadable = unreadable.map(ToString::to_string).collect();
            self.apply(loaded, &stamps);
            self.health.plugin_files_read(unreadable);
            let mut again_at = self.absent_files.next_look();
            // It may have taken the notification of a change, so the same one is polled until the files are
            // read.
            let mut changed = pin!(self.changed(&watch, &seen));
            loop {
                tokio::select! {
                    biased;
                    () = token.cancelled() => return,
                    () = &mut changed => break,
                    // The sender lives as long as the host.
                    Ok(()) = defined.changed() => {
                        // Many objects change at once: at the start, or with `kubectl apply -f FOLDER`.
                        tokio::time::sleep(COLLECT).await;
                        defined.mark_unchanged();
                        break;
                    }
                    Some(request) = requests.recv() => if self.handle(request).await { break },
                    () = self.panicked.notified() => {
                        let after_panic = Instant::now() + AFTER_PANIC;
                        again_at = Some(again_at.map_or(after_panic, |it| it.min(after_panic)));
                    }
                    () = at(again_at) => break,
                }
            }
        }
    }

    /// Waits until the files must be read again.
    async fn changed(&self, watch: &FileWatch, seen: &Arc<SeenFiles>) {
        let polls_per_look = if watch.notifies() { POLLS_PER_LOOK } else { 1 };
        for n_polls in 1_u32.. {
            let has_waiting = || {
                let mut plugins = self.plugins.values();
                plugins.any(|it| it.slot.load_again.load(Ordering::Acquire) || it.dispatcher.is_gone())
            };
            match watch.changed().await {
                Woken::Polled if !seen.is_outdated() && !has_waiting() => {
                    if !n_polls.is_multiple_of(polls_per_look) {
                        continue;
                    }
                    let seen = seen.clone();
                    if self.host.tasks.blocking(move || seen.is_unchanged()).await != Some(true) {
                        return;
                    }
                }
                Woken::Polled | Woken::Notified => return,
            }
        }
    }

    async fn read_files(&self) -> Option<(ReadFiles, Arc<SeenFiles>)> {
        let sources = self.sources.clone();
        let definitions = self.defined.borrow().clone();
        let provision = self.host.provision.clone();
        let owner = |(name, plugin): (&Arc<str>, &Plugin)| (name.to_string(), plugin.newest.0.path.clone());
        let owners = self.plugins.iter().map(owner).collect();
        let read = move || {
            let account_of = |name: &str| provision.as_ref()?.account_of(name);
            let circumstances = Circumstances { owners: Some(&owners), account_of: Some(&account_of) };
            let mut loaded = config::load_paths_under(&sources, circumstances);
            loaded.add(&definitions, &owners);
            let shadows: Vec<_> = loaded.files.iter_mut().filter_map(shadow::split_off).collect();
            loaded.files.extend(shadows);
            let components = loaded.files.iter().map(|file| file.component.clone());
            let stamps = components.filter_map(|path| Stamp::of(&path).map(|stamp| (path, stamp))).collect();
            let folders = folders(&sources, &loaded);
            let read = ReadFiles { loaded, stamps, folders };
            let seen = Arc::new(SeenFiles::of(&sources, &read));
            (read, seen)
        };
        self.host.tasks.blocking(read).await
    }

    /// Unloads plugins whose files are gone, and loads new and changed ones.
    fn apply(&mut self, loaded: Loaded, stamps: &BTreeMap<PathBuf, Stamp>) {
        let Loaded { files, errors } = loaded;
        // The plugins of an empty folder are gone; nothing is known about those of a folder that cannot be
        // read.
        let is_unreadable = |path: &Path| {
            let mut unreadable =
                errors.iter().filter(|error| !matches!(error, config::Error::EmptyFolder { .. }));
            unreadable.any(|error| path.starts_with(error.path()))
        };
        let named: BTreeMap<&str, &Path> =
            files.iter().map(|it| (it.name.as_str(), it.path.as_path())).collect();
        let is_gone = |(name, plugin): &(&Arc<str>, &Plugin)| {
            let path = &plugin.newest.0.path;
            match named.get(&***name) {
                // A version of another object, or of another account, is never gone back to.
                Some(now) => path != now && (is_of_object(path) || is_of_object(now)),
                None => !is_unreadable(path),
            }
        };
        let gone: BTreeSet<_> = self.plugins.iter().filter(is_gone).map(|(name, _)| name.clone()).collect();
        // No file, and no object, has the plugin: it may be that its file is being replaced.
        let is_absent = |name: &Arc<str>| {
            let path = self.plugins.get(name).map(|plugin| &plugin.newest.0.path);
            let has_file = |path: &PathBuf| files.iter().any(|file| file.path == *path);
            !named.contains_key(&**name) && path.is_some_and(|path| !is_of_object(path) && !has_file(path))
        };
        let (absent, mut gone): (BTreeSet<_>, BTreeSet<_>) = gone.into_iter().partition(is_absent);
        gone.extend(self.absent_files.look(absent));
        for name in gone {
            self.unload(&name);
        }
        let repaired = self.report_errors(&errors);
        for file in files {
            let stamp = stamps.get(&file.component).copied();
            let path = file.path.clone();
            if let Some(unchanged) = self.load(Arc::new(file), stamp)
                && repaired.contains(&path)
            {
                let refused = unchanged.refused.lock().clone();
                unchanged.accept(&self.host.reporter, &path, refused);
            }
        }
    }

    /// Handles a request, and returns whether the files are to be read again.
    async fn handle(&self, request: Request) -> bool {
        match request {
            Request::Rollback { plugin: name, reply } => {
                let Some(plugin) = self.plugins.get(name.as_str()) else {
                    let _ = reply.send(Err(RollbackError::UnknownPlugin(name)));
                    return false;
                };
                let file = plugin.newest.0.clone();
                let mut preparing = plugin.preparing.lock();
                *preparing = load::begin_rollback(&self.host, &plugin.slot, file, preparing.clone(), reply);
                false
            }
            Request::Release { plugin: name, reply } => {
                let Some(plugin) = self.plugins.get(name.as_str()) else {
                    let _ = reply.send(Err(RollbackError::UnknownPlugin(name)));
                    return false;
                };
                let newest = plugin.newest.0.clone();
                let roll_out = RollOut {
                    host: self.host.clone(),
                    slot: plugin.slot.clone(),
                    token: CancellationToken::new(),
                };
                // Its task may not have read it yet.
                roll_out.read_quarantine(&newest).await;
                let count = roll_out.release().await;
                plugin.slot.load_again.store(true, Ordering::Release);
                let _ = reply.send(Ok(count));
                true
            }
        }
    }

    /// Begins to load a version. Returns the plugin if its newest version is this one already.
    fn load(&mut self, file: Arc<PluginFile>, stamp: Option<Stamp>) -> Option<Arc<PluginSlot>> {
        let name: Arc<str> = file.name.as_str().into();
        let newest = (file.clone(), stamp);
        if let Some(plugin) = self.plugins.get(&name).filter(|plugin| plugin.dispatcher.is_gone()) {
            if plugin.panicked_at.lock().is_some_and(|at| at.elapsed() < AFTER_PANIC) {
                return None;
            }
            // Its dispatcher panicked: the host drops the plugin and loads it again. The metrics stay, they
            // count the panic.
            if let Some(plugin) = self.drop_plugin(&name) {
                self.suspended.keep(&name, &plugin);
            }
        }
        if let Some(plugin) = self.plugins.get_mut(&name) {
            let again = plugin.slot.load_again.swap(false, Ordering::AcqRel)
                || rolled_back::is_behind_the_leader(&self.host, &plugin.slot);
            if plugin.newest == newest && !again {
                return Some(plugin.slot.clone());
            }
            let preparing = plugin.preparing.get_mut();
            let before = Some(preparing.clone());
            *preparing = load::begin(&self.host, &plugin.slot, file, stamp, before);
            plugin.newest = newest;
            return None;
        }
        let serving = shadow::serving_of(&name).and_then(|name| self.plugins.get(name));
        let serving = serving.map(|it| &*it.slot);
        let (slot, dispatcher) = PluginSlot::new(&self.host, &name, &file, serving);
        let is_suspended = self.suspended.take(&name, &file);
        let dispatcher = if is_suspended { dispatcher.suspended() } else { dispatcher };
        let (host, panicked, of) = (self.host.clone(), self.panicked.clone(), name.clone());
        let panicked_at = Arc::new(Mutex::new(None));
        let at = panicked_at.clone();
        let dispatcher = self.host.tasks.spawn_contained(
            format!("plugin {name}"),
            |token| dispatcher.run(token),
            move |message| {
                load::report_panic(&host, &of, "its calls", &message);
                *at.lock() = Some(Instant::now());
                panicked.notify_one();
            },
        );
        let slot = Arc::new(slot);
        let preparing = Mutex::new(load::begin(&self.host, &slot, file, stamp, None));
        self.plugins.insert(name, Plugin { slot, newest, preparing, dispatcher, panicked_at });
        None
    }

    fn drop_plugin(&mut self, name: &Arc<str>) -> Option<Plugin> {
        let plugin = self.plugins.remove(name)?;
        plugin.preparing.lock().cancel();
        plugin.dispatcher.cancel();
        self.host.statuses.remove(name);
        Some(plugin)
    }

    fn unload(&mut self, name: &Arc<str>) {
        let Some(plugin) = self.drop_plugin(name) else { return };
        self.host.shadows.unload(name);
        self.host.metrics.forget(name);
        let generation = plugin.slot.active.get().map_or(0, |it| it.number);
        let is_of_object = is_of_object(&plugin.newest.0.path);
        let reason = if shadow::serving_of(name).is_some() {
            SHADOW_GONE
        } else if is_of_object {
            OBJECT_GONE
        } else {
            FILE_GONE
        };
        if is_of_object {
            self.suspended.keep(name, &plugin);
        }
        self.host.reporter.about(name, generation).report(HostEvent::PluginUnloaded { reason });
        self.host.reporter.forget_lines(name);
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}
