//! Why the host does not carry out an operation: a message for people, and what they can do.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::dispatch::{Redeliver, RedeliverError};
use crate::reload::RollbackError;
use crate::status::RefusedFile;

/// How many names a message lists.
const NAMES_SHOWN: usize = 20;

/// How similar a name must be to be suggested.
const SIMILAR: f64 = 0.75;

/// An answer to an operation that was not carried out.
#[derive(Debug, Serialize)]
pub(crate) struct Refusal {
    #[serde(skip)]
    status: StatusCode,
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

// === impl Refusal ===

impl Refusal {
    pub(super) fn unknown_plugin(plugin: &str, names: &[Arc<str>]) -> Self {
        let hint = match nearest(plugin, names.iter().map(|name| &**name)) {
            Some(nearest) => format!("did you mean {nearest}? {}", the_plugins_are(names)),
            None => the_plugins_are(names),
        };
        Self {
            status: StatusCode::NOT_FOUND,
            error: format!("no plugin is named {plugin:?}"),
            hint: Some(hint),
        }
    }

    /// A Plugin or ClusterPlugin of which no version is loaded.
    pub(super) fn refused_object(plugin: &str, refused: &RefusedFile) -> Self {
        let RefusedFile { file, message } = refused;
        Self {
            status: StatusCode::NOT_FOUND,
            error: format!("the host does not run plugin {plugin}: it refuses {file}: {message}"),
            hint: Some("the conditions of the object say more: `kubectl describe` shows them".to_owned()),
        }
    }

    /// A Plugin or ClusterPlugin that the host has not loaded. The names of others are not for this user.
    pub(crate) fn not_loaded(object: &str) -> Self {
        Self {
            status: StatusCode::NOT_FOUND,
            error: format!("the host runs no {object}"),
            hint: Some(
                "kubectl oarlock plugins lists the objects; -o wide says why the host does not run one"
                    .to_owned(),
            ),
        }
    }

    /// An operation that only the leader of an election carries out.
    pub(super) fn standby(leader: &str) -> Self {
        let leads = match leader {
            "" => "no host leads at this moment".to_owned(),
            leader => format!("the leader is {leader}"),
        };
        Self {
            status: StatusCode::CONFLICT,
            error: format!("this host is on standby and calls no plugin: {leads}"),
            hint: Some(
                "run it on the leader: `kubectl exec -n NAMESPACE POD -- oarlock …`, where POD is the part of its \
                 identity before `_`. Or use `kubectl oarlock`"
                    .to_owned(),
            ),
        }
    }

    pub(super) fn busy(plugin: &str, limit: Duration) -> Self {
        let error = format!(
            "plugin {plugin} is in a call since {} s; the command is carried out when the call ends",
            limit.as_secs()
        );
        let hint = "oarlock top shows what the plugin does; limits.callDeadline in its file bounds a call";
        Self { status: StatusCode::GATEWAY_TIMEOUT, error, hint: Some(hint.to_owned()) }
    }

    /// The plugin is suspended by its file or object, which a command does not change.
    pub(super) fn suspended_by_definition(plugin: &str) -> Self {
        Self {
            status: StatusCode::CONFLICT,
            error: format!("plugin {plugin} stays suspended: its file has `suspend: true`"),
            hint: Some(
                "remove the key from the file, or set spec.suspend of the Plugin or ClusterPlugin to false; \
                 the host notices it by itself"
                    .to_owned(),
            ),
        }
    }

    pub(super) fn redeliver(plugin: &str, what: &Redeliver, error: RedeliverError) -> Self {
        let named = |namespace: &str, name: &str| match namespace {
            "" => name.to_owned(),
            _ => format!("{namespace}/{name}"),
        };
        let what = match what {
            Redeliver::All => "everything that is parked".to_owned(),
            Redeliver::Object { subscription, namespace, name } => {
                format!("{subscription} {}", named(namespace, name))
            }
            Redeliver::Key { kind, namespace, name } => format!("the key {kind} {}", named(namespace, name)),
        };
        let (status, hint) = match &error {
            RedeliverError::NotParked => {
                (StatusCode::NOT_FOUND, format!("oarlock dead-letters {plugin} lists what is parked"))
            }
            RedeliverError::UnknownSubscription(_) => {
                (StatusCode::NOT_FOUND, format!("oarlock plugins {plugin} lists its subscriptions"))
            }
            RedeliverError::NotServing => {
                (StatusCode::CONFLICT, format!("oarlock plugins {plugin} shows what it waits for"))
            }
        };
        Self { status, error: format!("{what} of plugin {plugin}: {error}"), hint: Some(hint) }
    }

    pub(super) fn roll_back(plugin: &str, error: &RollbackError) -> Self {
        Self {
            status: StatusCode::CONFLICT,
            error: format!("plugin {plugin} cannot be rolled back: {error}"),
            hint: Some(format!("oarlock plugins {plugin} lists its generations and their states")),
        }
    }

    /// An operation that the admin address does not serve.
    pub(super) fn only_on_the_socket() -> Self {
        Self {
            status: StatusCode::FORBIDDEN,
            error: "the admin address serves only operations that read, and no logs".to_owned(),
            hint: Some("use the control socket, on the host's machine and as its user".to_owned()),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (self.status, Json(self)).into_response()
    }
}

fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let similarity = |other: &str| match other.starts_with(name) && !name.is_empty() {
        true => 1.0,
        false => strsim::jaro_winkler(name, other),
    };
    let scored = names.map(|other| (similarity(other), other)).filter(|(score, _)| *score >= SIMILAR);
    scored.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, name)| name)
}

fn the_plugins_are(names: &[Arc<str>]) -> String {
    let shown = names.iter().take(NAMES_SHOWN).map(|name| &**name).collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => "the host has no plugin".to_owned(),
        n if n > NAMES_SHOWN => format!("the plugins are {shown} and {} others", n - NAMES_SHOWN),
        _ => format!("the plugins are {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(name: &str, names: &[&str]) -> String {
        let names: Vec<Arc<str>> = names.iter().map(|name| Arc::from(*name)).collect();
        Refusal::unknown_plugin(name, &names).hint.unwrap()
    }

    #[test]
    fn an_unknown_plugin_is_answered_with_the_nearest_name_and_all_names() {
        let names = ["census", "mirror", "quota"];
        assert_eq!(hint("miror", &names), "did you mean mirror? the plugins are census, mirror, quota");
        assert_eq!(hint("mir", &names), "did you mean mirror? the plugins are census, mirror, quota");
        assert_eq!(hint("zzz", &names), "the plugins are census, mirror, quota");
        assert_eq!(hint("x", &[]), "the host has no plugin");
        let many: Vec<_> = (0..30).map(|n| format!("plugin-{n}")).collect();
        let many: Vec<_> = many.iter().map(String::as_str).collect();
        assert!(hint("zzz", &many).ends_with("plugin-19 and 10 others"));
    }
}
