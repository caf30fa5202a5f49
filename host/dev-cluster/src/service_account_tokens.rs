//! TokenRequests: issues tokens for ServiceAccounts. A token becomes invalid with its account and with the
//! object that it is bound to, and is valid for its audiences only.

use crate::authn::{API_AUDIENCE, BoundObject, TokenIdentity};
use crate::call::Call;
use crate::model::{FieldValidation, Model};
use crate::negotiation;
use crate::respond::{self, Body};
use crate::status::{Cause, GroupKind, GroupResource, StatusError};
use crate::store::Stored;
use crate::user::UserInfo;
use http::Response;

use serde_json::{Value, json};
use tokio::time::Duration;

const DEFAULT_VALIDITY: i64 = 3600;
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;

/// Answers a TokenRequest for the ServiceAccount in the path.
pub(crate) fn token(call: &Call) -> Result<Response<Body>, StatusError> {
    let account =
        call.cluster.store.get(&call.resource.storage, &call.key()).ok_or_else(|| call.not_found())?;
    let model = Model::builtin("authentication.k8s.io", "v1", "TokenRequest")
        .ok_or_else(|| StatusError::internal("the type TokenRequest is not identity"))?;
    let mut request = if call.body.is_empty() {
        json!({"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": {}})
    } else {
        let body = negotiation::decode(&call.headers, &call.body, "TokenRequest", Some(model.root()))?;
        model.decode(body, FieldValidation::Ignore)?.object
    };
    let seconds =
        request.pointer("/spec/expirationSeconds").and_then(Value::as_i64).unwrap_or(DEFAULT_VALIDITY);
    check_validity(seconds)?;
    let audiences = texts(request.pointer("/spec/audiences"));
    let audiences = if audiences.is_empty() { vec![API_AUDIENCE.to_owned()] } else { audiences };
    let mut user = UserInfo::service_account(&account.namespace, &account.name);
    user.uid = account.uid.clone();
    let mut extra = |name: &str, value: String| {
        user.extra.insert(format!("authentication.kubernetes.io/{name}"), vec![value]);
    };
    extra("credential-id", format!("JTI={}", uuid::Uuid::new_v4()));
    let mut bound_to = vec![BoundObject {
        storage: call.resource.storage.clone(),
        key: account.key.to_string(),
        uid: account.uid.clone(),
    }];
    if let Some(object) = bound_object(call, &account, &request)? {
        if object.0.resource == "pods" {
            extra("pod-name", object.1.name.clone());
            extra("pod-uid", object.1.uid.clone());
        }
        let (storage, object) = object;
        bound_to.push(BoundObject { storage, key: object.key.to_string(), uid: object.uid.clone() });
    }
    let valid_for = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    let identity =
        TokenIdentity { audiences: audiences.clone(), bound_to, ..TokenIdentity::new(user, Some(valid_for)) };
    let token = call.cluster.tokens.issue(identity);
    let expires = call.cluster.store.generated().in_seconds(seconds);
    request["metadata"] = json!({"name": account.name, "namespace": account.namespace});
    request["spec"]["expirationSeconds"] = seconds.into();
    request["spec"]["audiences"] = json!(audiences);
    if request.pointer("/spec/boundObjectRef").is_none() {
        request["spec"]["boundObjectRef"] = Value::Null;
    }
    request["status"] = json!({"token": token, "expirationTimestamp": expires});
    Ok(respond::document(201, call.accepted.notation, &request, Some(model.root())))
}

/// Returns the strings of a list.
pub(crate) fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

fn check_validity(seconds: i64) -> Result<(), StatusError> {
    let why = match seconds {
        ..SHORTEST => "may not specify a duration less than 10 minutes",
        SHORTEST..=LONGEST => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    let cause = Cause::invalid("spec.expirationSeconds", &seconds.into(), why);
    let kind = GroupKind::new("authentication.k8s.io", "TokenRequest");
    Err(StatusError::invalid(&kind, "", vec![cause]))
}

/// Finds the object that a token is to be bound to.
fn bound_object(
    call: &Call,
    account: &Stored,
    request: &Value,
) -> Result<Option<(GroupResource, std::sync::Arc<Stored>)>, StatusError> {
    let Some(reference) = request.pointer("/spec/boundObjectRef").filter(|reference| reference.is_object())
    else {
        return Ok(None);
    };
    let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
    let (plural, namespace) = match (text("apiVersion"), text("kind")) {
        ("v1", "Pod") => ("pods", account.namespace.as_str()),
        ("v1", "Secret") => ("secrets", account.namespace.as_str()),
        ("v1", "Node") => ("nodes", ""),
        (version, kind) => {
            return Err(StatusError::bad_request(format!(
                "cannot bind token to object of type {version}, Kind={kind}"
            )));
        }
    };
    let storage = GroupResource::new("", plural);
    let name = text("name");
    let key = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    let object =
        call.cluster.store.get(&storage, &key).ok_or_else(|| StatusError::not_found(&storage, name))?;
    if plural == "pods" {
        let pod = object.value()?;
        let runs_as = pod.pointer("/spec/serviceAccountName").and_then(Value::as_str).unwrap_or("default");
        if runs_as != account.name {
            return Err(StatusError::bad_request(format!(
                "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                account.name
            )));
        }
    }
    let uid = text("uid");
    if !uid.is_empty() && uid != object.uid {
        return Err(StatusError::conflict(
            &GroupResource::new("", text("kind")),
            name,
            format!(
                "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have \
                 been deleted and then recreated"
            ),
        ));
    }
    Ok(Some((storage, object)))
}
