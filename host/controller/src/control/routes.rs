//! The operations as HTTP requests.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get, post};
use axum::{Json, Router};
use futures::stream;
use serde::{Deserialize, Serialize};

use super::{Control, GuestOutput, Refusal};
use crate::dispatch::{ExistingOf, Redeliver};
use crate::reload::RolledBack;
use crate::report::{self, HostEvent, Line, LineReader, Timestamp};

/// Which lines of a plugin are asked for.
#[derive(Debug, Deserialize)]
pub(crate) struct LinesQuery {
    /// Only the last lines; without it all that the host keeps.
    tail: Option<u64>,
    /// Goes on with new lines.
    #[serde(default)]
    follow: bool,
    /// JSON objects in place of lines for people.
    #[serde(default)]
    json: bool,
    /// Only lines that are at most so many seconds old.
    since: Option<u64>,
    /// Puts the number of each line in front of it, so that a client can go on after its connection is lost.
    #[serde(default)]
    numbered: bool,
    /// Begins with this line of this log, if it is the log of the plugin: `LOG-NUMBER`.
    from: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ParkedQuery {
    plugin: Option<String>,
}

/// What is to be delivered again.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum RedeliverRequest {
    All,
    Object {
        subscription: String,
        namespace: String,
        name: String,
    },
    Key {
        kind: String,
        namespace: String,
        name: String,
    },
    /// Every existing object, of one subscription or of all.
    Existing {
        subscription: Option<String>,
    },
}

/// What a command has done to a plugin.
#[derive(Debug, Serialize)]
pub(crate) struct Done<T> {
    plugin: String,
    #[serde(flatten)]
    what: T,
}

/// A command whose result is no more than that it was carried out.
#[derive(Debug, Serialize)]
struct Nothing {}

/// The end of a suspension by an operator.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Resumed {
    /// The plugin's definition still suspends it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stays_suspended: bool,
}

/// How many objects and keys the host tries again.
#[derive(Debug, Serialize)]
pub(crate) struct Redelivered {
    redelivered: u64,
    /// There may be fewer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_most: bool,
    /// Those that exist, by subscription.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    subscriptions: Vec<ExistingOf>,
}

/// How many versions the host tries again.
#[derive(Debug, Serialize)]
pub(crate) struct Released {
    released: usize,
}

/// The answer to a command.
type Answer<T> = Result<Json<Done<T>>, Refusal>;

/// How lines are written.
#[derive(Clone, Copy, Debug)]
struct LineForm {
    json: bool,
    numbered: bool,
    since: Option<Timestamp>,
}

/// The header with the name of a log: the numbers of lines count within it.
const LOG_HEADER: &str = "oarlock-log";

/// The header with the number of the line with which the answer begins, whether there is such a line yet or
/// not.
const FIRST_HEADER: &str = "oarlock-first-line";

/// Returns the operations that read, for the admin address. `in_turn` bounds how many of each page about all
/// plugins are made at a time.
pub(crate) fn reading(
    control: Control,
    in_turn: impl Fn(MethodRouter<Control>) -> MethodRouter<Control>,
) -> Router {
    let other = any(|| async { Refusal::only_on_the_socket() });
    pages(GuestOutput::Withheld, in_turn).route("/v1/plugins/{name}/{operation}", other).with_state(control)
}

/// Returns all operations, for the control socket.
pub(crate) fn all(control: Control) -> Router {
    pages(GuestOutput::Shown, |route| route)
        .route("/v1/plugins/{name}/lines", get(lines))
        .route("/v1/plugins/{name}/suspend", post(suspend))
        .route("/v1/plugins/{name}/resume", post(resume))
        .route("/v1/plugins/{name}/redeliver", post(redeliver))
        .route("/v1/plugins/{name}/rollback", post(roll_back))
        .route("/v1/plugins/{name}/release", post(release))
        .with_state(control)
}

fn pages(
    output: GuestOutput,
    of_all: impl Fn(MethodRouter<Control>) -> MethodRouter<Control>,
) -> Router<Control> {
    let plugins = move |State(control): State<Control>| async move { json(&control.plugins(output)) };
    let plugin = move |State(control): State<Control>, Path(name): Path<String>| async move {
        control.plugin(&name, output).map(|plugin| json(&plugin))
    };
    Router::new()
        .route("/v1/host", get(host))
        .route("/v1/plugins", of_all(get(plugins)))
        .route("/v1/plugins/{name}", get(plugin))
        .route("/v1/parked", of_all(get(parked)))
}

async fn host(State(control): State<Control>) -> Response {
    json(&control.host())
}

async fn parked(
    State(control): State<Control>,
    Query(query): Query<ParkedQuery>,
) -> Result<Response, Refusal> {
    Ok(json(&control.parked(query.plugin.as_deref()).await?))
}

async fn suspend(State(control): State<Control>, Path(plugin): Path<String>) -> Answer<Nothing> {
    control.suspend(&plugin).await?;
    Ok(Json(Done { plugin, what: Nothing {} }))
}

async fn resume(State(control): State<Control>, Path(plugin): Path<String>) -> Answer<Resumed> {
    let stays_suspended = control.resume(&plugin).await?;
    Ok(Json(Done { plugin, what: Resumed { stays_suspended } }))
}

pub(crate) async fn redeliver(
    State(control): State<Control>,
    Path(plugin): Path<String>,
    Json(what): Json<RedeliverRequest>,
) -> Answer<Redelivered> {
    let what = match what {
        RedeliverRequest::Existing { subscription } => {
            let subscriptions = control.deliver_existing(&plugin, subscription).await?;
            let (redelivered, at_most) = ExistingOf::total(&subscriptions);
            return Ok(Json(Done { plugin, what: Redelivered { redelivered, at_most, subscriptions } }));
        }
        RedeliverRequest::All => Redeliver::All,
        RedeliverRequest::Object { subscription, namespace, name } => {
            Redeliver::Object { subscription, namespace, name }
        }
        RedeliverRequest::Key { kind, namespace, name } => Redeliver::Key { kind, namespace, name },
    };
    let redelivered = control.redeliver(&plugin, what).await?;
    let what = Redelivered { redelivered, at_most: false, subscriptions: Vec::new() };
    Ok(Json(Done { plugin, what }))
}

pub(crate) async fn roll_back(
    State(control): State<Control>,
    Path(plugin): Path<String>,
) -> Answer<RolledBack> {
    let what = control.roll_back(&plugin).await?;
    Ok(Json(Done { plugin, what }))
}

pub(crate) async fn release(State(control): State<Control>, Path(plugin): Path<String>) -> Answer<Released> {
    let released = control.release(&plugin).await?;
    Ok(Json(Done { plugin, what: Released { released } }))
}

/// Streams the lines about a plugin. With `follow` the stream ends with the plugin or the host.
pub(crate) async fn lines(
    State(control): State<Control>,
    Path(plugin): Path<String>,
    Query(query): Query<LinesQuery>,
) -> Result<Response, Refusal> {
    let LinesQuery { tail, follow, json, since, numbered, from } = query;
    let kept = control.reporter.kept_lines(&plugin).ok_or_else(|| control.unknown(&plugin))?;
    let reader = from.and_then(|from| kept.reader_from(&from)).unwrap_or_else(|| kept.reader(tail));
    let since = since.map(|seconds| Timestamp::now().before(Duration::from_secs(seconds)));
    let form = LineForm { json, numbered, since };
    let (log, first) = (kept.id().to_string(), reader.next().to_string());
    let token = control.token.clone();
    let read = move |reader: Option<LineReader>| {
        let token = token.clone();
        async move {
            let mut reader = reader?;
            let mut is_open = true;
            loop {
                let text = text_of(&mut reader, form);
                if !text.is_empty() {
                    let next = (follow && is_open).then_some(reader);
                    return Some((Ok::<_, Infallible>(Bytes::from(text)), next));
                }
                if !follow || !is_open {
                    return None;
                }
                // The last lines are those that were reported before the end.
                is_open = tokio::select! {
                    biased;
                    () = token.cancelled() => false,
                    is_open = reader.changed() => is_open,
                };
            }
        }
    };
    let content_type = if json { "application/x-ndjson" } else { "text/plain; charset=utf-8" };
    let body = Body::from_stream(stream::unfold(Some(reader), read));
    let headers = [(header::CONTENT_TYPE.as_str(), content_type), (LOG_HEADER, &log), (FIRST_HEADER, &first)];
    Ok((headers, body).into_response())
}

fn text_of(reader: &mut LineReader, form: LineForm) -> Vec<u8> {
    let LineForm { json, numbered, since } = form;
    let read = reader.read();
    let skipped = (read.skipped > 0).then(|| Line {
        time: Timestamp::now(),
        event: HostEvent::ReportsDropped { count: read.skipped },
        plugin: None,
        generation: None,
    });
    // A line about lost lines has the number of the last of them: a client that goes on after it loses no
    // more.
    let numbers = skipped.iter().map(|_| read.first.saturating_sub(1)).chain(read.first..);
    let mut text = Vec::new();
    for (line, number) in skipped.iter().chain(&read.lines).zip(numbers) {
        if since.is_some_and(|since| line.time < since) {
            continue;
        }
        if numbered {
            text.extend_from_slice(format!("{number} ").as_bytes());
        }
        match json {
            // Serialising into memory does not fail.
            true => drop(report::write_json(&mut text, line)),
            false => text.extend_from_slice(line.to_string().as_bytes()),
        }
        text.push(b'\n');
    }
    text
}

fn json(page: &impl Serialize) -> Response {
    match report::to_json(page) {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response(),
    }
}
