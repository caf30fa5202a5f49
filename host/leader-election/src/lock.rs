//! The interface of the record that candidates compete for.

use std::time::Duration;

use async_trait::async_trait;

use crate::record::Record;

/// The access of one candidate to the record. One future at a time uses it.
#[async_trait]
pub trait Lock: Send + Sync {
    /// Returns the identity of the candidate. It must be unique among the candidates.
    fn identity(&self) -> &str;

    /// Returns the name of the lock for people: `namespace/name`.
    fn describe(&self) -> String;

    /// Reads the record, and remembers its version for [`update`](Self::update).
    async fn get(&self) -> Result<Fetched, LockError>;

    /// Creates the record if it does not exist.
    async fn create(&self, record: &Record) -> Result<(), LockError>;

    /// Replaces the version last read or written. Fails with a conflict if there is a newer one.
    async fn update(&self, record: &Record) -> Result<(), LockError>;

    /// Records an Event about the candidate. Never blocks.
    fn record_event(&self, message: &str);
}

/// A record that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// The record.
    pub record: Record,
    /// Its bytes. The holder is alive while they change (LE-06).
    pub raw: Vec<u8>,
}

/// The reason why the record was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The record does not exist.
    #[error("there is no lease")]
    NotFound,
    /// The record exists already.
    #[error("the lease exists already: {0}")]
    AlreadyExists(String),
    /// Another client has written the record in the meantime.
    #[error("another client has changed the lease: {0}")]
    Conflict(String),
    /// The record must be read or created before an update.
    #[error("lease not initialized, call get or create first")]
    NotInitialized,
    /// The answer is not a Lease.
    #[error("the answer is not a Lease")]
    Malformed(#[source] kube::Error),
    /// The API server refused the request.
    #[error("the API server refuses")]
    Refused(#[source] kube::Error),
    /// The API server was not reached, or its answer was lost. A write may have succeeded.
    #[error("the API server was not reached")]
    Unreachable(#[source] kube::Error),
    /// No answer came in time. A write may have succeeded.
    #[error("no answer within {within:?}")]
    NoAnswer {
        /// The timeout.
        within: Duration,
    },
}
