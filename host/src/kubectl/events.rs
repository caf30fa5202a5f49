//! `kubectl oarlock events`: the Kubernetes Events about plugins.

use k8s_openapi::api::core::v1::Event;
use k8s_openapi::jiff;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use super::objects::nothing;
use super::{ApiServer, Place, failure};
use crate::age::Age;
use crate::args::ListOutput;
use crate::commands::printed::{INTERVAL, ListPrinter, Shown};
use crate::failure::{Ended, Failure};
use crate::table::Table;

/// Events about objects without a namespace are in this one.
const CLUSTER_EVENTS: &str = "default";

/// Lists the Events about the plugins of a place, or about one of them; the newest last, as kubectl does.
pub(super) async fn list(
    server: &ApiServer,
    place: &Place,
    plugin: Option<&str>,
    output: ListOutput,
) -> Ended {
    let api: Api<Event> = match place {
        Place::All => Api::all(server.client.clone()),
        Place::Namespace(name) => Api::namespaced(server.client.clone(), name),
        Place::Cluster => Api::namespaced(server.client.clone(), CLUSTER_EVENTS),
    };
    let mut selector =
        format!("involvedObject.apiVersion=oarlock.dev/v1alpha1,involvedObject.kind={}", place.kind());
    if let Some(plugin) = plugin {
        selector += &format!(",involvedObject.name={}", place.object_name(plugin)?);
    }
    let params = ListParams::default().fields(&selector);
    let mut printer = ListPrinter::new(output);
    loop {
        let mut events = api.list(&params).await.map_err(failure)?.items;
        events.sort_by_key(last);
        let names = events.iter().map(|it| format!("event/{}", it.metadata.name.clone().unwrap_or_default()));
        let table = table(&events, *place == Place::All, printer.is_wide());
        let items: Result<Vec<_>, _> = events.iter().map(serde_json::to_value).collect();
        let items = items.map_err(Failure::running)?;
        let shown = Shown {
            table,
            names: names.collect(),
            json: json!({"apiVersion": "v1", "kind": "List", "items": items}),
        };
        printer.print(&shown, &nothing(place))?;
        if !output.watch {
            return Ok(());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Returns when the event was seen last.
fn last(event: &Event) -> Option<jiff::Timestamp> {
    let last = event.last_timestamp.as_ref().map(|it| it.0);
    let last = last.or(event.series.as_ref().and_then(|it| it.last_observed_time.as_ref()).map(|it| it.0));
    let last = last.or(event.event_time.as_ref().map(|it| it.0));
    last.or(event.metadata.creation_timestamp.as_ref().map(|it| it.0))
}

fn table(events: &[Event], with_namespaces: bool, is_wide: bool) -> Table {
    let mut headers = vec!["OBJECT", "LAST SEEN", "TYPE", "REASON", "MESSAGE"];
    if is_wide {
        headers.insert(4, "COUNT");
    }
    let mut table = Table::new(&headers);
    for event in events {
        let object = &event.involved_object;
        let kind = object.kind.as_deref().unwrap_or_default().to_ascii_lowercase();
        let name = format!("{kind}/{}", object.name.as_deref().unwrap_or_default());
        let namespace = object.namespace.as_deref().unwrap_or_default();
        let last = last(event);
        let age = last.map(|it| jiff::Timestamp::now().duration_since(it));
        let age = age.map(|it| Age(it.try_into().unwrap_or_default()).to_string());
        let mut row = vec![
            if with_namespaces { format!("{namespace}/{name}") } else { name },
            age.unwrap_or_default(),
            event.type_.clone().unwrap_or_default(),
            event.reason.clone().unwrap_or_default(),
            event.message.clone().unwrap_or_default().trim().to_owned(),
        ];
        if is_wide {
            let count = event.series.as_ref().and_then(|it| it.count).or(event.count).unwrap_or(1);
            row.insert(4, count.to_string());
        }
        table.marked_row(row, last.map(|it| it.to_string()).unwrap_or_default());
    }
    if with_namespaces { table.with_namespaces() } else { table }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_either_form_has_its_object_type_reason_and_message() {
        let events: Vec<Event> = serde_json::from_value(json!([
            {"metadata": {}, "involvedObject": {"kind": "Plugin", "name": "mirror", "namespace": "team-a"},
             "type": "Warning", "reason": "RolledBack", "message": "no\n", "count": 3},
            {"metadata": {}, "involvedObject": {"kind": "Plugin", "name": "mirror", "namespace": "team-b"},
             "series": {"count": 7}},
        ]))
        .unwrap();
        insta::assert_snapshot!(table(&events, true, true).text(true), @r"
        NAMESPACE   OBJECT          LAST SEEN   TYPE      REASON       COUNT   MESSAGE
        team-a      plugin/mirror   <none>      Warning   RolledBack   3       no
        team-b      plugin/mirror   <none>      <none>    <none>       7       <none>
        ");
    }
}
