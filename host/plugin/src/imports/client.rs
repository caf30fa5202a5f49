//! `client`: requests to the API server.

use std::sync::Arc;

use super::cache::{check_namespaces, check_page, check_projection};
use super::{check_key, check_short, check_target};
use crate::{
    bindings::oarlock::plugin::client::Host,
    contract::{
        Error, GroupVersionResource, Namespaces, ObjectKey, Page, PageRequest, PatchKind, Preconditions,
        Projection, Propagation, Written,
    },
    kube_access::Selectors,
    replaceable::Head,
    state::StoreState,
};

/// The maximum size of a request's body, as in the API server.
const MAX_BODY_BYTES: usize = 3 << 20;

/// The number of rows of a page for which the guest names no limit, as in client-go's pager.
const LIVE_ROWS: u32 = 500;

/// Subresources that open a stream, or whose content is not JSON.
const STREAMS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

impl Host for StoreState {
    async fn get(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        subresource: String,
    ) -> Result<String, Error> {
        self.takes(&[&target, &key, &subresource])?;
        check_target(&target)?;
        check_key(&key)?;
        check_subresource(&subresource)?;
        let client = Arc::clone(&self.access.client);
        let mut head = None;
        let fetched = async {
            let json = client.get(&target, &key, &subresource).await?;
            head = Head::of(&json).await;
            Ok(json)
        };
        let json = self.waits_for("client.get", fetched).await?;
        if let Some(head) = head {
            self.replaceable.fetched(&target, &key, head);
        }
        Ok(json)
    }

    async fn list(
        &mut self,
        target: GroupVersionResource,
        namespaces: Namespaces,
        label_selector: String,
        field_selector: String,
        projection: Projection,
        page: PageRequest,
    ) -> Result<Page, Error> {
        self.takes(&[&target, &namespaces, &label_selector, &field_selector, &projection, &page])?;
        check_target(&target)?;
        check_namespaces(&namespaces)?;
        check_short("label selector", &label_selector)?;
        check_short("field selector", &field_selector)?;
        check_projection(&projection)?;
        let limit = if page.limit == 0 { LIVE_ROWS } else { page.limit };
        let page = check_page(PageRequest { limit, ..page })?;
        let selectors = Selectors { labels: &label_selector, fields: &field_selector };
        let client = Arc::clone(&self.access.client);
        let page = self
            .waits_for("client.list", client.list(&target, &namespaces, selectors, &projection, &page))
            .await?;
        if matches!(projection, Projection::Json) {
            self.replaceable.listed(&target, &page.rows);
        }
        Ok(page)
    }

    async fn create(
        &mut self,
        target: GroupVersionResource,
        namespace: String,
        json: String,
    ) -> Result<Written, Error> {
        self.takes(&[&target, &namespace, &json])?;
        check_target(&target)?;
        check_short("namespace", &namespace)?;
        check_body(&json)?;
        let client = Arc::clone(&self.access.client);
        self.waits_for("client.create", client.create(&target, &namespace, json)).await
    }

    async fn apply(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        subresource: String,
        json: String,
        force: bool,
        preconditions: Preconditions,
    ) -> Result<Written, Error> {
        self.takes(&[&target, &key, &subresource, &json, &preconditions])?;
        check_target(&target)?;
        check_key(&key)?;
        check_subresource(&subresource)?;
        check_body(&json)?;
        check_preconditions(&preconditions)?;
        let client = Arc::clone(&self.access.client);
        let applied = client.apply(&target, &key, &subresource, json, force, &preconditions);
        self.waits_for("client.apply", applied).await
    }

    async fn patch(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        subresource: String,
        kind: PatchKind,
        body: String,
        preconditions: Preconditions,
    ) -> Result<Written, Error> {
        self.takes(&[&target, &key, &subresource, &body, &preconditions])?;
        check_target(&target)?;
        check_key(&key)?;
        check_subresource(&subresource)?;
        check_body(&body)?;
        check_preconditions(&preconditions)?;
        let client = Arc::clone(&self.access.client);
        let patched = client.patch(&target, &key, &subresource, kind, body, &preconditions);
        self.waits_for("client.patch", patched).await
    }

    async fn replace(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        subresource: String,
        json: String,
    ) -> Result<Written, Error> {
        self.takes(&[&target, &key, &subresource, &json])?;
        check_target(&target)?;
        check_key(&key)?;
        check_subresource(&subresource)?;
        check_body(&json)?;
        let accepted = self.replaceable.accepted(&target, &key);
        let client = Arc::clone(&self.access.client);
        let replaced = async {
            accepted.check(&target, &key, &json).await?;
            client.replace(&target, &key, &subresource, json).await
        };
        self.waits_for("client.replace", replaced).await
    }

    async fn delete(
        &mut self,
        target: GroupVersionResource,
        key: ObjectKey,
        propagation: Propagation,
        grace_period_seconds: Option<u32>,
        preconditions: Preconditions,
    ) -> Result<(), Error> {
        self.takes(&[&target, &key, &preconditions])?;
        check_target(&target)?;
        check_key(&key)?;
        check_preconditions(&preconditions)?;
        let client = Arc::clone(&self.access.client);
        let deleted = client.delete(&target, &key, propagation, grace_period_seconds, &preconditions);
        self.waits_for("client.delete", deleted).await
    }
}

fn check_subresource(subresource: &str) -> Result<(), Error> {
    check_short("subresource", subresource)?;
    if STREAMS.contains(&subresource) {
        return Err(Error::Invalid(format!("the subresource {subresource:?} is a stream, not an object")));
    }
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !subresource.bytes().all(is_plain) {
        return Err(Error::Invalid(format!("{subresource:?} is no subresource, such as `status`")));
    }
    Ok(())
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
