//! The operations of `kubectl oarlock` about Plugin and ClusterPlugin objects, over HTTPS. Kubernetes decides
//! about each, as about a subresource of the object: who may read the plugins of one namespace sees nothing
//! of others.
//!
//! | path | verb, subresource |
//! |---|---|
//! | `GET /v1/all/metrics`, `/v1/namespaces/NS/metrics`, `/v1/clusterplugins/metrics`, `…/NAME/metrics` | `get` `metrics` |
//! | `GET …/deadletters`, in the same places | `get` `deadletters` |
//! | `GET …/NAME/logs` | `get` `logs` |
//! | `POST …/NAME/redeliver` | `create` `redeliver` |
//! | `POST …/NAME/rollback`, `…/NAME/release` | `create` `rollback` |
//!
//! One plugin is `/v1/namespaces/NS/plugins/NAME` or `/v1/clusterplugins/NAME`. A plugin of a file counts as
//! a ClusterPlugin. `NAME.shadow` is the shadow of a plugin: Kubernetes decides as about the plugin.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Extension, Path, Query, RawPathParams, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};

use super::guard::{self, Action, Guard, ObjectAction, Sender};
use super::turns;
use crate::control::{self, Control, LinesQuery, RedeliverRequest, Refusal};
use crate::shadow;

/// Where the plugins of a path are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// In all namespaces, and ClusterPlugins if the user may see them.
    All,
    Namespace,
    Cluster,
}

/// What one route needs.
#[derive(Clone)]
struct Route {
    control: Control,
    guard: Guard,
    place: Place,
    verb: &'static str,
    subresource: &'static str,
}

/// The plugins that a request is about, after its user was found to be allowed.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Scope {
    /// The plugin with this name in the host.
    One(String),
    Namespace(String),
    Cluster,
    Namespaced,
    All,
}

/// Returns the routes.
pub(super) fn routes(control: &Control, guard: &Guard) -> Vec<(String, MethodRouter)> {
    let lists = [
        ("/v1/all", Place::All),
        ("/v1/namespaces/{namespace}", Place::Namespace),
        ("/v1/clusterplugins", Place::Cluster),
    ];
    let objects = [
        ("/v1/namespaces/{namespace}/plugins/{name}", Place::Namespace),
        ("/v1/clusterplugins/{name}", Place::Cluster),
    ];
    let mut routes = Vec::new();
    let mut read = |at, place, in_turn: fn(MethodRouter<Control>) -> MethodRouter<Control>| {
        let route = |subresource| Route::new(control, guard, place, "get", subresource);
        routes.push((format!("{at}/metrics"), route("metrics").over(in_turn(get(metrics)))));
        routes.push((format!("{at}/deadletters"), route("deadletters").over(in_turn(get(dead_letters)))));
    };
    for (at, place) in lists {
        // The users of one namespace do not wait for those of another.
        let in_turn = if place == Place::Namespace { |route| route } else { turns::over };
        read(at, place, in_turn);
    }
    for (at, place) in objects {
        read(at, place, |route| route);
    }
    for (at, place) in objects {
        let route = |verb, subresource| Route::new(control, guard, place, verb, subresource);
        routes.push((format!("{at}/logs"), route("get", "logs").over(get(logs))));
        routes.push((format!("{at}/redeliver"), route("create", "redeliver").over(post(redeliver))));
        routes.push((format!("{at}/rollback"), route("create", "rollback").over(post(roll_back))));
        routes.push((format!("{at}/release"), route("create", "rollback").over(post(release))));
    }
    routes
}

/// Refuses a request whose user may not do this, before its body is read.
async fn check(
    State(route): State<Route>,
    params: RawPathParams,
    mut request: Request,
    next: Next,
) -> Response {
    let param = |key: &str| params.iter().find(|(name, _)| *name == key).map(|(_, value)| value.to_owned());
    let (namespace, name) = (param("namespace"), param("name"));
    let scope = match route.scope(Sender::of(&request), namespace, name).await {
        Ok(scope) => scope,
        Err(refusal) => return refusal,
    };
    request.extensions_mut().insert(scope);
    next.run(request).await
}

async fn metrics(State(control): State<Control>, Extension(scope): Extension<Scope>) -> Response {
    Json(control.plugins_where(|name| scope.has(name))).into_response()
}

async fn dead_letters(State(control): State<Control>, Extension(scope): Extension<Scope>) -> Response {
    Json(control.parked_where(|name| scope.has(name)).await).into_response()
}

async fn logs(
    State(control): State<Control>,
    Extension(scope): Extension<Scope>,
    query: Result<Query<LinesQuery>, QueryRejection>,
) -> Response {
    match query {
        Ok(query) => answer(control::lines(State(control), scope.one(), query).await),
        Err(rejection) => rejection.into_response(),
    }
}

async fn redeliver(
    State(control): State<Control>,
    Extension(scope): Extension<Scope>,
    body: Result<Json<RedeliverRequest>, JsonRejection>,
) -> Response {
    match body {
        Ok(body) => answer(control::redeliver(State(control), scope.one(), body).await),
        Err(rejection) => rejection.into_response(),
    }
}

async fn roll_back(State(control): State<Control>, Extension(scope): Extension<Scope>) -> Response {
    answer(control::roll_back(State(control), scope.one()).await)
}

async fn release(State(control): State<Control>, Extension(scope): Extension<Scope>) -> Response {
    answer(control::release(State(control), scope.one()).await)
}

/// Returns the answer of an operation, with the hints for `kubectl oarlock`.
fn answer(done: Result<impl IntoResponse, Refusal>) -> Response {
    done.map_err(Refusal::for_kubectl).into_response()
}

// === impl Route ===

impl Route {
    fn new(
        control: &Control,
        guard: &Guard,
        place: Place,
        verb: &'static str,
        subresource: &'static str,
    ) -> Self {
        Self { control: control.clone(), guard: guard.clone(), place, verb, subresource }
    }

    /// Puts the check in front of a handler.
    fn over(self, handler: MethodRouter<Control>) -> MethodRouter {
        let control = self.control.clone();
        handler.route_layer(from_fn_with_state(self, check)).with_state(control)
    }

    /// Returns the plugins that the request is about, or the refusal.
    async fn scope(
        &self,
        sender: Sender<'_>,
        namespace: Option<String>,
        name: Option<String>,
    ) -> Result<Scope, Response> {
        // The rights on a plugin are those on its shadow.
        let object = name.as_deref().map(|name| shadow::serving_of(name).unwrap_or(name));
        let action = |resource| {
            Action::Object(ObjectAction {
                verb: self.verb,
                resource,
                subresource: self.subresource,
                namespace: namespace.clone().unwrap_or_default(),
                name: object.unwrap_or_default().to_owned(),
            })
        };
        let resource = if self.place == Place::Cluster { "clusterplugins" } else { "plugins" };
        self.guard.decide(sender, action(resource)).await.map_err(IntoResponse::into_response)?;
        // A standby has calls, backlogs and lines of no plugin.
        self.control.check_leads().map_err(|refusal| refusal.for_kubectl().into_response())?;
        let scope = match (self.place, namespace.clone(), name.clone()) {
            (Place::All, ..) => match self.guard.decide(sender, action("clusterplugins")).await {
                Ok(()) => Scope::All,
                Err(guard::Refusal::Forbidden { .. }) => Scope::Namespaced,
                Err(refusal) => return Err(refusal.into_response()),
            },
            (_, Some(namespace), Some(name)) => Scope::One(format!("{namespace}.{name}")),
            (_, Some(namespace), None) => Scope::Namespace(namespace),
            (_, None, Some(name)) => Scope::One(name),
            (_, None, None) => Scope::Cluster,
        };
        let shown = |text: &Option<String>| text.as_deref().map(|text| text.escape_debug().to_string());
        match &scope {
            // The name of a ClusterPlugin has no dot: with one it would be the Plugin of a namespace. A
            // Plugin that is named `shadow` would be the shadow of a ClusterPlugin.
            Scope::One(host_name)
                if object.is_some_and(|object| object.contains('.') || object == shadow::RESERVED)
                    || namespace.as_deref().is_some_and(|namespace| namespace.contains('.'))
                    || !self.control.knows(host_name) =>
            {
                let name = shown(&name).unwrap_or_default();
                Err(Refusal::not_loaded(shown(&namespace).as_deref(), &name).into_response())
            }
            _ => Ok(scope),
        }
    }
}

// === impl Scope ===

impl Scope {
    /// Returns whether a plugin, by its name in the host, is one of them.
    fn has(&self, plugin: &str) -> bool {
        let object = shadow::serving_of(plugin).unwrap_or(plugin);
        let namespace = object.split_once('.').map(|(namespace, _)| namespace);
        match self {
            Self::One(name) => plugin == name,
            Self::Namespace(name) => namespace == Some(name),
            Self::Cluster => namespace.is_none(),
            Self::Namespaced => namespace.is_some(),
            Self::All => true,
        }
    }

    /// Returns the name of the one plugin, as the control operations take it. The paths of these operations
    /// have one.
    fn one(self) -> Path<String> {
        match self {
            Self::One(name) => Path(name),
            _ => Path(String::new()),
        }
    }
}

#[cfg(test)]
mod tests;
