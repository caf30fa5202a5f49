//! The Kubernetes objects that a source refers to.

use async_trait::async_trait;

use crate::error::{Error, Reason};

/// Reads the objects that a source refers to, as the plugin's account and in the namespace of the plugin.
#[async_trait]
pub trait ReadReferenced: Send + Sync {
    /// Returns the value of a key of a ConfigMap, from `binaryData` or `data`.
    async fn config_map_key(&self, name: &str, key: &str) -> Result<Vec<u8>, ReadError>;

    /// Returns the value of a key of a Secret.
    async fn secret_key(&self, name: &str, key: &str) -> Result<Vec<u8>, ReadError>;

    /// Returns for whom the source is fetched, such as a namespace: the slow downloads of one tenant do not
    /// hold up those of another. By default there is one tenant.
    fn tenant(&self) -> &str {
        ""
    }

    /// Returns the value of `.dockerconfigjson` of a Secret of type `kubernetes.io/dockerconfigjson`.
    async fn pull_secret(&self, name: &str) -> Result<Vec<u8>, ReadError>;
}

/// Why an object was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The object does not exist.
    #[error("does not exist")]
    NotFound,
    /// The object does not have this key.
    #[error("has no key {0}")]
    KeyNotFound(String),
    /// The plugin's account may not read the object; the text is that of the API server.
    #[error("may not be read: {0}")]
    Forbidden(String),
    /// The API server cannot be asked now.
    #[error("cannot be read: {0}")]
    Unavailable(String),
}

// === impl ReadError ===

impl ReadError {
    /// Returns the error for an object such as `ConfigMap mirror`.
    pub(crate) fn of(self, object: &str) -> Error {
        let reason = match &self {
            Self::NotFound | Self::KeyNotFound(_) => Reason::NotFound,
            Self::Forbidden(_) => Reason::Forbidden,
            Self::Unavailable(_) => Reason::Unavailable,
        };
        let error = Error::new(reason, format!("{object} {self}"));
        match reason {
            Reason::NotFound => error.hint("create it in the namespace of the plugin, or correct the name"),
            Reason::Forbidden => {
                error.hint("grant the ServiceAccount of the plugin the verb get on this object, with a Role")
            }
            _ => error,
        }
    }
}
