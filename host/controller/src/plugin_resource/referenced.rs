//! Reads the ConfigMaps and Secrets that a spec refers to, as the plugin's account: an author of a Plugin
//! must not get what the account may not read.

use std::collections::BTreeMap;

use async_trait::async_trait;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::client::Body;
use oarlock_component_source::{ReadError, ReadReferenced, Source};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::types::KeyReference;
use crate::account::Account;

/// The longest response that is read. An object in etcd is at most 1.5 MiB long, its JSON in base64 and with
/// escapes may be longer.
const LONGEST_RESPONSE: usize = 8 << 20;

const JSON: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// A version of an object. One that was made again has another uid.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub(super) struct ObjectVersion {
    uid: String,
    resource_version: String,
}

/// The metadata of any object.
#[derive(Deserialize)]
struct OnlyMetadata {
    metadata: ObjectMeta,
}

/// Reads objects of one namespace as one account.
pub(super) struct AccountReader<'a> {
    pub(super) client: &'a kube::Client,
    pub(super) account: &'a Account,
}

// === impl AccountReader ===

impl AccountReader<'_> {
    /// Returns the value of a key of a ConfigMap.
    pub(super) async fn config_map(&self, key: &KeyReference) -> Result<Vec<u8>, ReadError> {
        self.config_map_key(&key.name, &key.key).await
    }

    /// Returns the value of a key of a Secret, and the version of the Secret.
    pub(super) async fn secret(&self, key: &KeyReference) -> Result<(Vec<u8>, ObjectVersion), ReadError> {
        let Secret { data, metadata, .. } = self.get("secrets", &key.name, JSON).await?;
        let value = value_of(data, &key.key)?;
        let ObjectMeta { uid, resource_version, .. } = metadata;
        let [uid, resource_version] = [uid, resource_version].map(Option::unwrap_or_default);
        Ok((value, ObjectVersion { uid, resource_version }))
    }

    /// Returns the version of the object that a source refers to: None if it refers to none, or if the
    /// version cannot be read. Only the metadata are sent, a component is up to a MiB.
    pub(super) async fn version_of(&self, source: &Source) -> Option<ObjectVersion> {
        let (resource, name) = match (&source.config_map, &source.secret) {
            (Some(it), _) => ("configmaps", &it.name),
            (None, Some(it)) => ("secrets", &it.name),
            (None, None) => return None,
        };
        let read = self.get::<OnlyMetadata>(resource, name, METADATA).await;
        let ObjectMeta { uid, resource_version, .. } = read.ok()?.metadata;
        Some(ObjectVersion { uid: uid?, resource_version: resource_version? })
    }

    async fn get<T: DeserializeOwned>(
        &self,
        resource: &str,
        name: &str,
        accept: &'static str,
    ) -> Result<T, ReadError> {
        // No object has a name of other characters, and a path must not become another one.
        let is_possible = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || b".-".contains(&it);
        if name.is_empty() || !name.bytes().all(is_possible) {
            return Err(ReadError::NotFound);
        }
        let unavailable = ReadError::Unavailable;
        let user =
            HeaderValue::try_from(self.account.username()).map_err(|it| unavailable(it.to_string()))?;
        let namespace = &self.account.namespace;
        let request = Request::get(format!("/api/v1/namespaces/{namespace}/{resource}/{name}"))
            .header("Impersonate-User", user)
            .header(header::ACCEPT, accept)
            .body(Body::empty())
            .map_err(|error| unavailable(error.to_string()))?;
        let response = self.client.send(request).await.map_err(|it| unavailable(crate::chain::text(&it)))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), LONGEST_RESPONSE);
        let body = body.collect().await.map_err(|error| unavailable(error.to_string()))?.to_bytes();
        match status {
            StatusCode::OK => serde_json::from_slice(&body).map_err(|error| unavailable(error.to_string())),
            StatusCode::NOT_FOUND => Err(ReadError::NotFound),
            StatusCode::FORBIDDEN => {
                let account = self.account;
                Err(ReadError::Forbidden(format!("the ServiceAccount {account} may not `get` it")))
            }
            status => Err(unavailable(format!("the API server answered {status}"))),
        }
    }
}

/// Returns the value of a key of a Secret's data.
fn value_of(data: Option<BTreeMap<String, ByteString>>, key: &str) -> Result<Vec<u8>, ReadError> {
    let value = data.unwrap_or_default().remove(key).map(|value| value.0);
    value.ok_or_else(|| ReadError::KeyNotFound(key.to_owned()))
}

#[async_trait]
impl ReadReferenced for AccountReader<'_> {
    async fn config_map_key(&self, name: &str, key: &str) -> Result<Vec<u8>, ReadError> {
        let ConfigMap { data, binary_data, .. } = self.get("configmaps", name, JSON).await?;
        let binary = binary_data.unwrap_or_default().remove(key).map(|value| value.0);
        let text = || data.unwrap_or_default().remove(key).map(String::into_bytes);
        binary.or_else(text).ok_or_else(|| ReadError::KeyNotFound(key.to_owned()))
    }

    async fn secret_key(&self, name: &str, key: &str) -> Result<Vec<u8>, ReadError> {
        let Secret { data, .. } = self.get("secrets", name, JSON).await?;
        value_of(data, key)
    }

    fn tenant(&self) -> &str {
        &self.account.namespace
    }

    async fn pull_secret(&self, name: &str) -> Result<Vec<u8>, ReadError> {
        self.secret_key(name, ".dockerconfigjson").await
    }
}
