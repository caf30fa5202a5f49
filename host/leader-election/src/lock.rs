//! What candidates compete for, as far as the election needs to know it.

use std::time::Duration;

use async_trait::async_trait;

use crate::record::Record;

/// One candidate's access to the record. Only one future at a time uses it.
#[async_trait]
pub trait Lock: Send + Sync {
    /// The candidate's own name. No two candidates may share one.
    fn identity(&self) -> &str;

    /// What the lock is, for people: `namespace/name`.
    fn describe(&self) -> String;

    /// Reads the record, and remembers which state of it that was.
    async fn get(&self) -> Result<Fetched, LockError>;

    /// Makes the record if there is none.
    async fn create(&self, record: &Record) -> Result<(), LockError>;

    /// Replaces the state last read or written; a conflict if there is a newer one.
    async fn update(&self, record: &Record) -> Result<(), LockError>;

    /// Tells people something about the candidate. Never waits.
    fn record_event(&self, message: &str);
}

/// A record as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetched {
    /// What it says. Of a malformed one: what can be understood.
    pub record: Record,
    /// The same as bytes. The holder lives as long as these keep changing (LE-06).
    pub raw: Vec<u8>,
}

/// The record was not read or not written.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// There is none.
    #[error("there is no lease")]
    NotFound,
    /// There is one already.
    #[error("the lease exists already: {0}")]
    AlreadyExists(String),
    /// Somebody has written it in the meantime.
    #[error("the lease was changed by another: {0}")]
    Conflict(String),
    /// It must be read or made before it can be changed.
    #[error("lease not initialized, call get or create first")]
    NotInitialized,
    /// The API server answers something that is no Lease.
    #[error("the answer is no Lease")]
    Malformed(#[source] kube::Error),
    /// The API server says no.
    #[error("the API server refuses")]
    Refused(#[source] kube::Error),
    /// The API server was not reached, or its answer was lost. A write may have been done.
    #[error("the API server was not reached")]
    Unreachable(#[source] kube::Error),
    /// The answer did not come in time. A write may have been done.
    #[error("no answer within {within:?}")]
    NoAnswer {
        /// How long it was waited for.
        within: Duration,
    },
}
