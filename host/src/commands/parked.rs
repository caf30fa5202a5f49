//! `oarlock dead-letters` and `oarlock redeliver`: what is parked, and another try of it or of all objects.

use oarlock_controller::report::Counted;
use oarlock_guest_build::progress;
use serde::Deserialize;
use serde_json::{Value, json};

use super::plugin_name;
use super::printed::{INTERVAL, ListPrinter, Shown, print_answer};
use crate::age::Age;
use crate::args::{AnswerOutput, ListOutput, ParkedArgs, ParkedChoice, RedeliverArgs};
use crate::control_client::{ControlClient, Finding, Names, connect};
use crate::failure::{Ended, Failure};
use crate::shell_word;
use crate::table::Table;
use crate::view::{ParkedOf, ParkedView};

/// How many characters of an error the table shows; all of it with `-o wide`.
const ERROR: usize = 60;

pub(crate) async fn list(args: ParkedArgs, finding: Finding<'_>) -> Ended {
    let ParkedArgs { plugin, list: output, host } = args;
    let plugin = plugin.as_deref().map(plugin_name).transpose()?;
    show(connect(host, finding).await?, plugin, output).await
}

/// Shows what a host answers: what one plugin has parked, or all.
pub(crate) async fn show(mut client: ControlClient, plugin: Option<&str>, list: ListOutput) -> Ended {
    let path = client.names().parked(plugin);
    let mut printer = ListPrinter::new(list);
    let mut is_first = true;
    loop {
        let page: Value = match std::mem::take(&mut is_first) {
            true => client.get(&path).await?,
            false => client.get_again(&path).await?,
        };
        let mut view = ParkedView::deserialize(&page).map_err(Failure::running)?;
        for it in &mut view.parked {
            it.plugin = client.names().shown(&it.plugin);
        }
        let table = table(&view.parked, printer.is_wide());
        let shown = Shown {
            table: if client.names().is_all() { table.with_namespaces() } else { table },
            names: view.parked.iter().map(arguments).collect(),
            json: page,
        };
        printer.print(&shown, "nothing is parked")?;
        for plugin in &view.unanswered {
            progress::say(format!(
                "note: plugin {plugin} did not answer within 5 s, because a call is in progress: its parked \
                 objects and keys are not listed. Try again"
            ));
        }
        let n_shown = view.parked.len() as u64;
        if view.total > n_shown && view.unanswered.is_empty() {
            progress::say(format!("note: {} are parked, the first {n_shown} are listed", view.total));
        }
        if !list.watch {
            return Ok(());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

pub(crate) async fn redeliver(args: RedeliverArgs, finding: Finding<'_>) -> Ended {
    let RedeliverArgs { plugin, parked, output, host } = args;
    let plugin = plugin_name(&plugin)?;
    let what = requested(parked, plugin, &Names::OfHost)?;
    deliver_again(connect(host, finding).await?, plugin, what, output).await
}

/// Returns the request for what is to be tried again.
pub(crate) fn requested(parked: ParkedChoice, plugin: &str, names: &Names) -> Result<Value, Failure> {
    let ParkedChoice { subscription, object, key, all, existing } = parked;
    let what = match (subscription, object, key, all) {
        (subscription, None, None, false) if existing => json!({"existing": {"subscription": subscription}}),
        (Some(subscription), Some(object), None, false) => {
            let (namespace, name) = object_name(&object)?;
            json!({"object": {"subscription": subscription, "namespace": namespace, "name": name}})
        }
        (None, None, Some(key), false) => {
            let kind = key.first().map_or("", String::as_str);
            let (namespace, name) = object_of_key(key.get(1).map_or("", String::as_str));
            json!({"key": {"kind": kind, "namespace": namespace, "name": name}})
        }
        (None, None, None, true) => json!("all"),
        _ => {
            return Err(Failure::caller(anyhow::anyhow!("redeliver does not know what to deliver again"))
                .hint(format!(
                    "name SUBSCRIPTION NAMESPACE/NAME, or --key KIND [NAMESPACE/NAME], or --all, or --existing; \
                     `{}` lists what is parked",
                    names.command("dead-letters", Some(plugin))
                )));
        }
    };
    Ok(what)
}

/// Lets a host try it again, and prints how much that is.
pub(crate) async fn deliver_again(
    mut client: ControlClient,
    plugin: &str,
    what: Value,
    output: AnswerOutput,
) -> Ended {
    let path = client.names().operation(plugin, "redeliver");
    let done: Value = client.post(&path, what).await?;
    let object = client.names().object(plugin);
    let top = client.names().command("top", Some(plugin));
    print_answer(output, &done, || match done["redelivered"].as_u64().unwrap_or(0) {
        n if done["subscriptions"].is_array() => {
            format!("{object}: delivers {}. `{top}` shows how many wait\n", existing(n, &done))
        }
        0 => format!("{object}: nothing is parked\n"),
        1 => format!("{object}: 1 object or key is tried again\n"),
        n => format!("{object}: {n} objects and keys are tried again\n"),
    })
}

/// Returns how many existing objects are delivered again, and of which subscriptions.
fn existing(n_objects: u64, done: &Value) -> String {
    let subscriptions = done["subscriptions"].as_array().into_iter().flatten().map(|it| {
        let note = match (it["forbidden"] == true, it["paused"] == true) {
            (true, _) => ": forbidden, none is delivered",
            (false, true) => ": paused, they wait",
            (false, false) => "",
        };
        let name = it["name"].as_str().unwrap_or_default().escape_debug();
        format!("{name} {}{}{note}", at_most(it), it["objects"])
    });
    let subscriptions: Vec<_> = subscriptions.collect();
    let n_objects = Counted(n_objects, "existing object");
    format!("{}{n_objects} again ({})", at_most(done), subscriptions.join("; "))
}

fn at_most(counted: &Value) -> &'static str {
    if counted["at-most"] == true { "at most " } else { "" }
}

fn table(parked: &[ParkedOf], is_wide: bool) -> Table {
    let mut table =
        Table::new(&["PLUGIN", "WATCH", "KEY", "OBJECT", "TRIES", "SINCE", "REASON", "LAST-ERROR"]);
    for it in parked {
        let error = match is_wide || it.last_error.chars().count() <= ERROR {
            true => it.last_error.clone(),
            false => it.last_error.chars().take(ERROR).chain(['…']).collect(),
        };
        table.row([
            it.plugin.clone(),
            it.subscription.clone().unwrap_or_else(|| "-".to_owned()),
            it.kind.clone().unwrap_or_else(|| "-".to_owned()),
            if it.kind.is_some() && object_of(it).is_empty() { "-".to_owned() } else { object_of(it) },
            it.tries.to_string(),
            Age(it.since.elapsed()).to_string(),
            it.reason.clone(),
            error,
        ]);
    }
    table
}

/// Returns the object as `redeliver` takes it; empty for a key without an object. A plugin chooses the texts
/// of its keys, so the name of one may look like an option, or as if it had a namespace.
fn object_of(parked: &ParkedOf) -> String {
    match (&*parked.namespace, &*parked.name) {
        ("", "") if parked.kind.is_some() => String::new(),
        ("", "") => "(on-synced)".to_owned(),
        ("", name) if name.starts_with('-') || name.contains('/') => format!("/{name}"),
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// Returns the arguments of `redeliver` for it, as a shell takes them.
fn arguments(parked: &ParkedOf) -> String {
    let (plugin, object) = (&*parked.plugin, &*object_of(parked));
    let words = match (parked.subscription.as_deref(), parked.kind.as_deref()) {
        // `redeliver` cannot tell these from an option or another key.
        (_, Some(kind)) if [kind, &*parked.namespace].iter().any(|text| text.starts_with('-')) => {
            vec![plugin, "--all"]
        }
        (_, Some(_)) if parked.namespace.contains('/') => vec![plugin, "--all"],
        (_, Some(kind)) if object.is_empty() => vec![plugin, "--key", kind],
        (_, Some(kind)) => vec![plugin, "--key", kind, object],
        (Some(_), None) if object.starts_with('(') => vec![plugin, "--all"],
        (Some(subscription), None) => vec![plugin, subscription, object],
        (None, None) => vec![plugin],
    };
    words.into_iter().map(shell_word::quoted).collect::<Vec<_>>().join(" ")
}

/// Parses the object of a key: its parts may be any text, and are empty for a key without an object.
fn object_of_key(text: &str) -> (&str, &str) {
    text.split_once('/').unwrap_or(("", text))
}

/// Parses NAMESPACE/NAME, or NAME alone.
fn object_name(text: &str) -> Result<(&str, &str), Failure> {
    let (namespace, name) = text.split_once('/').unwrap_or(("", text));
    if name.is_empty() || name.contains('/') {
        return Err(Failure::caller(anyhow::anyhow!("{text:?} is not NAMESPACE/NAME"))
            .hint("an object without a namespace is NAME alone"));
    }
    Ok((namespace, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(json: Value) -> ParkedOf {
        let mut all = json!({"plugin": "mirror", "namespace": "default", "name": "a", "tries": 6,
            "since": "2000-01-01T00:00:00Z", "reason": "failed", "last-error": "no"});
        all.as_object_mut().unwrap().extend(json.as_object().unwrap().clone());
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn each_row_can_be_passed_to_redeliver() {
        let rows = [
            parked(json!({"subscription": "sources"})),
            parked(json!({"kind": "copy", "namespace": ""})),
            parked(json!({"subscription": "sources", "namespace": "", "name": ""})),
        ];
        let names = rows.each_ref().map(arguments);
        assert_eq!(names, ["mirror sources default/a", "mirror --key copy a", "mirror --all"]);
        let text = table(&rows, false).text(true);
        let columns: Vec<_> =
            text.lines().map(|line| line.split_whitespace().take(5).collect::<Vec<_>>()).collect();
        assert_eq!(columns[0], ["PLUGIN", "WATCH", "KEY", "OBJECT", "TRIES"]);
        assert_eq!(columns[1], ["mirror", "sources", "-", "default/a", "6"]);
        assert_eq!(columns[2], ["mirror", "-", "copy", "a", "6"]);
        assert_eq!(columns[3], ["mirror", "sources", "-", "(on-synced)", "6"]);
    }

    /// A schedule's key has no object, and a plugin may choose any texts.
    #[test]
    fn a_key_can_be_pasted_into_a_shell_and_is_then_the_one_that_is_requested() {
        #[derive(clap::Parser)]
        struct Parsed {
            plugin: String,
            #[command(flatten)]
            parked: ParkedChoice,
        }
        let texts = [
            ("tick", "", "", "mirror --key tick"),
            ("copy", "", "a", "mirror --key copy a"),
            ("copy", "b", "a", "mirror --key copy b/a"),
            ("copy", "b", "", "mirror --key copy b/"),
            ("all pods", "", "it's", r"mirror --key 'all pods' 'it'\''s'"),
            ("url", "", "http://a", "mirror --key url /http://a"),
            ("", "", "-o", "mirror --key '' /-o"),
            ("tick", "", "(on-synced)", "mirror --key tick '(on-synced)'"),
        ];
        for (kind, namespace, name, pasted) in texts {
            let row = parked(json!({"kind": kind, "namespace": namespace, "name": name}));
            assert_eq!(arguments(&row), pasted);
            // What a shell makes of the quotes.
            let words: Vec<_> = std::iter::once("redeliver".to_owned())
                .chain(["mirror", "--key", kind].map(str::to_owned))
                .chain(Some(object_of(&row)).filter(|object| !object.is_empty()))
                .collect();
            let Parsed { plugin, parked } = clap::Parser::try_parse_from(words).unwrap();
            let requested = requested(parked, &plugin, &Names::OfHost).unwrap();
            assert_eq!(requested, json!({"key": {"kind": kind, "namespace": namespace, "name": name}}));
        }
        for (kind, namespace) in [("-x", ""), ("copy", "-n"), ("copy", "a/b")] {
            let row = parked(json!({"kind": kind, "namespace": namespace, "name": "c"}));
            assert_eq!(arguments(&row), "mirror --all");
        }
        let rows = [parked(json!({"kind": "tick", "namespace": "", "name": ""}))];
        let text = table(&rows, false).text(true);
        let second: Vec<_> = text.lines().nth(1).unwrap().split_whitespace().take(5).collect();
        assert_eq!(second, ["mirror", "-", "tick", "-", "6"]);
    }

    #[test]
    fn the_answer_says_how_many_objects_each_subscription_delivers() {
        let done = json!({"subscriptions": [{"name": "pods", "objects": 1}]});
        assert_eq!(existing(1, &done), "1 existing object again (pods 1)");
        let many = json!({"name": "nodes", "objects": 9, "at-most": true});
        let done = json!({"at-most": true, "subscriptions": [{"name": "pods", "objects": 0}, many]});
        assert_eq!(existing(9, &done), "at most 9 existing objects again (pods 0; nodes at most 9)");
        let done = json!({"subscriptions": [
            {"name": "pods", "objects": 2, "paused": true},
            {"name": "nodes", "objects": 0, "forbidden": true},
        ]});
        let expected =
            "2 existing objects again (pods 2: paused, they wait; nodes 0: forbidden, none is delivered)";
        assert_eq!(existing(2, &done), expected);
    }

    #[test]
    fn an_object_has_a_name_and_may_have_a_namespace() {
        assert_eq!(object_name("a/b").unwrap(), ("a", "b"));
        assert_eq!(object_name("b").unwrap(), ("", "b"));
        for bad in ["", "a/", "a/b/c"] {
            assert!(object_name(bad).is_err(), "{bad}");
        }
    }
}
