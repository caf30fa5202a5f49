//! Helpers of the unit tests of this module.

use std::sync::Arc;

use super::{rate::Rate, request::Requester};
use crate::{discovery::Discovery, identity::Identity, leadership::Leadership};
use oarlock_fake_api::{FakeApi, Reply};

/// Returns a discovery document of the core group with the resources that tests use.
pub(super) fn core_v1() -> Reply {
    let resource = |name: &str, kind: &str, namespaced: bool| serde_json::json!({ "name": name, "singularName": "", "kind": kind, "namespaced": namespaced, "verbs": ["get"] });
    let list = serde_json::json!({
        "kind": "APIResourceList", "groupVersion": "v1",
        "resources": [
            resource("configmaps", "ConfigMap", true),
            resource("events", "Event", true),
            resource("namespaces", "Namespace", false),
            resource("secrets", "Secret", true),
        ],
    });
    Reply::json(200, list.to_string())
}

/// Returns a requester of the plugin `hello`, with the account `oarlock-plugins/hello`.
pub(super) fn requester(api: &FakeApi) -> Requester {
    requester_as(api, Identity::unfollowed("oarlock-plugins/hello".parse().expect("an account")))
}

/// Returns a requester with another account.
pub(super) fn requester_as(api: &FakeApi, identity: Identity) -> Requester {
    requester_of(api, identity, Leadership::sole())
}

/// Returns a requester of a host in an election.
pub(super) fn requester_of(api: &FakeApi, identity: Identity, leadership: Leadership) -> Requester {
    let client = api.client();
    let discovery = Arc::new(Discovery::new(client.clone()));
    let rate = Rate { per_second: 1.0, burst: 1000 };
    Requester::new(client, discovery, "hello".into(), identity, rate, Default::default(), leadership)
}
