//! `client`: requests to the API server.

use std::sync::Arc;

use super::{check_key, check_short, check_target};
use crate::{
    bindings::oarlock::plugin::client::Host,
    contract::{
        Error, GroupVersionResource, ObjectKey, Part, PatchKind, Preconditions, Propagation, Written,
    },
    state::StoreState,
};

/// The maximum size of a request's body, as in the API server.
const MAX_BODY_BYTES: usize = 3 << 20;

impl Host for StoreState {
    async fn get(&mut self, target: GroupVersionResource, key: ObjectKey) -> Result<String, Error> {
        check_target(&target)?;
        check_key(&key)?;
        let access = Arc::clone(&self.access);
        let json = self.waits_for("client.get", access.client_get(&target, &key)).await?;
        self.replaceable.fetched(&target, &key, &json);
        Ok(json)
    }

    async fn create(
        &mut self,
        target: GroupVersionResource,
        namespace: String,
        json: String,
    ) -> Result<Written, Error> {
        check_target(&target)?;
        check_short("namespace", &namespace)?;
        check_body(&json)?;
        self.takes(&json)?;
        let access = Arc::clone(&self.access);
        self.waits_for("client.create", access.client_create(&target, &namespace, json)).await
    }

    async fn apply(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        part: Part,
        json: String,
        force: bool,
        preconditions: Preconditions,
    ) -> Result<Written, Error> {
        check_target(&target)?;
        check_key(&key)?;
        check_body(&json)?;
        self.takes(&json)?;
        check_preconditions(&preconditions)?;
        let access = Arc::clone(&self.access);
        self.waits_for("client.apply", access.client_apply(&target, &key, part, json, force, &preconditions))
            .await
    }

    async fn patch(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        part: Part,
        kind: PatchKind,
        body: String,
        preconditions: Preconditions,
    ) -> Result<Written, Error> {
        check_target(&target)?;
        check_key(&key)?;
        check_body(&body)?;
        self.takes(&body)?;
        check_preconditions(&preconditions)?;
        let access = Arc::clone(&self.access);
        self.waits_for("client.patch", access.client_patch(&target, &key, part, kind, body, &preconditions))
            .await
    }

    async fn replace(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        part: Part,
        json: String,
    ) -> Result<Written, Error> {
        check_target(&target)?;
        check_key(&key)?;
        check_body(&json)?;
        self.takes(&json)?;
        self.replaceable.check(&target, &key, &json)?;
        let access = Arc::clone(&self.access);
        self.waits_for("client.replace", access.client_replace(&target, &key, part, json)).await
    }

    async fn delete(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        propagation: Propagation,
        preconditions: Preconditions,
    ) -> Result<(), Error> {
        check_target(&target)?;
        check_key(&key)?;
        check_preconditions(&preconditions)?;
        let access = Arc::clone(&self.access);
        self.waits_for("client.delete", access.client_delete(&target, &key, propagation, &preconditions))
            .await
    }
}

fn check_body(body: &str) -> Result<(), Error> {
    if body.len() <= MAX_BODY_BYTES {
        return Ok(());
    }
    Err(Error::LimitExceeded(format!("the body has {} bytes, more than {MAX_BODY_BYTES}", body.len())))
}

fn check_preconditions(preconditions: &Preconditions) -> Result<(), Error> {
    let Preconditions { uid, resource_version } = preconditions;
    check_short("uid", uid.as_deref().unwrap_or_default())?;
    check_short("resourceVersion", resource_version.as_deref().unwrap_or_default())
}
