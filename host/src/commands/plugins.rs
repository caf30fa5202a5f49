//! `oarlock plugins`: lists the plugins of a running host, or describes one.

mod describe;

use oarlock_controller::report::{OneLine, with_object_names};
use oarlock_guest_build::progress;
use serde_json::Value;

use super::plugin_name;
use super::printed::{INTERVAL, ListPrinter, Shown, pretty, print, yaml};
use crate::args::{ListFormat, PluginsArgs};
use crate::control_client::{ControlClient, Finding, SHADOW, connect};
use crate::failure::{Ended, Failure};
use crate::table::Table;
use crate::view::{PluginView, PluginsView, RefusedFile, SubscriptionView, bytes};

/// How many characters of a digest the table shows.
const DIGEST: usize = 12;

pub(crate) async fn run(args: PluginsArgs, finding: Finding<'_>) -> Ended {
    let PluginsArgs { plugin, list, host } = args;
    let mut client = connect(host, finding).await?;
    let is_watched = list.watch;
    if let (Some(plugin), false) = (&plugin, is_watched) {
        let page: Value = client.get(&format!("/v1/plugins/{}", plugin_name(plugin)?)).await?;
        return match list.output {
            Some(ListFormat::Json) => print(&pretty(&page)?),
            Some(ListFormat::Yaml) => print(&yaml(&page)?),
            Some(ListFormat::Name) => print(&format!("plugin/{}\n", parse::<PluginView>(&page)?.name)),
            Some(ListFormat::Wide) | None => {
                let view: PluginView = parse(&page)?;
                let shadow = shadow_of(&mut client, &view.name).await?;
                print(&describe::text(&view, shadow.as_ref()))
            }
        };
    }
    let mut printer = ListPrinter::new(list);
    let mut is_first = true;
    loop {
        let mut page: Value = match is_first {
            true => client.get("/v1/plugins").await?,
            false => client.get_again("/v1/plugins").await?,
        };
        if let (Some(plugin), Some(plugins)) = (&plugin, page["plugins"].as_array_mut()) {
            let name = plugin_name(plugin)?;
            plugins.retain(|it| it["name"] == *name);
            if plugins.is_empty() && is_first {
                // The host names the plugins that there are.
                let _: Value = client.get(&format!("/v1/plugins/{name}")).await?;
            }
        }
        let view: PluginsView = parse(&page)?;
        if is_first {
            for refused in &view.refused_files {
                progress::say(format!("note: {}", refusal(refused)));
            }
        }
        is_first = false;
        let shown = Shown {
            table: table(&view.plugins, printer.is_wide()),
            names: view.plugins.iter().map(|it| format!("plugin/{}", it.name)).collect(),
            json: page,
        };
        printer.print(&shown, "the host has no plugins")?;
        if !is_watched {
            return Ok(());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Returns the shadow of a plugin, which the host runs as a plugin of its own; none if it has none.
async fn shadow_of(client: &mut ControlClient, name: &str) -> Result<Option<PluginView>, Failure> {
    match client.get::<Value>(&format!("/v1/plugins/{name}{SHADOW}")).await {
        Ok(page) => parse(&page).map(Some),
        Err(_) if client.is_refused() => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn parse<T: serde::de::DeserializeOwned>(page: &Value) -> Result<T, Failure> {
    T::deserialize(page).map_err(|error| Failure::running(anyhow::Error::new(error)))
}

fn table(plugins: &[PluginView], is_wide: bool) -> Table {
    let mut headers = vec![
        "NAME",
        "PHASE",
        "GENERATION",
        "VERSION",
        "DIGEST",
        "WATCHES",
        "BACKLOG",
        "PARKED",
        "RESTARTS",
        "AGE",
    ];
    if is_wide {
        headers.extend(["DELAYED", "INSTANCES", "MEMORY", "GENERATIONS", "RESOURCES", "ACCOUNT", "FILE"]);
    }
    let mut table = Table::new(&headers);
    for plugin in plugins {
        let mut row = vec![
            plugin.name.clone(),
            phase(plugin),
            plugin.generation.to_string(),
            plugin.version.clone().unwrap_or_default(),
            plugin.digest.as_deref().map(short_digest).unwrap_or_default(),
            plugin.subscriptions.len().to_string(),
            plugin.backlog().to_string(),
            plugin.n_parked().to_string(),
            plugin.usage.restarts.to_string(),
            plugin.age().map(|age| age.to_string()).unwrap_or_default(),
        ];
        if is_wide {
            let states = plugin.generations.iter().map(|it| format!("{}:{}", it.number, it.state));
            let resources = plugin.subscriptions.iter().map(|it| match it {
                SubscriptionView { forbidden: Some(_), resource, .. } => format!("{resource}:forbidden"),
                SubscriptionView { paused: Some(_), resource, .. } => format!("{resource}:paused"),
                SubscriptionView { resource, .. } => resource.clone(),
            });
            row.extend([
                plugin.n_delayed().to_string(),
                plugin.usage.instances.to_string(),
                bytes(plugin.memory()),
                states.collect::<Vec<_>>().join(","),
                resources.collect::<Vec<_>>().join(","),
                plugin.service_account.clone(),
                with_object_names(&plugin.file).into_owned(),
            ]);
        }
        table.row(row);
    }
    table
}

/// Returns a line about a file or object that defines no plugin.
fn refusal(RefusedFile { file, message }: &RefusedFile) -> String {
    let (file, message) = (with_object_names(file), with_object_names(message));
    format!("{} is refused: {}", file.escape_debug(), OneLine(message))
}

/// Returns the phase, and what it does not say: that the plugin may not watch something, that its writes are
/// not stored, that a version is refused, or that a newer one waits.
fn phase(plugin: &PluginView) -> String {
    let serves = plugin.generation > 0;
    let newer = match plugin {
        PluginView { refused: Some(_), .. } if serves => ",newer-refused",
        PluginView { refused: Some(_), phase, .. } if phase == "suspended" => ",refused",
        PluginView { waits_for, .. } if serves && !waits_for.is_empty() => ",newer-waits",
        _ => "",
    };
    let writes = match &*plugin.writes {
        "dry-run" => ",dry-run",
        "suspended" => ",writes-suspended",
        _ => "",
    };
    let watched = |is: fn(&SubscriptionView) -> bool, mark| {
        if plugin.subscriptions.iter().any(is) { mark } else { "" }
    };
    let forbidden = watched(|it| it.forbidden.is_some(), ",watch-forbidden");
    let paused = watched(|it| it.paused.is_some(), ",watch-paused");
    format!("{}{forbidden}{paused}{writes}{newer}", plugin.phase)
}

fn short_digest(digest: &str) -> String {
    digest.chars().take(DIGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::UsageView;

    pub(super) fn plugin() -> PluginView {
        let json = serde_json::json!({
            "name": "mirror", "file": "plugins/mirror.yaml", "component": "mirror.wasm",
            "service-account": "default/mirror", "phase": "serving", "generation": 2, "version": "1.0.0",
            "digest": "0123456789abcdef0123", "instances-lost": 1,
            "generations": [
                {"number": 1, "version": "0.9.0", "state": "gone", "reason": "replaced"},
                {"number": 2, "version": "1.0.0", "digest": "0123456789abcdef0123", "state": "serving",
                 "on-probation": true, "reason": "it was switched to"},
            ],
            "subscriptions": [
                {"name": "sources", "resource": "v1/configmaps", "synced": true,
                 "backlog": {"pending": 3, "parked": 1, "delivered": 10, "oldest-ms": 1500}},
            ],
            "work-queue": {"pending": 9, "ready": 4, "delayed": 5, "parked": 1, "oldest-ms": 2500},
            "host-bytes": {"limit": 100_663_296, "used": 2048},
            "usage": {"guest-cpu-ns": 5_000_000, "host-cpu-ns": 1_000_000, "calls": 12, "restarts": 1,
                      "instances": 1, "linear-memory-bytes": 1_310_720, "failures": 2,
                      "call-duration": [[3125, 10], [50_000, 2]],
                      "writes": [{"verb": "apply", "code": "200", "count": 7}]},
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn the_list_has_one_row_for_each_plugin() {
        let loading = PluginView { name: "new".into(), phase: "loading".into(), ..PluginView::default() };
        let mut waiting = plugin();
        waiting.waits_for = vec!["a right".into()];
        waiting.subscriptions.push(SubscriptionView::default());
        waiting.writes = "suspended".into();
        let refused = serde_json::json!({"time": "2026-11-27T16:00:00Z", "message": "no such file"});
        let mut suspended =
            PluginView { name: "bad".into(), phase: "suspended".into(), ..PluginView::default() };
        suspended.refused = Some(serde_json::from_value(refused).unwrap());
        insta::assert_snapshot!(table(&[plugin(), loading, waiting, suspended], false).text(true), @"
        NAME     PHASE                                  GENERATION   VERSION   DIGEST         WATCHES   BACKLOG   PARKED   RESTARTS   AGE
        mirror   serving                                2            1.0.0     0123456789ab   1         7         2        1          <none>
        new      loading                                0            <none>    <none>         0         0         0        0          <none>
        mirror   serving,writes-suspended,newer-waits   2            1.0.0     0123456789ab   2         7         2        1          <none>
        bad      suspended,refused                      0            <none>    <none>         0         0         0        0          <none>
        ");
        insta::assert_snapshot!(table(&[plugin()], true).text(true), @"
        NAME     PHASE     GENERATION   VERSION   DIGEST         WATCHES   BACKLOG   PARKED   RESTARTS   AGE      DELAYED   INSTANCES   MEMORY   GENERATIONS        RESOURCES       ACCOUNT          FILE
        mirror   serving   2            1.0.0     0123456789ab   1         7         2        1          <none>   5         1           1Mi      1:gone,2:serving   v1/configmaps   default/mirror   plugins/mirror.yaml
        ");
    }

    #[test]
    fn a_subscription_that_is_forbidden_or_paused_is_seen_in_the_list() {
        let mut forbidden = plugin();
        let json = serde_json::json!({"name": "places", "resource": "v1/namespaces", "synced": true,
            "forbidden": "ServiceAccount default/mirror may not list and watch v1/namespaces"});
        forbidden.subscriptions.push(serde_json::from_value(json).unwrap());
        let mut paused = forbidden.clone();
        paused.subscriptions[1].forbidden = None;
        paused.subscriptions[1].paused = Some("connection refused".to_owned());
        paused.writes = "dry-run".into();
        insta::assert_snapshot!(table(&[plugin(), forbidden.clone(), paused.clone()], false).text(true), @"
        NAME     PHASE                          GENERATION   VERSION   DIGEST         WATCHES   BACKLOG   PARKED   RESTARTS   AGE
        mirror   serving                        2            1.0.0     0123456789ab   1         7         2        1          <none>
        mirror   serving,watch-forbidden        2            1.0.0     0123456789ab   2         7         2        1          <none>
        mirror   serving,watch-paused,dry-run   2            1.0.0     0123456789ab   2         7         2        1          <none>
        ");
        let resources = |plugin: &PluginView| table(std::slice::from_ref(plugin), true).text(false);
        assert!(resources(&forbidden).contains("   v1/configmaps,v1/namespaces:forbidden   "));
        assert!(resources(&paused).contains("   v1/configmaps,v1/namespaces:paused   "));
        let described = describe::text(&paused, None);
        assert!(described.contains("Phase:            serving,watch-paused,dry-run\n"), "{described}");
        assert!(described.contains("<all>        paused: connection refused   "), "{described}");
    }

    #[test]
    fn the_description_has_what_an_operator_looks_for() {
        insta::assert_snapshot!(describe::text(&plugin(), None), @"
        Name:             mirror
        Phase:            serving
        File:             plugins/mirror.yaml
        Component:        mirror.wasm
        Service account:  default/mirror
        Generation:       2
        Version:          1.0.0
        Digest:           0123456789abcdef0123
        Generations:
          NUMBER   STATE                  SINCE    VERSION   DIGEST         LOST   REASON
          1        gone                   <none>   0.9.0     <none>         0      replaced
          2        serving,on-probation   <none>   1.0.0     0123456789ab   0      it was switched to
        Subscriptions:
          NAME      RESOURCE        NAMESPACES   STATE    WAITING   OLDEST   PARKED   DELIVERED   MERGED
          sources   v1/configmaps   <all>        synced   3         1.5s     1        10          0
        Work queue:       4 keys due, the oldest for 2.5s, 5 wait for their time, 1 parked
        Calls:            12, 2 failed
        Call p99:         50µs
        Queue wait p99:   <none>
        CPU time:         5.0ms in the guest, 1.0ms in the host
        Wall time:        0µs in calls, 0µs of it in imports
        Instances:        1, 1 lost, 1 restart
        Memory:           1Mi linear, 2Ki of 96Mi kept by the host
        Copied:           0 to the guest, 0 from it
        Cache reads:      0
        API requests:     0
        Writes:
          VERB    CODE   COUNT
          apply   200    7
        Recorded:         no
        ");
    }

    #[test]
    fn the_file_of_an_object_is_shown_as_the_object() {
        let path = "/plugins.oarlock.dev/team-a/mirror/4f2a-1/mirror";
        let mut of_object = PluginView { file: path.to_owned(), ..plugin() };
        let message = format!("{path}: the plugin name is already used in mirror.yaml");
        let error = serde_json::json!({"time": "2000-01-01T00:00:00Z", "message": message});
        of_object.refused = Some(serde_json::from_value(error).unwrap());
        let text = describe::text(&of_object, None);
        assert!(text.contains("File:             Plugin team-a/mirror\n"), "{text}");
        assert!(text.contains(" ago: Plugin team-a/mirror: the plugin name is already used in"), "{text}");
        let row = table(&[of_object], true).text(false);
        assert!(row.trim_end().ends_with("Plugin team-a/mirror"), "{row}");
        let refused = |file: &str| {
            refusal(&RefusedFile { file: file.to_owned(), message: format!("{path}: no\u{1b}") })
        };
        assert_eq!(refused("q.yaml"), r"q.yaml is refused: Plugin team-a/mirror: no\u{1b}");
        assert_eq!(refused("Plugin a/b"), r"Plugin a/b is refused: Plugin team-a/mirror: no\u{1b}");
    }

    #[test]
    fn one_of_a_kind_is_in_the_singular() {
        let mut one = plugin();
        one.work_queue = serde_json::from_value(serde_json::json!({"ready": 1, "delayed": 1})).unwrap();
        one.record =
            serde_json::from_value(serde_json::json!({"file": "a", "state": "b", "calls": 1})).unwrap();
        one.shadow = serde_json::from_value(serde_json::json!({"compared": 1, "waiting": 1})).unwrap();
        let shadow = PluginView { usage: UsageView::default(), ..one.clone() };
        let text = describe::text(&one, Some(&shadow));
        for part in [
            "Work queue:       1 key due, 1 waits for its time",
            "Instances:        1, 1 lost, 1 restart\n",
            "a: b, 1 call, 0 lost",
            "3 wait, 1 key waits\n",
            "Compared:       1 write: ",
            "1 waits for a counterpart",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }

    #[test]
    fn the_description_has_the_shadow_with_its_differences_and_the_record() {
        let mut served = plugin();
        let json = serde_json::json!({
            "digest": "fedcba9876543210fedc", "compared": 12, "equal": 10, "different": 2, "only-serving": 1,
            "only-shadow": 3, "waiting": 4, "left-out": 0,
            "differences": [
                {"verb": "apply", "object": "configmaps default/a", "path": "/data/n",
                 "serving": "0000000000000001", "shadow": "0000000000000002"},
                {"verb": "delete", "object": "configmaps default/b\u{1b}[2J", "path": "",
                 "serving": "0000000000000003", "shadow": null},
            ],
        });
        served.shadow = Some(serde_json::from_value(json).unwrap());
        let json = serde_json::json!({"file": "records/mirror.record", "bytes": 3 << 20, "limit": 256 << 20,
            "calls": 40, "lost": 0, "exact": false, "state": "recording"});
        served.record = Some(serde_json::from_value(json).unwrap());
        let shadow = PluginView { name: "mirror.shadow".to_owned(), ..plugin() };
        let text = describe::text(&served, Some(&shadow));
        let (_, end) = text.split_once("Writes:\n").unwrap();
        insta::assert_snapshot!(end, @r"
          VERB    CODE   COUNT
          apply   200    7
        Recorded:         records/mirror.record: recording, 40 calls, 0 lost, 3Mi of 256Mi
        Shadow:           mirror.shadow
          Phase:          serving
          Component:      mirror.wasm
          Version:        1.0.0
          Digest:         0123456789abcdef0123
          Events:         10 delivered, 3 wait, 4 keys wait
          Calls:          12, 2 failed
          Compared:       12 writes: 10 equal, 2 different
          Not compared:   1 by the plugin alone, 3 by the shadow alone, 4 wait for a counterpart, 0 left out
        Differences of the shadow:
          VERB     OBJECT                          PATH      SERVING            SHADOW
          apply    configmaps default/a            /data/n   0000000000000001   0000000000000002
          delete   configmaps default/b\u{1b}[2J   <body>    0000000000000003   <none>
        ");
        let json = serde_json::json!({"file": "records/mirror.record", "bytes": 3 << 20, "limit": 256 << 20,
            "calls": 40, "lost": 2, "exact": false, "state": "failed", "reason": "No space left on device"});
        served.record = Some(serde_json::from_value(json).unwrap());
        let text = describe::text(&served, None);
        let failed =
            "records/mirror.record: failed, 40 calls, 2 lost, 3Mi of 256Mi: No space left on device\n";
        assert!(text.contains(failed), "{text}");
        // A shadow that cannot be loaded.
        let refused = serde_json::from_value(serde_json::json!({
            "time": "2000-01-01T00:00:00Z", "message": "mirror-next.wasm is no component",
        }));
        let shadow = PluginView {
            name: "mirror.shadow".to_owned(),
            phase: "refused".to_owned(),
            refused: Some(refused.unwrap()),
            ..PluginView::default()
        };
        let text = describe::text(&plugin(), Some(&shadow));
        let (_, end) = text.split_once("Shadow:").unwrap();
        assert!(end.contains("  Phase:          refused\n"), "{end}");
        assert!(end.contains("ago: mirror-next.wasm is no component\n"), "{end}");
        assert!(end.ends_with("  Compared:       nothing: no version of the shadow serves\n"), "{end}");
    }
}
