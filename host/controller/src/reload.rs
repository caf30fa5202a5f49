//! Plugins come, change and go with their files, while the host runs (promise 6).
//!
//! The files are looked at whenever they may have changed. A new or changed plugin (its file, or its component) is [prepared] beside the
//! version that serves, and switched to when it is ready. One that fails is reported and not switched to; a
//! plugin whose file has become unreadable goes on as it was, one whose file is gone is unloaded.
//!
//! [prepared]: prepare

mod files;
mod guest_lines;
mod prepare;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use oarlock_informer::BacklogAccount;
use oarlock_plugin::{Engine, HostBytes, component, guest_text};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::files::FileWatch;
use self::prepare::Prepared;
use crate::access::Gate;
use crate::config::{self, Circumstances, Loaded, PluginFile};
use crate::discovery::Discovery;
use crate::dispatch::{self, Dispatcher, PluginQueue, Serving, Switch};
use crate::health::Health;
use crate::identity;
use crate::informers::{Informers, Prunings};
use crate::metrics::Metrics;
use crate::provision::{Example, Provision};
use crate::regular_file::Stamp;
use crate::report::{HostEvent, Reporter, Timestamp};
use crate::status::{PluginStatus, PluginStatusHandle, RecordedError, RefusedFile, StatusRegistry};
use crate::subscriptions;
use crate::tasks::{Task, Tasks};

/// How long after a panic in a plugin's task the plugin is loaded anew.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// How long after a failure a plugin is loaded anew whose version before acts as an account that is gone, so that it serves nothing.
const AFTER_FAILURE: Duration = Duration::from_secs(10);

/// A component that has not changed for this long is not being written.
const SETTLED: Duration = Duration::from_secs(2);

/// The parts of the host that a plugin is made with. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) tasks: Tasks,
    pub(crate) reporter: Reporter,
    pub(crate) engine: Engine,
    pub(crate) client: kube::Client,
    pub(crate) gate: Arc<Gate>,
    pub(crate) discovery: Arc<Discovery>,
    pub(crate) informers: Informers,
    pub(crate) prunings: Prunings,
    pub(crate) metrics: Metrics,
    pub(crate) statuses: StatusRegistry,
    pub(crate) provision: Option<Arc<dyn Provision>>,
    pub(crate) dispatch: dispatch::Shared,
}

/// Keeps the loaded plugins equal to what the files say.
pub(crate) struct Reload {
    host: Host,
    health: Health,
    sources: Vec<PathBuf>,
    plugins: BTreeMap<Arc<str>, Plugin>,
    /// What was last said about a bad file.
    told: BTreeMap<PathBuf, String>,
    has_looked: bool,
    /// A plugin's task panicked.
    panicked: Arc<Notify>,
}

/// What one look at the files found.
struct Looked {
    loaded: Loaded,
    /// Of the components.
    stamps: BTreeMap<PathBuf, Stamp>,
    /// In which something that matters may change.
    folders: BTreeSet<PathBuf>,
}

/// One plugin that has a file.
struct Plugin {
    slot: Arc<Slot>,
    /// What the newest version was made of, whether it came to serve or not.
    newest: (PluginFile, Option<Stamp>),
    preparing: Task,
    dispatcher: Task,
    /// When its dispatcher panicked.
    panicked_at: Arc<Mutex<Option<Instant>>>,
}

/// What preparing a version shares with the plugin that it is for.
struct Slot {
    name: Arc<str>,
    switches: mpsc::Sender<Switch>,
    serving: Arc<Serving>,
    queue: PluginQueue,
    /// What the host may keep for the plugin.
    host_bytes: HostBytes,
    status: PluginStatusHandle,
    /// What all its generations' backlogs hold.
    backlogs: BacklogAccount,
    /// What the version that serves was made of.
    made_of: Mutex<Option<MadeOf>>,
    /// Its account is another one: the same files make another version.
    again: AtomicBool,
    asked: prepare::Asked,
    /// Why the newest version of the component, or of what its file says, is not used.
    refused: Mutex<Option<RecordedError>>,
}

/// What a version is made of: another one of the same would be no other.
#[derive(Clone, PartialEq)]
struct MadeOf {
    file: PluginFile,
    digest: component::Digest,
    /// The account's uid.
    uid: Arc<str>,
}

// === impl Reload ===

impl Reload {
    /// Makes one for the plugins of these files and folders.
    pub(crate) fn new(host: Host, health: Health, sources: Vec<PathBuf>) -> Self {
        Self {
            host,
            health,
            sources,
            plugins: BTreeMap::new(),
            told: BTreeMap::new(),
            has_looked: false,
            panicked: Arc::default(),
        }
    }

    /// Follows the files until the token is cancelled.
    pub(crate) async fn run(mut self, token: CancellationToken) {
        let mut watch = FileWatch::new(&self.host.reporter);
        loop {
            // A file system that does not answer must not hold up the host's end.
            let looked = tokio::select! {
                biased;
                () = token.cancelled() => return,
                looked = self.look() => looked,
            };
            let Some(Looked { loaded, stamps, folders }) = looked else { return };
            watch.set(folders);
            self.take(loaded, &stamps);
            self.health.plugins_looked_at();
            let mut again_at = None;
            loop {
                tokio::select! {
                    biased;
                    () = token.cancelled() => return,
                    () = watch.changed() => break,
                    () = self.panicked.notified() => again_at = Some(Instant::now() + AFTER_PANIC),
                    () = at(again_at) => break,
                }
            }
        }
    }

    async fn look(&self) -> Option<Looked> {
        let sources = self.sources.clone();
        let provision = self.host.provision.clone();
        let owner = |(name, plugin): (&Arc<str>, &Plugin)| (name.to_string(), plugin.newest.0.path.clone());
        let owners = self.plugins.iter().map(owner).collect();
        let look = move || {
            let account_of = |name: &str| provision.as_ref()?.account_of(name);
            let circumstances = Circumstances { owners: Some(&owners), account_of: Some(&account_of) };
            let loaded = config::load_paths_under(&sources, circumstances);
            let components = loaded.files.iter().map(|file| file.component.clone());
            let stamps = components.filter_map(|path| Stamp::of(&path).map(|stamp| (path, stamp))).collect();
            let folders = folders(&sources, &loaded);
            Looked { loaded, stamps, folders }
        };
        self.host.tasks.blocking(look).await
    }

    /// Goes over from what was loaded to what the files say.
    fn take(&mut self, loaded: Loaded, stamps: &BTreeMap<PathBuf, Stamp>) {
        let Loaded { files, errors } = loaded;
        // A folder that has become empty is one whose plugins are gone; about one that cannot be read nothing is known.
        let is_unreadable = |path: &Path| {
            let mut unreadable =
                errors.iter().filter(|error| !matches!(error, config::Error::EmptyFolder { .. }));
            unreadable.any(|error| path.starts_with(error.path()))
        };
        let named: BTreeSet<&str> = files.iter().map(|file| file.name.as_str()).collect();
        let gone: Vec<_> = self
            .plugins
            .iter()
            .filter(|(name, plugin)| !named.contains(&***name) && !is_unreadable(&plugin.newest.0.path))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            self.unload(&name);
        }
        let mended = self.tell_errors(&errors);
        for file in files {
            let stamp = stamps.get(&file.component).copied();
            let path = file.path.clone();
            if let Some(unchanged) = self.load(file, stamp)
                && mended.contains(&path)
            {
                let refused = unchanged.refused.lock().clone();
                unchanged.accept(&self.host.reporter, &path, refused);
            }
        }
    }

    /// Begins to load a version; returns the plugin if it has this version already.
    fn load(&mut self, file: PluginFile, stamp: Option<Stamp>) -> Option<Arc<Slot>> {
        let name: Arc<str> = file.name.as_str().into();
        let newest = (file.clone(), stamp);
        if let Some(plugin) = self.plugins.get(&name).filter(|plugin| plugin.dispatcher.is_gone()) {
            if plugin.panicked_at.lock().is_some_and(|at| at.elapsed() < AFTER_PANIC) {
                return None;
            }
            // It panicked: what is left of it goes, and it is loaded anew. Its metrics stay, the panic is in them.
            self.drop_plugin(&name);
        }
        if let Some(plugin) = self.plugins.get_mut(&name) {
            let again = plugin.slot.again.swap(false, Ordering::AcqRel);
            if plugin.newest == newest && !again {
                return Some(plugin.slot.clone());
            }
            let before = Some(plugin.preparing.clone());
            plugin.preparing = begin(&self.host, &plugin.slot, file, stamp, before);
            plugin.newest = newest;
            return None;
        }
        let status = self.host.statuses.register(PluginStatus::loading(
            name.clone(),
            file.path.display().to_string(),
            file.component.display().to_string(),
            file.service_account.to_string(),
        ));
        let host_bytes = HostBytes::default();
        status.set_host_bytes(host_bytes.clone());
        let queue = PluginQueue::new(&host_bytes, self.host.metrics.work_queue(&name));
        let (dispatcher, switches, serving) =
            Dispatcher::new(name.clone(), self.host.dispatch.clone(), status.clone(), queue.clone());
        let (host, panicked, of) = (self.host.clone(), self.panicked.clone(), name.clone());
        let panicked_at = Arc::new(Mutex::new(None));
        let at = panicked_at.clone();
        let dispatcher = self.host.tasks.spawn_contained(
            format!("plugin {name}"),
            |token| dispatcher.run(token),
            move |message| {
                report_panic(&host, &of, "its calls", &message);
                *at.lock() = Some(Instant::now());
                panicked.notify_one();
            },
        );
        let slot = Arc::new(Slot {
            name: name.clone(),
            switches,
            serving,
            queue,
            host_bytes,
            status,
            backlogs: subscriptions::backlog_account(),
            made_of: Mutex::default(),
            again: AtomicBool::new(false),
            asked: prepare::Asked::default(),
            refused: Mutex::default(),
        });
        let preparing = begin(&self.host, &slot, file, stamp, None);
        self.plugins.insert(name, Plugin { slot, newest, preparing, dispatcher, panicked_at });
        None
    }

    fn drop_plugin(&mut self, name: &Arc<str>) -> Option<Plugin> {
        let plugin = self.plugins.remove(name)?;
        plugin.preparing.cancel();
        plugin.dispatcher.cancel();
        self.host.statuses.remove(name);
        Some(plugin)
    }

    fn unload(&mut self, name: &Arc<str>) {
        let Some(plugin) = self.drop_plugin(name) else { return };
        self.host.metrics.forget(name);
        let generation = plugin.slot.serving.view().map_or(0, |it| it.number);
        self.host.reporter.about(name, generation).report(HostEvent::PluginUnloaded);
    }

    /// Reports what is newly wrong with files, and returns the files that are no longer wrong.
    fn tell_errors(&mut self, errors: &[config::Error]) -> BTreeSet<PathBuf> {
        let mut told = BTreeMap::new();
        let mut without_plugin = Vec::new();
        for error in errors {
            let message = error.detail();
            let path = error.path().to_owned();
            let recorded = RecordedError { time: Timestamp::now(), message: message.clone() };
            let plugin = self.plugins.values().find(|plugin| plugin.newest.0.path == path);
            // That a folder is empty is worth saying of one that never was anything else.
            let is_emptied = matches!(error, config::Error::EmptyFolder { .. }) && self.has_looked;
            if plugin.is_none() && !is_emptied {
                without_plugin
                    .push(RefusedFile { file: path.display().to_string(), message: message.clone() });
            }
            if self.told.get(&path) != Some(&message) && !is_emptied {
                if let Some(plugin) = plugin {
                    plugin.slot.status.update(|status| status.refused = Some(recorded));
                }
                self.host.reporter.report(HostEvent::PluginRefused {
                    file: path.display().to_string(),
                    message: message.clone(),
                    hint: None,
                    older_version_serves: plugin.is_some_and(|it| it.slot.serving.view().is_some()),
                });
            }
            told.insert(path, message);
        }
        self.host.statuses.set_refused_files(without_plugin);
        self.has_looked = true;
        let before = std::mem::replace(&mut self.told, told);
        before.into_keys().filter(|path| !self.told.contains_key(path)).collect()
    }
}

fn folders(sources: &[PathBuf], loaded: &Loaded) -> BTreeSet<PathBuf> {
    let sources = sources.iter().flat_map(|source| [Some(source.as_path()), source.parent()]);
    let files = loaded.files.iter().flat_map(|file| [file.path.parent(), file.component.parent()]);
    let errors = loaded.errors.iter().flat_map(|error| [Some(error.path()), error.path().parent()]);
    let folders = sources.chain(files).chain(errors).flatten();
    let folders = folders.map(|it| if it.as_os_str().is_empty() { Path::new(".") } else { it });
    folders.filter(|it| it.is_dir()).map(Path::to_owned).collect()
}

// === impl Slot ===

impl Slot {
    /// Whether the version that serves acts as an account that was deleted and made again: it serves nothing any more.
    fn has_lost_its_account(&self) -> bool {
        self.serving.view().is_some_and(|serving| serving.identity.state() == identity::State::Another)
    }

    /// Notes that a file can be used again, whose version serves already. What else is `refused` stands.
    fn accept(&self, reporter: &Reporter, file: &Path, refused: Option<RecordedError>) {
        let is_accepted = refused.is_none();
        self.refused.lock().clone_from(&refused);
        let mut was_refused = false;
        self.status.update(|status| {
            status.waits_for.clear();
            was_refused = std::mem::replace(&mut status.refused, refused).is_some();
        });
        if was_refused && is_accepted {
            let reporter = match self.serving.view() {
                Some(serving) => reporter.about(&self.name, serving.number),
                None => reporter.clone(),
            };
            reporter.report(HostEvent::PluginAccepted { file: file.display().to_string() });
        }
    }
}

/// Begins to prepare a version. One that is being prepared is given up first.
fn begin(
    host: &Host,
    slot: &Arc<Slot>,
    file: PluginFile,
    mut stamp: Option<Stamp>,
    before: Option<Task>,
) -> Task {
    let (host, slot) = (host.clone(), slot.clone());
    let (tasks, name) = (host.tasks.clone(), slot.name.clone());
    let (panicked_host, panicked_slot, panicked_file) = (host.clone(), slot.clone(), file.clone());
    let on_panic = move |message: String| {
        report_panic(&panicked_host, &panicked_slot.name, "its loading", &message);
        refuse(&panicked_host, &panicked_slot, &panicked_file, &prepare::Error::Panicked(message));
        if panicked_slot.has_lost_its_account() {
            panicked_slot.again.store(true, Ordering::Release);
        }
    };
    let load = |token: CancellationToken| async move {
        if let Some(before) = before {
            before.cancel();
            before.gone().await;
        }
        let component = file.component.display().to_string();
        slot.status.update(|status| {
            status.file = file.path.display().to_string();
            status.component.clone_from(&component);
            status.service_account = file.service_account.to_string();
            status.waits_for.clear();
        });
        let preparing = async {
            loop {
                let prepared = prepare::prepare(&host, &slot, &file).await;
                let serving = slot.serving.view();
                let unfinished = match &prepared {
                    Err(error) if error.may_be_half_written(serving.is_some()) => error.to_string(),
                    _ => return prepared,
                };
                if stamp.is_some_and(|stamp| !stamp.is_younger_than(SETTLED)) {
                    return prepared;
                }
                // Somebody writes it at this moment. When it is complete it is another file, which is looked at anew; only one
                // that stays as it is is refused.
                slot.status.update(|status| {
                    status.waits_for = vec![format!("{component}, which is being written: {unfinished}")];
                });
                let (file_name, message) = (component.clone(), unfinished);
                host.reporter
                    .about(&slot.name, serving.map_or(1, |it| it.number + 1))
                    .report(HostEvent::ComponentUnfinished { file: file_name, message });
                tokio::time::sleep(SETTLED).await;
                let path = file.component.clone();
                let now = host.tasks.blocking(move || Stamp::of(&path)).await.flatten();
                if now == stamp {
                    return prepared;
                }
                stamp = now;
            }
        };
        let prepared = tokio::select! {
            biased;
            () = token.cancelled() => return,
            prepared = preparing => prepared,
        };
        match prepared {
            Ok(Prepared { generation, made_of }) => {
                if hand_over(&slot, generation, &token).await {
                    *slot.made_of.lock() = Some(made_of);
                    *slot.refused.lock() = None;
                    show_example(&host, &slot);
                }
            }
            Err(prepare::Error::Unchanged) => slot.accept(&host.reporter, &file.component, None),
            // The host is ending.
            Err(prepare::Error::Stopped { .. }) => {}
            Err(error) => {
                refuse(&host, &slot, &file, &error);
                if slot.has_lost_its_account() {
                    tokio::select! {
                        biased;
                        () = token.cancelled() => {}
                        () = tokio::time::sleep(AFTER_FAILURE) => slot.again.store(true, Ordering::Release),
                    }
                }
            }
        }
    };
    tasks.spawn_contained(format!("loading {name}"), load, on_panic)
}

/// Names and counts a panic of the host in a task that serves one plugin.
fn report_panic(host: &Host, plugin: &Arc<str>, doing: &str, message: &str) {
    let message = guest_text::one_line(message);
    host.metrics.panicked(plugin);
    host.statuses.record_error(plugin, &format!("the host panicked in {doing}: {message}"));
    host.reporter.about(plugin, 0).report(HostEvent::PluginPanicked { doing: doing.to_owned(), message });
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Tells how to make the plugin act, where somebody knows.
fn show_example(host: &Host, slot: &Slot) {
    let example = host.provision.as_ref().and_then(|provision| provision.example(&slot.name));
    if let (Some(Example { text, command }), Some(serving)) = (example, slot.serving.view()) {
        host.reporter.about(&slot.name, serving.number).report(HostEvent::PluginExample { text, command });
    }
}

/// Hands a generation to the dispatcher, and waits until it has been switched to; answers whether it was.
async fn hand_over(slot: &Slot, generation: dispatch::Generation, token: &CancellationToken) -> bool {
    let (switch, switched) = Switch::new(generation);
    let is_sent = tokio::select! {
        biased;
        () = token.cancelled() => return false,
        sent = slot.switches.send(switch) => sent.is_ok(),
    };
    // It is the dispatcher's from here on, and whoever prepares the next version has to know whether it serves: that is awaited
    // even when nobody wants it any more. A dispatcher that ends drops it.
    is_sent && switched.await.is_ok()
}

fn refuse(host: &Host, slot: &Slot, file: &PluginFile, error: &prepare::Error) {
    let message = error.to_string();
    let serving = slot.serving.view();
    let recorded = RecordedError { time: Timestamp::now(), message: message.clone() };
    *slot.refused.lock() = Some(recorded.clone());
    slot.status.update(|status| {
        status.waits_for.clear();
        status.refused = Some(recorded);
    });
    let event = HostEvent::PluginRefused {
        file: file.path.display().to_string(),
        message,
        hint: error.hint(),
        older_version_serves: serving.is_some(),
    };
    host.reporter.about(&slot.name, serving.map_or(1, |it| it.number + 1)).report(event);
}
