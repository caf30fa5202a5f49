//! Every message to operators in one list, so that they can be read side by side.

use super::*;

/// One example of each event, and of each form that its message takes.
fn examples() -> Vec<HostEvent> {
    let text = |text: &str| text.to_owned();
    let forbidden = || text("the account default/hello may not list v1/pods");
    vec![
        HostEvent::HostStarted { server: text("https://10.0.0.1:6443"), version: "0.1.0" },
        HostEvent::AdminListening { address: text("127.0.0.1:8080"), scheme: "http" },
        HostEvent::AdminSelfSigned { address: text("0.0.0.0:8443") },
        HostEvent::ControlListening { socket: text("/home/a/.local/state/oarlock/control/7.sock") },
        HostEvent::ControlUnavailable { message: text("permission denied") },
        HostEvent::TracesNotExported {
            endpoint: text("http://collector:4318/v1/traces"),
            message: text("connection refused"),
        },
        HostEvent::TracesExported { endpoint: text("http://collector:4318/v1/traces") },
        HostEvent::StandingBy { lease: text("oarlock/oarlock"), identity: text("node-1_2f") },
        HostEvent::OtherLeads { identity: text("node-2_7c") },
        HostEvent::Leading,
        HostEvent::LeadershipLost { lease: text("oarlock/oarlock") },
        HostEvent::HostStopping { asked: true },
        HostEvent::HostStopping { asked: false },
        HostEvent::HostDrained { after_ms: 120, calls_dropped: 1, waiting: 7 },
        HostEvent::HostDrained { after_ms: 120, calls_dropped: 2, waiting: 1 },
        HostEvent::CallsDropped { calls: 1, after_ms: 20_000 },
        HostEvent::CallsDropped { calls: 2, after_ms: 20_000 },
        HostEvent::PluginCompiling { bytes: 3 << 20, before: 0 },
        HostEvent::PluginCompiling { bytes: 3 << 20, before: 1 },
        HostEvent::PluginCompiling { bytes: 3 << 20, before: 2 },
        HostEvent::PluginWaiting { waits_for: vec![text("the first list of v1/pods")] },
        HostEvent::PluginLoaded {
            version: text("1.2.0"),
            digest: text("0123456789abcdef"),
            mode: Mode::Replay,
            took_ms: 120,
            took_us: 120_400,
            stands_by: false,
        },
        HostEvent::PluginLoaded {
            version: text("1.2.0"),
            digest: text("0123456789abcdef"),
            mode: Mode::First,
            took_ms: 97,
            took_us: 97_000,
            stands_by: true,
        },
        HostEvent::GenerationState { state: GenerationState::Draining, reason: text("generation 3 serves") },
        HostEvent::GenerationState { state: GenerationState::Quarantined, reason: text("4 instances lost") },
        HostEvent::PluginRolledBack {
            version: text("1.3.0"),
            digest: text("abcdef0123456789"),
            message: text("it lost 4 instances within 60 s"),
            to_version: text("1.2.0"),
            to_digest: text("0123456789abcdef"),
        },
        HostEvent::PluginRolledBack {
            version: text("1.3.0"),
            digest: text("abcdef0123456789"),
            message: text("an operator asked for it"),
            to_version: text("1.3.0"),
            to_digest: text("abcdef0123456789"),
        },
        HostEvent::PluginLastGood {
            version: text("1.2.0"),
            digest: text("0123456789abcdef"),
            has_passed: true,
        },
        HostEvent::PluginLastGood {
            version: text("1.1.0"),
            digest: text("0123456789abcdef"),
            has_passed: false,
        },
        HostEvent::version_before_refused(
            text("the last good version cannot be loaded: the guest exceeded its deadline"),
            None,
        ),
        HostEvent::StateTrouble {
            message: text("/var/lib/oarlock/last-good cannot be written: disk full"),
            hint: crate::state_folder::WRITABLE,
        },
        HostEvent::StatusNotWritten { message: text("the status of Plugin team-a/mirror: timeout") },
        HostEvent::CodeNotStored { message: text("the disk is full") },
        HostEvent::RecordLimitReached { file: text("records/mirror.record"), limit: 256 << 20 },
        HostEvent::RecordFailed {
            file: text("records/mirror.record"),
            message: text("No space left on device (os error 28)"),
            hint: crate::recordings::WRITABLE_HINT,
        },
        HostEvent::PluginRefused {
            file: text("hello.yaml"),
            message: text("hello.yaml:3: unknown key `nam`"),
            hint: None,
            older_version_serves: false,
        },
        HostEvent::PluginRefused {
            file: text("hello.wasm"),
            message: text("the component cannot be read: No such file or directory"),
            hint: Some(text("build it")),
            older_version_serves: true,
        },
        HostEvent::PluginRefused {
            file: text("/plugins.oarlock.dev/team-a/mirror/4f2a-1/mirror"),
            message: text("it is no component"),
            hint: None,
            older_version_serves: true,
        },
        HostEvent::PluginRefused {
            file: text("Plugin team-a/mirror"),
            message: text("the spec cannot be read"),
            hint: None,
            older_version_serves: false,
        },
        HostEvent::PluginRefused {
            file: text("/clusterplugins.oarlock.dev/census/4f2a-1/census"),
            message: text(
                "/clusterplugins.oarlock.dev/census/4f2a-1/census: the plugin name `census` is already used in census.yaml",
            ),
            hint: None,
            older_version_serves: false,
        },
        HostEvent::ComponentUnfinished { file: text("hello.wasm"), message: text("the file is empty") },
        HostEvent::ComponentUnfinished { file: text("hello.wasm"), message: text("was it copied?") },
        HostEvent::PluginAccepted { file: text("hello.yaml"), serves: true },
        HostEvent::PluginAccepted { file: text("hello.yaml"), serves: false },
        HostEvent::PluginAccepted { file: text("/plugins.oarlock.dev/a/b/4f2a-1/c"), serves: true },
        HostEvent::SourceReadable { file: text("plugins") },
        HostEvent::PluginExample {
            text: text("hello greets each Pod:"),
            command: Some(text("kubectl run hello --image none")),
        },
        HostEvent::PluginPanicked { doing: text("its calls"), message: text("index out of bounds") },
        HostEvent::PluginUnloaded { reason: crate::reload::FILE_GONE },
        HostEvent::PluginUnloaded { reason: crate::reload::SHADOW_GONE },
        HostEvent::PluginUnloaded { reason: crate::reload::OBJECT_GONE },
        HostEvent::PluginSuspended { by: Suspender::Operator },
        HostEvent::PluginSuspended { by: Suspender::Definition },
        HostEvent::PluginResumed { by: Suspender::Operator, stays_suspended: false },
        HostEvent::PluginResumed { by: Suspender::Operator, stays_suspended: true },
        HostEvent::PluginResumed { by: Suspender::Definition, stays_suspended: false },
        HostEvent::PluginResumed { by: Suspender::Definition, stays_suspended: true },
        HostEvent::ExistingDelivered { subscription: None, objects: 1, at_most: false },
        HostEvent::ExistingDelivered { subscription: Some(text("pods")), objects: 1_200, at_most: true },
        HostEvent::SubscriptionOpened {
            subscription: text("pods"),
            resource: text("v1/pods"),
            namespaces: None,
        },
        HostEvent::SubscriptionOpened {
            subscription: text("pods"),
            resource: text("v1/pods"),
            namespaces: Some(vec![text("a"), text("b")]),
        },
        HostEvent::SubscriptionForbidden {
            subscription: text("pods"),
            resource: text("v1/pods"),
            message: forbidden(),
            hint: Some(crate::subscriptions::GRANT_HINT.to_owned()),
        },
        HostEvent::SubscriptionForbidden {
            subscription: text("pods"),
            resource: text("v1/pods"),
            message: text("the ServiceAccount default/hello was deleted and created again"),
            hint: None,
        },
        HostEvent::SubscriptionPaused {
            subscription: text("pods"),
            resource: text("v1/pods"),
            message: text("connection refused"),
        },
        HostEvent::SubscriptionSynced { subscription: text("pods"), remaining: 1 },
        HostEvent::SubscriptionSynced { subscription: text("pods"), remaining: 0 },
        HostEvent::SyncedFailed {
            subscription: text("pods"),
            outcome: CallOutcome::Retry { message: text("not yet"), after_ms: 400 },
        },
        delivered(0, CallOutcome::Done),
        delivered(1, CallOutcome::Retry { message: text("not yet"), after_ms: 400 }),
        delivered(5, CallOutcome::Parked { message: text("never") }),
        HostEvent::Reconciled {
            kind: text("Boat"),
            namespace: String::new(),
            name: text("dinghy"),
            took_us: 250,
            outcome: CallOutcome::Done,
        },
        HostEvent::Reconciled {
            kind: text("tick"),
            namespace: String::new(),
            name: String::new(),
            took_us: 250,
            outcome: CallOutcome::Done,
        },
        HostEvent::GuestLog {
            object: Some(text("default/web")),
            level: Level::Info,
            message: text("notified"),
            pairs: Pairs(vec![(text("n"), text("1"))]),
        },
        instance_lost("pods default/web", 1, Some(0), Some(NextTry { tries: 1, after_ms: Some(200) })),
        instance_lost("pods default/web", 3, Some(1000), Some(NextTry { tries: 1, after_ms: Some(1000) })),
        instance_lost("pods default/web", 1, Some(0), Some(NextTry { tries: 3, after_ms: None })),
        instance_lost("", 1, Some(0), None),
        instance_lost("pods default/web", 1, None, None),
        HostEvent::InstanceRestarted { mode: Mode::TakeOver, took_us: 480 },
        HostEvent::ResourceAbsent {
            resource: text("example.com/v1/boats"),
            message: text("the API server does not serve it"),
            hint: "apply the CustomResourceDefinition, or correct the resource in the plugin",
            wanted_by: vec![text("hello"), text("mirror")],
        },
        HostEvent::ResourceServed { resource: text("example.com/v1/boats") },
        HostEvent::ResourceForbidden {
            resource: text("v1/pods"),
            message: text("pods is forbidden"),
            hint: text("grant the rights"),
        },
        HostEvent::ResourceOverBudget {
            resource: text("v1/pods"),
            message: text("1012 of at most 1000 objects are cached"),
            hint: text("raise --max-objects"),
            wanted_by: vec![text("hello")],
        },
        HostEvent::ResourceWithinBudget { resource: text("v1/pods") },
        HostEvent::OverBudget {
            message: text("1012 of at most 1000 objects are cached"),
            hint: text("raise --max-objects"),
        },
        HostEvent::WithinBudget,
        HostEvent::WatchTrouble { resource: text("v1/pods"), message: text("connection refused") },
        HostEvent::WatchRecovered { resource: text("v1/pods") },
        HostEvent::FileWatchTrouble { message: text("too many open files") },
        HostEvent::ReportsDropped { count: 1 },
        HostEvent::ReportsDropped { count: 12 },
    ]
}

fn delivered(attempts: u32, outcome: CallOutcome) -> HostEvent {
    HostEvent::Delivered {
        subscription: "pods".into(),
        notification: NotificationType::Update,
        namespace: "default".into(),
        name: "web".into(),
        resource_version: "12".into(),
        attempts,
        took_us: 250,
        outcome,
    }
}

fn instance_lost(
    about: &str,
    losses: u32,
    restart_after_ms: Option<u64>,
    next_try: Option<NextTry>,
) -> HostEvent {
    HostEvent::InstanceLost {
        function: "on-add",
        about: about.into(),
        reason: "trap",
        message: "the guest trapped: unreachable".into(),
        output: String::new(),
        backtrace: String::new(),
        losses,
        restart_after_ms,
        next_try,
    }
}

/// Fails to compile when an event is added that [`examples`] may lack.
fn has_example(event: &HostEvent) {
    match event {
        HostEvent::HostStarted { .. }
        | HostEvent::AdminListening { .. }
        | HostEvent::AdminSelfSigned { .. }
        | HostEvent::ControlListening { .. }
        | HostEvent::ControlUnavailable { .. }
        | HostEvent::TracesNotExported { .. }
        | HostEvent::TracesExported { .. }
        | HostEvent::StandingBy { .. }
        | HostEvent::OtherLeads { .. }
        | HostEvent::Leading
        | HostEvent::LeadershipLost { .. }
        | HostEvent::HostStopping { .. }
        | HostEvent::HostDrained { .. }
        | HostEvent::CallsDropped { .. }
        | HostEvent::PluginLoaded { .. }
        | HostEvent::GenerationState { .. }
        | HostEvent::PluginRolledBack { .. }
        | HostEvent::PluginLastGood { .. }
        | HostEvent::VersionBeforeRefused { .. }
        | HostEvent::StateTrouble { .. }
        | HostEvent::StatusNotWritten { .. }
        | HostEvent::CodeNotStored { .. }
        | HostEvent::RecordLimitReached { .. }
        | HostEvent::RecordFailed { .. }
        | HostEvent::PluginRefused { .. }
        | HostEvent::PluginCompiling { .. }
        | HostEvent::ComponentUnfinished { .. }
        | HostEvent::PluginAccepted { .. }
        | HostEvent::PluginExample { .. }
        | HostEvent::PluginWaiting { .. }
        | HostEvent::PluginPanicked { .. }
        | HostEvent::PluginUnloaded { .. }
        | HostEvent::PluginSuspended { .. }
        | HostEvent::PluginResumed { .. }
        | HostEvent::ExistingDelivered { .. }
        | HostEvent::SourceReadable { .. }
        | HostEvent::SubscriptionOpened { .. }
        | HostEvent::SubscriptionForbidden { .. }
        | HostEvent::SubscriptionPaused { .. }
        | HostEvent::SubscriptionSynced { .. }
        | HostEvent::SyncedFailed { .. }
        | HostEvent::Delivered { .. }
        | HostEvent::Reconciled { .. }
        | HostEvent::GuestLog { .. }
        | HostEvent::InstanceLost { .. }
        | HostEvent::InstanceRestarted { .. }
        | HostEvent::ResourceAbsent { .. }
        | HostEvent::ResourceServed { .. }
        | HostEvent::ResourceOverBudget { .. }
        | HostEvent::ResourceWithinBudget { .. }
        | HostEvent::OverBudget { .. }
        | HostEvent::WithinBudget
        | HostEvent::ResourceForbidden { .. }
        | HostEvent::WatchTrouble { .. }
        | HostEvent::WatchRecovered { .. }
        | HostEvent::FileWatchTrouble { .. }
        | HostEvent::ReportsDropped { .. } => {}
    }
}

#[test]
fn each_message_says_what_happened_what_the_host_does_and_how_to_fix_it() {
    let examples = examples();
    examples.iter().for_each(has_example);
    let lines: Vec<_> = examples.iter().map(|event| format!("{:5} {event}", event.level())).collect();
    insta::assert_snapshot!(lines.join("\n"), @"
    info  oarlock 0.1.0 started, API server https://10.0.0.1:6443
    info  serves probes and metrics at http://127.0.0.1:8080
    info  clients cannot verify the certificate of https://0.0.0.0:8443, which the host has made. To change that, name one with --admin-cert-file and --admin-key-file
    info  serves commands such as `oarlock plugins` on /home/a/.local/state/oarlock/control/7.sock
    warn  commands such as `oarlock plugins` do not reach this host: permission denied
    warn  traces are not exported to http://collector:4318/v1/traces: connection refused. The plugins are not affected, and the host tries again
    info  traces are exported to http://collector:4318/v1/traces again
    info  stands by as node-1_2f: it loads the plugins, and calls none until it holds the Lease oarlock/oarlock
    info  the leader is node-2_7c, this host stands by
    info  became leader, and calls the plugins
    error lost the Lease oarlock/oarlock. The host stops. Fix: start it again, then it stands by
    info  stopping. A second signal ends the host at once
    info  stopping
    info  stopped after 120 ms: 1 call was dropped, 7 notifications and keys wait
    info  stopped after 120 ms: 2 calls were dropped, 1 notification or key waits
    warn  1 call did not end within 20000 ms, and was dropped. Its object is delivered again
    warn  2 calls did not end within 20000 ms, and were dropped. Their objects are delivered again
    info  compiles its component (3.0 MiB)
    info  compiles its component (3.0 MiB), after 1 other component
    info  compiles its component (3.0 MiB), after 2 other components
    warn  does not serve yet, waits for the first list of v1/pods
    info  version 1.2.0 (0123456789ab) serves after 120 ms: all objects are delivered again
    info  version 1.2.0 (0123456789ab) is loaded after 97 ms, and serves when this host leads: the first version
    debug is draining: generation 3 serves
    warn  is quarantined: 4 instances lost
    error version 1.3.0 (abcdef012345) is rolled back to 1.2.0 (0123456789ab): it lost 4 instances within 60 s. The host does not try it again. Fix: repair the plugin: the host loads a changed component or changed settings at once. `oarlock rollback PLUGIN --release` makes it try this version again
    error version 1.3.0 (abcdef012345) is rolled back to its earlier settings: an operator asked for it. Its present plugin file or object is not in effect, and the host does not try these settings again. Fix: repair the plugin: the host loads a changed component or changed settings at once. `oarlock rollback PLUGIN --release` makes it try this version again
    warn  loads the last good version, 1.2.0 (0123456789ab), since the newest one cannot be used
    warn  loads the version that was on probation, 1.1.0 (0123456789ab), since the newest one cannot be used
    error the last good version cannot be loaded: the guest exceeded its deadline. Fix: correct what the message names, or load another version of the plugin
    warn  /var/lib/oarlock/last-good cannot be written: disk full. The host continues; after a restart it may lack the last good version or the quarantine of this plugin. Fix: make the folder of --state-dir writable, free disk space, or name another folder
    warn  the status of Plugin team-a/mirror: timeout. The host tries again
    warn  its compiled code cannot be stored: the disk is full. It runs, but is compiled again after a restart of the host (--cache-dir names the folder)
    warn  the files of its record, records/mirror.record and those with a number, have reached the 256.0 MiB of --record-limit. The host calls it as before, and records no further call of it. Fix: move the files away or raise --record-limit, then start the host again
    warn  its record records/mirror.record has failed: No space left on device (os error 28). The host calls it as before, and records no further call of it. Fix: free disk space, or name a path with --record that this user may write, then start the host again
    error refused: hello.yaml:3: unknown key `nam`. No version serves
    error hello.wasm refused: the component cannot be read: No such file or directory. The version before keeps serving. Fix: build it
    error Plugin team-a/mirror refused: it is no component. The version before keeps serving
    error Plugin team-a/mirror refused: the spec cannot be read. No version serves
    error refused: ClusterPlugin census: the plugin name `census` is already used in census.yaml. No version serves
    debug hello.wasm cannot be used: the file is empty. It has just changed, so the host reads it again
    debug hello.wasm cannot be used: was it copied? It has just changed, so the host reads it again
    info  hello.yaml is valid again. The version that serves was made from it
    info  hello.yaml is valid again. No version serves yet
    info  Plugin a/b is valid again. The version that serves was made from it
    info  plugins can be read again
    info  hello greets each Pod:
    error the host panicked in its calls: index out of bounds. The host loads the plugin again. Fix: report this, it is a bug of the host
    info  unloaded: its file was removed, or names another plugin
    info  unloaded: its plugin was unloaded, or has no shadow any more
    info  unloaded: its object was removed, names another account, or may not be run any more. The conditions of an object that exists say why
    info  suspended by `oarlock suspend`: it is not called until `oarlock resume`. Its notifications and keys wait
    info  suspended: its file or object has `suspend: true`. Its notifications and keys wait
    info  resumed by `oarlock resume`
    info  resumed by `oarlock resume`, and stays suspended: its file or object has `suspend: true`
    info  resumed: its file or object does not suspend it any more
    info  its file or object does not suspend it any more. It stays suspended until `oarlock resume`
    info  delivers 1 existing object again, for `oarlock redeliver --existing`
    info  delivers at most 1200 existing objects again, for `oarlock redeliver --existing` of subscription pods
    info  subscription pods watches v1/pods in all namespaces
    info  subscription pods watches v1/pods in a, b
    error subscription pods of v1/pods closed, Forbidden: the account default/hello may not list v1/pods. Fix: grant what `oarlock rbac` prints for this plugin (for a Plugin object: for its component, with --service-account), or remove the subscription from the plugin
    error subscription pods of v1/pods closed, Forbidden: the ServiceAccount default/hello was deleted and created again
    warn  subscription pods of v1/pods paused: connection refused. Nothing is delivered until the host knows the rights of the plugin's account
    info  subscription pods synced, 1 not synced yet
    info  subscription pods synced, all are synced
    warn  on-synced of pods failed: not yet. The next call is made in 400 ms
    debug on-update of pods default/web: done in 250 µs
    warn  on-update of pods default/web (call 2) failed: not yet. The next call is made in 400 ms
    error on-update of pods default/web (call 6) failed: never. It is parked: the host calls again at its next event, when another version of the plugin loads, after `oarlock redeliver`, and within `retry.parkedDelay` (default 5m)
    debug reconcile of Boat dinghy: done in 250 µs
    debug reconcile of tick: done in 250 µs
    info  notified n=1
    warn  instance lost in on-add of pods default/web (trap): the guest trapped: unreachable. A fresh instance starts at once. The next call for pods default/web is made in 200 ms or later, when no other work is ready (calls so far: 1)
    warn  instance lost in on-add of pods default/web (trap): the guest trapped: unreachable. A fresh instance starts in 1000 ms, after 3 losses in a row. The next call for pods default/web is made in 1000 ms or later, when no other work is ready (calls so far: 1)
    warn  instance lost in on-add of pods default/web (trap): the guest trapped: unreachable. A fresh instance starts at once. pods default/web is parked after 3 calls: the host calls again at its next event, when another version of the plugin loads, after `oarlock redeliver`, and within `retry.parkedDelay` (default 5m)
    warn  instance lost in on-add (trap): the guest trapped: unreachable. A fresh instance starts at once
    warn  instance lost in on-add of pods default/web (trap): the guest trapped: unreachable. The version that serves gets the call, if it watches the object
    info  a fresh instance serves: unchanged subscriptions continue where they stopped
    warn  example.com/v1/boats is absent: the API server does not serve it. The host asks again at least every 5 s. Wanted by hello, mirror. Fix: apply the CustomResourceDefinition, or correct the resource in the plugin
    info  the API server serves example.com/v1/boats now
    error the host's account may not watch v1/pods: pods is forbidden. The host tries again. Fix: grant the rights
    error the budget has no room for v1/pods: 1012 of at most 1000 objects are cached. The host tries again later. Wanted by hello. Fix: raise --max-objects
    info  the budget has room for v1/pods now
    error the caches exceed the budget: 1012 of at most 1000 objects are cached. They stay, no new informer is started. Fix: raise --max-objects
    info  the caches are within the budget again
    warn  the watch of v1/pods fails: connection refused. The host tries again
    info  the watch of v1/pods works again
    warn  the system does not report changes of the plugin files: too many open files. The host reads the files every few seconds instead
    error 1 line of this output was dropped, because it was read too slowly. Fix: read it faster, or print less with --level
    error 12 lines of this output were dropped, because it was read too slowly. Fix: read it faster, or print less with --level
    ");
}

#[test]
fn a_line_has_time_level_plugin_and_generation() {
    insta::assert_snapshot!(at(guest_log(1)), @"22:13:20.123 info  hello#2: notified n=1");
    let example =
        HostEvent::PluginExample { text: "try it:".into(), command: Some("kubectl get pods".into()) };
    insta::assert_snapshot!(at(example), @r"
    22:13:20.123 info  hello#2: try it:
      kubectl get pods
    ");
}
