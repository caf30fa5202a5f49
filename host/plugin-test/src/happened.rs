//! What a plugin did, in the form in which a case expects it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::SignedDuration;
use oarlock_plugin::contract::{
    self, Entry, EventType, Failure, GroupVersionResource, Level, ObjectKey, ObjectRef, Outcome, WorkKey,
};
use oarlock_plugin::record::{Call, Ended, Import};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What happened since the previous step began. Each entry has the form of an entry of `expect`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Happened {
    pub(crate) writes: Vec<Value>,
    pub(crate) events: Vec<Value>,
    pub(crate) logs: Vec<Value>,
    pub(crate) failures: Vec<Value>,
    pub(crate) requeued: Vec<Value>,
}

/// The values of the plugin's metrics since its start, by name and labels.
#[derive(Debug, Default)]
pub(crate) struct Metrics(pub(crate) BTreeMap<String, f64>);

// === impl Happened ===

impl Happened {
    pub(crate) fn of(calls: &[Call], metrics: &mut Metrics) -> Self {
        let mut happened = Self::default();
        for call in calls {
            for import in &call.imports {
                happened.import(import, metrics);
            }
            happened.end(call);
        }
        happened
    }

    /// Returns the lines that the plugin logged as errors.
    pub(crate) fn errors(&self) -> Vec<String> {
        self.logs.iter().filter_map(|line| line["error"].as_str().map(str::to_owned)).collect()
    }

    /// Returns the list of a key of `expect`.
    pub(crate) fn list(&self, key: &str) -> &[Value] {
        match key {
            "writes" => &self.writes,
            "events" => &self.events,
            "logs" => &self.logs,
            "failures" => &self.failures,
            "requeued" => &self.requeued,
            _ => &[],
        }
    }

    /// Returns the calls that failed as texts: `on-add shop/web: terminal: the reason`.
    pub(crate) fn failed_calls(&self) -> Vec<String> {
        let shown = |failure: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (kind, message) = failure.as_object()?.iter().find(|(key, _)| *key != "call")?;
            Some(format!("{}: {kind}: {}", text(&failure["call"]), text(message)))
        };
        self.failures.iter().filter_map(shown).collect()
    }

    fn import(&mut self, import: &Import, metrics: &mut Metrics) {
        let Import { function, arguments, answer } = import;
        match function.as_str() {
            "client.create" | "client.apply" | "client.patch" | "client.replace" | "client.delete" => {
                let verb = &function["client.".len()..];
                self.writes.extend(write(verb, arguments, answer.as_ref()));
            }
            "events.emit" if is_ok(answer.as_ref()) => self.events.extend(event(arguments)),
            "log.log" => self.logs.extend(log(arguments)),
            "work-queue.add-after" if is_ok(answer.as_ref()) => {
                let delay = arguments["delay-ms"].as_u64().unwrap_or_default();
                self.requeued.extend(read::<WorkKey>(&arguments["key"]).map(|key| after(&key, delay)));
            }
            "metrics.counter-add" if is_ok(answer.as_ref()) => {
                *metrics.0.entry(metric(arguments)).or_default() +=
                    arguments["by"].as_f64().unwrap_or_default();
            }
            "metrics.gauge-set" if is_ok(answer.as_ref()) => {
                metrics.0.insert(metric(arguments), arguments["value"].as_f64().unwrap_or_default());
            }
            _ => {}
        }
    }

    fn end(&mut self, call: &Call) {
        let about = about(call);
        let failed = match &call.ended {
            Ended::Answer(answer) => {
                if let Some(Ok(Outcome::RequeueAfter(ms))) = read::<Result<Outcome, Failure>>(answer)
                    && let Some(key) = read::<WorkKey>(&call.argument)
                {
                    self.requeued.push(after(&key, ms.into()));
                }
                match answer.get("Err").and_then(read::<Failure>) {
                    Some(Failure::Retry(message)) => json!({"retry": message}),
                    Some(Failure::RetryAfter(info)) => {
                        let after = duration(info.after_ms.into());
                        json!({"retry-after": format!("{} (after {after})", info.message)})
                    }
                    Some(Failure::Terminal(message)) => json!({"terminal": message}),
                    None => return,
                }
            }
            Ended::Failed { message, .. } => json!({"trap": message}),
            Ended::Cancelled => return,
        };
        let mut failed = failed;
        failed["call"] = about.into();
        self.failures.push(failed);
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

fn is_ok(answer: Option<&Value>) -> bool {
    answer.is_some_and(|answer| answer.get("Ok").is_some())
}

fn write(verb: &str, arguments: &Value, answer: Option<&Value>) -> Option<Value> {
    let target = read::<GroupVersionResource>(&arguments["target"])?;
    let body = ["json", "body"].iter().find_map(|name| arguments[*name].as_str());
    let body = body.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)));
    let key = match read::<ObjectKey>(&arguments["key"]) {
        Some(key) => object(&key.namespace, &key.name),
        // The object of a create is in its text.
        None => {
            let metadata = |field: &str| body.as_ref().and_then(|it| it["metadata"][field].as_str());
            let name = metadata("name").map(str::to_owned);
            let generated = || metadata("generateName").map(|prefix| format!("{prefix}*"));
            object(
                arguments["namespace"].as_str().unwrap_or_default(),
                &name.or_else(generated).unwrap_or_default(),
            )
        }
    };
    let subresource = arguments["subresource"].as_str().filter(|it| !it.is_empty());
    let subresource = subresource.map(|it| format!("/{it}")).unwrap_or_default();
    let mut write = Map::new();
    write.insert(verb.to_owned(), format!("{}{subresource} {key}", resource(&target)).into());
    if let Some(body) = body {
        write.insert("body".to_owned(), body);
    }
    if let Some(error) = answer.and_then(|answer| answer.get("Err")) {
        write.insert("error".to_owned(), error_name(error).into());
    }
    Some(Value::Object(write))
}

/// Returns the case of the contract's `error`, as the contract spells it.
fn error_name(error: &Value) -> String {
    let name = match error {
        Value::String(name) => Some(name.as_str()),
        other => other.as_object().and_then(|it| it.keys().next()).map(String::as_str),
    };
    let mut text = String::new();
    for letter in name.unwrap_or("unknown").chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

fn event(arguments: &Value) -> Option<Value> {
    let regarding = read::<ObjectRef>(&arguments["regarding"])?;
    let kind = arguments["kind"].as_str().unwrap_or_default();
    let event_type = match read::<EventType>(&arguments["event-type"])? {
        EventType::Normal => "normal",
        EventType::Warning => "warning",
    };
    Some(json!({
        event_type: arguments["reason"],
        "regarding": format!("{kind} {}", object(&regarding.namespace, &regarding.name)),
        "note": arguments["note"],
    }))
}

fn log(arguments: &Value) -> Option<Value> {
    let level = match read::<Level>(&arguments["level"])? {
        Level::Trace => "trace",
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    let mut line = Map::new();
    line.insert(level.to_owned(), arguments["message"].clone());
    let pairs: Vec<Entry> = read(&arguments["pairs"])?;
    if !pairs.is_empty() {
        let fields: Map<_, _> = pairs.into_iter().map(|it| (it.name, it.value.into())).collect();
        line.insert("fields".to_owned(), Value::Object(fields));
    }
    Some(Value::Object(line))
}

/// Returns the name of a metric with its labels, as Prometheus writes it.
fn metric(arguments: &Value) -> String {
    let name = arguments["name"].as_str().unwrap_or_default();
    let labels: Vec<Entry> = read(&arguments["labels"]).unwrap_or_default();
    if labels.is_empty() {
        return name.to_owned();
    }
    let labels: Vec<_> =
        labels.iter().map(|contract::Entry { name, value }| format!("{name}={value:?}")).collect();
    format!("{name}{{{}}}", labels.join(","))
}

/// Returns the object or key of a call: `on-add default/web`, `reconcile ingress default/web`.
fn about(call: &Call) -> String {
    let text = |pointer: &str| call.argument.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let parts = [
        call.function.clone(),
        text("/kind").to_owned(),
        object(text("/object/namespace"), text("/object/name")),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

fn after(WorkKey { kind, object: key }: &WorkKey, ms: u64) -> Value {
    let parts = [kind.clone(), object(&key.namespace, &key.name), format!("after {}", duration(ms))];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ").into()
}

/// Returns a duration as a case writes it: `10m`, `1h 30m`.
fn duration(ms: u64) -> String {
    let duration = SignedDuration::try_from(Duration::from_millis(ms)).unwrap_or(SignedDuration::MAX);
    jiff::fmt::friendly::SpanPrinter::new().duration_to_string(&duration)
}

/// Returns `apps/v1/deployments`, or `v1/pods` in the core group.
fn resource(GroupVersionResource { group, version, plural }: &GroupVersionResource) -> String {
    if group.is_empty() { format!("{version}/{plural}") } else { format!("{group}/{version}/{plural}") }
}

fn object(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_the_lines_of_that_level() {
        let logs = vec![json!({"info": "a"}), json!({"error": "Traceback\n  b", "fields": {"c": "d"}})];
        assert_eq!(Happened { logs, ..Happened::default() }.errors(), ["Traceback\n  b"]);
    }
}
