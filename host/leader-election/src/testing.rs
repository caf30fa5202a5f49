//! A record in memory that many candidates share, with the faults of an API server.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::{
    lock::{Fetched, Lock, LockError},
    record::Record,
};

/// The faults of a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fault {
    /// The call is executed after this delay.
    pub(crate) delay: Duration,
    /// The call is not executed.
    pub(crate) refused: bool,
    /// The answer comes after this delay.
    pub(crate) late: Duration,
    /// The call is executed, and its answer is lost.
    pub(crate) lost: bool,
}

type OnCall = Box<dyn FnMut(&str, &'static str) -> Fault + Send>;

/// The record. Clones share it.
#[derive(Clone)]
pub(crate) struct MemoryLease(Arc<Mutex<Stored>>);

struct Stored {
    record: Option<Record>,
    version: u64,
    /// Makes each write differ in bytes, although its times are equal: with a paused clock a lease may last
    /// less than a microsecond.
    versioned: bool,
    calls: Vec<&'static str>,
    on_call: OnCall,
}

/// The access of one candidate.
pub(crate) struct MemoryLock {
    lease: MemoryLease,
    identity: String,
    known: Mutex<Option<u64>>,
    pub(crate) events: Arc<Mutex<Vec<String>>>,
}

// === impl MemoryLease ===

impl MemoryLease {
    pub(crate) fn new() -> Self {
        let on_call: OnCall = Box::new(|_, _| Fault::default());
        let (version, calls) = (0, Vec::new());
        Self(Arc::new(Mutex::new(Stored { record: None, version, versioned: false, calls, on_call })))
    }

    pub(crate) fn versioned() -> Self {
        let lease = Self::new();
        lease.0.lock().versioned = true;
        lease
    }

    pub(crate) fn lock(&self, identity: &str) -> MemoryLock {
        MemoryLock {
            lease: self.clone(),
            identity: identity.to_owned(),
            known: Mutex::new(None),
            events: Arc::default(),
        }
    }

    /// Sets the function that returns the faults of a call by identity and method.
    pub(crate) fn on_call(&self, on_call: impl FnMut(&str, &'static str) -> Fault + Send + 'static) {
        self.0.lock().on_call = Box::new(on_call);
    }

    /// Writes the record as another client.
    pub(crate) fn set(&self, record: Option<Record>) {
        let mut stored = self.0.lock();
        stored.record = record;
        stored.version += 1;
    }

    pub(crate) fn record(&self) -> Record {
        self.0.lock().record.clone().unwrap_or_default()
    }

    /// Returns the calls since the last time.
    pub(crate) fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.0.lock().calls)
    }
}

impl MemoryLock {
    async fn call<T>(
        &self,
        name: &'static str,
        carry_out: impl FnOnce(&mut Stored, &mut Option<u64>) -> Result<T, LockError>,
    ) -> Result<T, LockError> {
        let fault = {
            let mut stored = self.lease.0.lock();
            stored.calls.push(name);
            (stored.on_call)(&self.identity, name)
        };
        sleep(fault.delay).await;
        if fault.refused {
            return Err(LockError::NoAnswer { within: fault.delay });
        }
        let answer = {
            let mut stored = self.lease.0.lock();
            let mut known = *self.known.lock();
            let answer = carry_out(&mut stored, &mut known);
            (answer, known)
        };
        sleep(fault.late).await;
        if fault.lost {
            return Err(LockError::NoAnswer { within: fault.late });
        }
        // The client learns the version from the answer.
        *self.known.lock() = answer.1;
        answer.0
    }
}

#[async_trait]
impl Lock for MemoryLock {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn describe(&self) -> String {
        "memory/lease".to_owned()
    }

    async fn get(&self) -> Result<Fetched, LockError> {
        self.call("get", |stored, known| {
            let record = stored.record.clone().ok_or(LockError::NotFound)?;
            *known = Some(stored.version);
            let version = if stored.versioned { stored.version } else { 0 };
            let raw = serde_json::to_vec(&(&record, version)).unwrap();
            Ok(Fetched { record, raw })
        })
        .await
    }

    async fn create(&self, record: &Record) -> Result<(), LockError> {
        self.call("create", |stored, known| {
            if stored.record.is_some() {
                return Err(LockError::AlreadyExists("lease".to_owned()));
            }
            stored.record = Some(record.clone());
            stored.version += 1;
            *known = Some(stored.version);
            Ok(())
        })
        .await
    }

    async fn update(&self, record: &Record) -> Result<(), LockError> {
        self.call("update", |stored, known| {
            let expected = known.ok_or(LockError::NotInitialized)?;
            if stored.record.is_none() {
                return Err(LockError::NotFound);
            }
            if stored.version != expected {
                return Err(LockError::Conflict("lease".to_owned()));
            }
            stored.record = Some(record.clone());
            stored.version += 1;
            *known = Some(stored.version);
            Ok(())
        })
        .await
    }

    fn record_event(&self, message: &str) {
        self.events.lock().push(format!("{} {message}", self.identity));
    }
}
