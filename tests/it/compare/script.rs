//! The scripts: requests as data.
//!
//! ```yaml
//! - name: create a ConfigMap
//!   POST: /api/v1/namespaces/${ns}/configmaps
//!   body: {metadata: {name: a}}             # an object, or a string that is sent as it is
//!   headers: {content-type: application/json}
//!   keep: {rv: /metadata/resourceVersion}   # ${rv} in later requests
//!   until: {at: /status/phase, is: Active}  # repeat until this holds; `status` is the HTTP status
//!   events: 3                               # repeat the watch until it sends this many events
//!   differs: {/spec/clusterIP: reason}      # known: a JSON pointer, `status`, `header NAME`, `*`
//! ```

use super::answer::Answer;
use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// One file of requests.
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
}

/// One request, and the known differences of its responses.
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Option<String>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) keep: BTreeMap<String, String>,
    pub(crate) until: Option<Until>,
    pub(crate) differs: BTreeMap<String, String>,
}

/// A condition that a response has to meet; the request is repeated until it does.
#[derive(Debug)]
pub(crate) enum Until {
    Value(ValueAt),
    /// A watch sends at least this many events before it ends.
    Events(usize),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ValueAt {
    at: String,
    is: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    name: String,
    #[serde(rename = "GET")]
    get: Option<String>,
    #[serde(rename = "POST")]
    post: Option<String>,
    #[serde(rename = "PUT")]
    put: Option<String>,
    #[serde(rename = "PATCH")]
    patch: Option<String>,
    #[serde(rename = "DELETE")]
    delete: Option<String>,
    body: Option<Value>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    keep: BTreeMap<String, String>,
    until: Option<ValueAt>,
    events: Option<usize>,
    #[serde(default)]
    differs: BTreeMap<String, String>,
}

// === impl Script ===

impl Script {
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let steps: Vec<RawStep> = serde_norway::from_str(text)?;
        let steps = steps.into_iter().map(Step::try_from).collect::<anyhow::Result<Vec<Step>>>()?;
        let mut names = BTreeSet::new();
        for Step { name, .. } in &steps {
            ensure!(names.insert(name), "two steps are named {name:?}");
        }
        Ok(Self { steps })
    }
}

// === impl Step ===

impl TryFrom<RawStep> for Step {
    type Error = anyhow::Error;

    fn try_from(raw: RawStep) -> anyhow::Result<Self> {
        let RawStep { name, get, post, put, patch, delete, body, headers, keep, until, events, differs } =
            raw;
        let mut requests = [("GET", get), ("POST", post), ("PUT", put), ("PATCH", patch), ("DELETE", delete)]
            .into_iter()
            .filter_map(|(method, path)| Some((method.to_owned(), path?)));
        let (method, path) = requests.next().with_context(|| format!("{name}: no request"))?;
        if requests.next().is_some() {
            bail!("{name}: two requests");
        }
        let until = match (until, events) {
            (Some(_), Some(_)) => bail!("{name}: both `until` and `events`"),
            (until, events) => until.map(Until::Value).or(events.map(Until::Events)),
        };
        let body = body.map(|body| body.as_str().map_or_else(|| body.to_string(), str::to_owned));
        Ok(Self { name, method, path, body, headers, keep, until, differs })
    }
}

// === impl Until ===

impl Until {
    pub(crate) fn holds(&self, answer: &Answer) -> bool {
        match self {
            Self::Value(ValueAt { at, is }) if at == "status" => *is == answer.status,
            Self::Value(ValueAt { at, is }) => answer.body.pointer(at) == Some(is),
            Self::Events(n) => answer.n_events() >= *n,
        }
    }
}
