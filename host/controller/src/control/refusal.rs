//! Why the host does not carry out an operation: a message for people, and what they can do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::dispatch::{Redeliver, RedeliverError};
use crate::reload::RollbackError;
use crate::report::{Counted, Named, with_object_names};
use crate::shadow;
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
    /// The hint for a user of `kubectl oarlock`, if it is another one.
    #[serde(skip)]
    kubectl_hint: Option<String>,
}

/// The Plugin or ClusterPlugin of a plugin, for commands.
#[derive(Clone, Copy)]
struct Object<'a> {
    /// None: it is a ClusterPlugin.
    namespace: Option<&'a str>,
    name: &'a str,
}

// === impl Refusal ===

impl Refusal {
    fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into(), hint: None, kubectl_hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    fn kubectl_hint(self, hint: impl Into<String>) -> Self {
        Self { kubectl_hint: Some(hint.into()), ..self }
    }

    /// Returns it for a user of `kubectl oarlock`.
    pub(crate) fn for_kubectl(self) -> Self {
        Self { hint: self.kubectl_hint.or(self.hint), kubectl_hint: None, ..self }
    }

    pub(super) fn unknown_plugin(plugin: &str, names: &[Arc<str>]) -> Self {
        let hint = match nearest(plugin, names.iter().map(|name| &**name)) {
            Some(nearest) => format!("did you mean {nearest}? {}", the_plugins_are(names)),
            None => the_plugins_are(names),
        };
        Self::new(StatusCode::NOT_FOUND, format!("no plugin is named {plugin:?}")).hint(hint)
    }

    /// A Plugin or ClusterPlugin of which no version is loaded.
    pub(super) fn refused_object(plugin: &str, refused: &RefusedFile) -> Self {
        let RefusedFile { file, message } = refused;
        let object = Object::of(plugin);
        let (file, message) = (with_object_names(file), with_object_names(message));
        let error = format!("the host does not run plugin {plugin}: it refuses {file}: {message}");
        Self::new(StatusCode::NOT_FOUND, error)
            .hint(format!("`kubectl describe {object}` shows the conditions of the object"))
    }

    /// A Plugin or ClusterPlugin that the host has not loaded. The names of others are not for this user.
    pub(crate) fn not_loaded(namespace: Option<&str>, name: &str) -> Self {
        let object = Object { namespace, name };
        let error = match namespace {
            Some(namespace) => format!("the host runs no Plugin {namespace}/{name}"),
            None => format!("the host runs no ClusterPlugin {name}"),
        };
        Self::new(StatusCode::NOT_FOUND, error)
            .hint(format!("`kubectl oarlock plugins {} -o wide` says why", object.arguments()))
    }

    /// An operation that only the leader of an election carries out.
    pub(super) fn standby(leader: &str) -> Self {
        let leads = match leader {
            "" => "no host leads at this moment".to_owned(),
            leader => format!("the leader is {leader}"),
        };
        let error = format!("this host is on standby and calls no plugin: {leads}");
        Self::new(StatusCode::CONFLICT, error)
            .hint(
                "run it on the leader: `kubectl exec -n NAMESPACE POD -- oarlock …`, where POD is the part of its \
                 identity before `_`. Or use `kubectl oarlock`",
            )
            .kubectl_hint(
                "leave out --server-address: without it the command finds the leader. A leader outside of the \
                 cluster needs --server-address with its own address",
            )
    }

    pub(super) fn busy(plugin: &str, limit: Duration) -> Self {
        let object = Object::of(plugin);
        let error = format!(
            "plugin {plugin} is in a call since {} s; the command is carried out when the call ends",
            limit.as_secs()
        );
        Self::new(StatusCode::GATEWAY_TIMEOUT, error)
            .hint("oarlock top shows what the plugin does; limits.callDeadline in its file bounds a call")
            .kubectl_hint(format!(
                "`kubectl oarlock top {}` shows what the plugin does; spec.limits.callDeadline bounds a call",
                object.arguments()
            ))
    }

    /// The same for a command that is not carried out when its caller has gone.
    pub(super) fn busy_and_forgotten(plugin: &str, limit: Duration) -> Self {
        let error = format!(
            "plugin {plugin} is in a call since {} s; nothing is delivered again, try it when the call ends",
            limit.as_secs()
        );
        Self { error, ..Self::busy(plugin, limit) }
    }

    /// The plugin is suspended by its file or object, which a command does not change.
    pub(super) fn suspended_by_definition(plugin: &str) -> Self {
        let error = format!("plugin {plugin} stays suspended: its file or object has `suspend: true`");
        Self::new(StatusCode::CONFLICT, error).hint(
            "remove the key from the file, or set spec.suspend of the Plugin or ClusterPlugin to false; \
             the host notices it by itself",
        )
    }

    pub(super) fn redeliver(plugin: &str, what: &Redeliver, error: RedeliverError) -> Self {
        let what = match what {
            Redeliver::All => "everything that is parked".to_owned(),
            Redeliver::Object { subscription, namespace, name } => {
                Named(subscription, namespace, name).to_string()
            }
            Redeliver::Key { kind, namespace, name } => {
                format!("the key {}", Named(kind, namespace, name))
            }
        };
        Self::not_delivered(plugin, &what, error)
    }

    /// The existing objects are not delivered again, those of a subscription or all.
    pub(super) fn existing(plugin: &str, subscription: Option<&str>, error: RedeliverError) -> Self {
        let of = subscription.map(|name| format!(" of subscription {name:?}")).unwrap_or_default();
        Self::not_delivered(plugin, &format!("every existing object{of}"), error)
    }

    fn not_delivered(plugin: &str, what: &str, error: RedeliverError) -> Self {
        let object = Object::of(plugin);
        let refusal = |status| Self::new(status, format!("{what} of plugin {plugin}: {error}"));
        match &error {
            RedeliverError::NotParked => refusal(StatusCode::NOT_FOUND)
                .hint(format!("oarlock dead-letters {plugin} lists what is parked"))
                .kubectl_hint(format!(
                    "`kubectl oarlock dead-letters {}` lists what is parked",
                    object.arguments()
                )),
            RedeliverError::UnknownSubscription(_) => refusal(StatusCode::NOT_FOUND)
                .hint(format!("oarlock plugins {plugin} lists its subscriptions"))
                .kubectl_hint(format!("`kubectl get {object} -o yaml` lists its subscriptions")),
            RedeliverError::NoSubscription => refusal(StatusCode::CONFLICT).hint(
                "`--existing` is for plugins with subscriptions; a schedule, or a lister that wakes, queues its \
                 keys by itself",
            ),
            RedeliverError::NotServing => refusal(StatusCode::CONFLICT)
                .hint(format!("oarlock plugins {plugin} shows what it waits for"))
                .kubectl_hint(format!("`kubectl describe {object}` shows what it waits for")),
            RedeliverError::Suspended => refusal(StatusCode::CONFLICT)
                .hint(format!(
                    "`oarlock resume {plugin}` lets the host call it again, unless its file or object has \
                     `suspend: true`"
                ))
                .kubectl_hint(format!(
                    "`kubectl oarlock resume {}` lets the host call it again",
                    object.arguments()
                )),
            RedeliverError::KeepsState => {
                refusal(StatusCode::CONFLICT).hint("leave SUBSCRIPTION out, or declare the plugin stateless")
            }
        }
    }

    pub(super) fn roll_back(plugin: &str, error: &RollbackError) -> Self {
        let object = Object::of(plugin);
        let refusal =
            Self::new(StatusCode::CONFLICT, format!("plugin {plugin} cannot be rolled back: {error}"));
        if matches!(error, RollbackError::IsBack) {
            return refusal
                .hint(format!(
                    "load the version that you want: change the plugin's file or its component; `oarlock \
                     rollback {plugin} --release` loads the newest one again"
                ))
                .kubectl_hint(format!(
                    "load the version that you want: change the spec of the object; `kubectl oarlock rollback \
                     {} --release` loads the newest one again",
                    object.arguments()
                ));
        }
        refusal
            .hint(format!("oarlock plugins {plugin} lists its generations and their states"))
            .kubectl_hint(format!(
                "`kubectl get {object} -o yaml` shows in its status the version that serves, and the last good one"
            ))
    }

    /// A page that another client reads.
    pub(crate) fn page_is_held() -> Self {
        let error = "another client reads this page: the host makes one at a time";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error).hint("try again in a few seconds")
    }

    /// An operation that the admin address does not serve.
    pub(super) fn only_on_the_socket() -> Self {
        Self::new(StatusCode::FORBIDDEN, "the admin address serves only operations that read, and no logs")
            .hint("use the control socket, on the host's machine and as its user")
    }
}

// === impl Object ===

impl<'a> Object<'a> {
    /// Returns the object of a plugin, or of the plugin whose shadow it is, by its name in the host.
    fn of(plugin: &'a str) -> Self {
        let plugin = shadow::serving_of(plugin).unwrap_or(plugin);
        match plugin.split_once('.') {
            Some((namespace, name)) => Self { namespace: Some(namespace), name },
            None => Self { namespace: None, name: plugin },
        }
    }

    /// Returns the arguments of `kubectl oarlock` for the object.
    fn arguments(self) -> String {
        let Self { namespace, name } = self;
        namespace.map_or_else(|| format!("--cluster {name}"), |namespace| format!("-n {namespace} {name}"))
    }
}

/// The arguments of kubectl for the object.
impl fmt::Display for Object<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, name } = self;
        match namespace {
            Some(namespace) => write!(f, "plugin {name} -n {namespace}"),
            None => write!(f, "clusterplugin {name}"),
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
        n if n > NAMES_SHOWN => format!("the plugins are {shown} and {}", Counted(n - NAMES_SHOWN, "other")),
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
        assert!(hint("zzz", &many[..21]).ends_with("plugin-19 and 1 other"));
    }

    #[test]
    fn a_user_of_kubectl_gets_a_command_that_names_the_object() {
        let of = |plugin: &str| {
            let refusals = [
                Refusal::roll_back(plugin, &RollbackError::NothingServes),
                Refusal::redeliver(plugin, &Redeliver::All, RedeliverError::NotParked),
                Refusal::redeliver(plugin, &Redeliver::All, RedeliverError::UnknownSubscription(Vec::new())),
                Refusal::redeliver(plugin, &Redeliver::All, RedeliverError::NotServing),
                Refusal::existing(plugin, None, RedeliverError::Suspended),
                Refusal::busy(plugin, Duration::from_secs(60)),
            ];
            let hints = refusals.map(|it| it.for_kubectl().hint.unwrap());
            hints.map(|hint| hint.split('`').nth(1).unwrap().to_owned())
        };
        assert_eq!(
            of("ta.r3"),
            [
                "kubectl get plugin r3 -n ta -o yaml",
                "kubectl oarlock dead-letters -n ta r3",
                "kubectl get plugin r3 -n ta -o yaml",
                "kubectl describe plugin r3 -n ta",
                "kubectl oarlock resume -n ta r3",
                "kubectl oarlock top -n ta r3",
            ]
        );
        assert_eq!(
            of("r4"),
            [
                "kubectl get clusterplugin r4 -o yaml",
                "kubectl oarlock dead-letters --cluster r4",
                "kubectl get clusterplugin r4 -o yaml",
                "kubectl describe clusterplugin r4",
                "kubectl oarlock resume --cluster r4",
                "kubectl oarlock top --cluster r4",
            ]
        );
        let none = Refusal::existing("ta.r3", None, RedeliverError::NoSubscription);
        assert_eq!(none.status, StatusCode::CONFLICT);
        let hint = none.for_kubectl().hint.unwrap();
        assert!(hint.starts_with("`--existing` is for plugins with subscriptions"), "{hint}");
        let busy = Refusal::busy_and_forgotten("ta.r3", Duration::from_secs(60));
        assert_eq!(
            busy.error,
            "plugin ta.r3 is in a call since 60 s; nothing is delivered again, try it when the call ends"
        );
        let standby = Refusal::standby("a_1");
        assert!(standby.hint.as_deref().unwrap().ends_with("Or use `kubectl oarlock`"));
        assert!(!standby.for_kubectl().hint.unwrap().contains("kubectl"));
        let again = Refusal::roll_back("ta.r3", &RollbackError::IsBack);
        insta::assert_snapshot!(again.error, @"plugin ta.r3 cannot be rolled back: there is no version to go back to: the host keeps one earlier version of a plugin, and it went back to that one already");
        insta::assert_snapshot!(again.for_kubectl().hint.unwrap(), @"load the version that you want: change the spec of the object; `kubectl oarlock rollback -n ta r3 --release` loads the newest one again");
        let own = Refusal::roll_back("mirror", &RollbackError::NothingServes).hint.unwrap();
        assert_eq!(own, "oarlock plugins mirror lists its generations and their states");
        let absent = Refusal::not_loaded(Some("ta"), "r3");
        assert_eq!(absent.error, "the host runs no Plugin ta/r3");
        assert_eq!(absent.hint.unwrap(), "`kubectl oarlock plugins -n ta r3 -o wide` says why");
    }
}
