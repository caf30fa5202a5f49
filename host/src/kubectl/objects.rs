//! `kubectl oarlock plugins`: the objects, as `kubectl get` prints them.

use kube::api::ListParams;
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::{ApiServer, Place, failure};
use crate::age::Age;
use crate::args::ListOutput;
use crate::commands::printed::{INTERVAL, ListPrinter, Shown};
use crate::failure::{Ended, Failure};
use crate::table::Table;
use oarlock_controller::report::Timestamp;

/// How many objects one page has, as kubectl asks for them.
const PAGE: u32 = 500;

/// Lists the plugins of a place, or one of them.
pub(super) async fn list(
    server: &ApiServer,
    place: &Place,
    plugin: Option<&str>,
    output: ListOutput,
) -> Ended {
    let api = server.objects(place);
    let name = plugin.map(|it| place.object_name(it)).transpose()?;
    let mut printer = ListPrinter::new(output);
    loop {
        let objects = match name {
            Some(name) => vec![api.get(name).await.map_err(failure)?],
            None => all(&api).await?,
        };
        let objects = objects.into_iter().map(|it| json_of(it, place)).collect::<Result<Vec<_>, _>>()?;
        let table = table(&objects, *place == Place::All, printer.is_wide());
        let names = objects.iter().map(|it| place.printed(text(it, "/metadata/name"))).collect();
        let json = match (name, objects.first()) {
            (Some(_), Some(object)) => object.clone(),
            _ => json!({"apiVersion": "v1", "kind": "List", "items": objects}),
        };
        printer.print(&Shown { json, table, names }, &nothing(place))?;
        if !output.watch {
            return Ok(());
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn all(api: &kube::Api<DynamicObject>) -> Result<Vec<DynamicObject>, Failure> {
    let mut objects = Vec::new();
    let mut params = ListParams::default().limit(PAGE);
    loop {
        let page = api.list(&params).await.map_err(failure)?;
        objects.extend(page.items);
        match page.metadata.continue_.filter(|it| !it.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(objects),
        }
    }
}

pub(super) fn nothing(place: &Place) -> String {
    match place {
        Place::All | Place::Cluster => "No resources found".to_owned(),
        Place::Namespace(name) => format!("No resources found in {name} namespace."),
    }
}

/// Returns an object as kubectl shows it: without the fields of server-side apply.
pub(super) fn json_of(mut object: DynamicObject, place: &Place) -> Result<Value, Failure> {
    object.metadata.managed_fields = None;
    let mut json = serde_json::to_value(object).map_err(Failure::running)?;
    // Items of a list have no type of their own.
    json["apiVersion"] = "oarlock.dev/v1alpha1".into();
    json["kind"] = place.kind().into();
    Ok(json)
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a member of a condition.
fn condition<'v>(object: &'v Value, kind: &str, pointer: &str) -> &'v str {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let found = conditions.and_then(|it| it.iter().find(|it| it["type"] == kind));
    found.map(|it| text(it, pointer)).unwrap_or_default()
}

/// Returns the reason of `ShadowReady`, with how many writes of the shadow differed, if any.
fn shadow(object: &Value) -> String {
    let reason = condition(object, "ShadowReady", "/reason");
    match object.pointer("/status/shadow/different").and_then(Value::as_u64) {
        None | Some(0) => reason.to_owned(),
        Some(different) => format!("{reason},{different}-different"),
    }
}

fn table(objects: &[Value], with_namespaces: bool, is_wide: bool) -> Table {
    let mut headers = vec!["NAME", "PHASE", "VERSION", "GENERATION", "WATCHES", "PARKED", "DEGRADED", "AGE"];
    if is_wide {
        headers.extend(["ACCOUNT", "DIGEST", "SHADOW", "MESSAGE"]);
    }
    let mut table = Table::new(&headers);
    for object in objects {
        let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        let number = |pointer| object.pointer(pointer).and_then(Value::as_i64).map(|it| it.to_string());
        let created: Option<Timestamp> = object
            .pointer("/metadata/creationTimestamp")
            .and_then(|it| serde_json::from_value(it.clone()).ok());
        let mut row = vec![
            if with_namespaces { format!("{namespace}/{name}") } else { name.to_owned() },
            text(object, "/status/phase").to_owned(),
            text(object, "/status/version").to_owned(),
            number("/status/generation").unwrap_or_default(),
            text(object, "/status/watches").to_owned(),
            number("/status/parked").unwrap_or_default(),
            condition(object, "Degraded", "/reason").to_owned(),
            created.map(|it| Age(it.elapsed()).to_string()).unwrap_or_default(),
        ];
        if is_wide {
            row.extend([
                text(object, "/spec/serviceAccountName").to_owned(),
                text(object, "/status/digest").to_owned(),
                shadow(object),
                condition(object, "Ready", "/message").to_owned(),
            ]);
        }
        table.row(row);
    }
    if with_namespaces { table.with_namespaces() } else { table }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_shown_as_kubectl_shows_them_also_without_a_status() {
        let objects = [
            json!({"metadata": {"name": "mirror", "namespace": "team-a"}, "spec": {"serviceAccountName": "m"},
                "status": {"phase": "Serving", "version": "1.0.0", "generation": 2, "watches": "v1/configmaps",
                    "parked": 1, "digest": "sha256:01", "conditions": [{"type": "Ready", "message": "serves\u{1b}"}, {"type": "Degraded", "reason": "Parked"},
                        {"type": "ShadowReady", "reason": "Serving"}], "shadow": {"different": 3}}}),
            json!({"metadata": {"name": "new", "namespace": "team-b"}, "spec": {}}),
        ];
        insta::assert_snapshot!(table(&objects, false, false).text(true), @r"
        NAME     PHASE     VERSION   GENERATION   WATCHES         PARKED   DEGRADED   AGE
        mirror   Serving   1.0.0     2            v1/configmaps   1        Parked     <none>
        new      <none>    <none>    <none>       <none>          <none>   <none>     <none>
        ");
        insta::assert_snapshot!(table(&objects, true, true).text(true), @r"
        NAMESPACE   NAME     PHASE     VERSION   GENERATION   WATCHES         PARKED   DEGRADED   AGE      ACCOUNT   DIGEST      SHADOW                MESSAGE
        team-a      mirror   Serving   1.0.0     2            v1/configmaps   1        Parked     <none>   m         sha256:01   Serving,3-different   serves\u{1b}
        team-b      new      <none>    <none>    <none>       <none>          <none>   <none>     <none>   <none>    <none>      <none>                <none>
        ");
    }
}
