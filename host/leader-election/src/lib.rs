//! Leader election: one of several processes works, the others stand by (LE-01 … LE-16).
//!
//! ```text
//! LeaderElector ─get, create, update→ Lock ── LeaseLock: a Lease of coordination.k8s.io/v1
//!       └─on_started_leading, on_new_leader, on_stopped_leading→ Callbacks: the work
//! ```
//!
//! Each candidate has an identity, and competes for one record. The holder renews the record; when a
//! candidate has seen the record unchanged for the lease duration, by its own clock, it takes the record.
//! Timestamps in the record are for people. Clocks may therefore differ, but must run at about the same
//! speed.
//!
//! [`LeaderElector::run`] is one future, and the work is a part of it: the crate spawns no task. Work that
//! blocks its thread also blocks the renewal; run such work on a task, and let the callback wait for that
//! task.
//!
//! client-go may have two leaders for a while. This crate differs from it in three points:
//! - It cancels the work first, and waits for its end while the lease lasts. It releases the lease only then,
//!   and only if the API server says that this candidate still holds it (LE-14).
//! - A renewal counts from the moment when it was sent, and leadership never outlasts the lease.
//! - A leader that reads another identity in the record has lost at once; client-go tries on until its
//!   deadline.
//!
//! It does not fence writes by itself: a write that is under way when the lease expires may arrive after
//! another candidate has started. A caller checks [`LeaderElector::leads_until`] right before it sends one.
//!
//! ```
//! use std::time::Duration;
//!
//! use async_trait::async_trait;
//! use oarlock_leader_election::{Callbacks, Config, Ended, Fetched, LeaderElector, Lock, LockError, Record};
//! use parking_lot::Mutex;
//! use rand::{SeedableRng, rngs::SmallRng};
//! use tokio_util::sync::CancellationToken;
//!
//! /// A record in memory. A real candidate uses a `LeaseLock`.
//! #[derive(Default)]
//! struct MemoryLock(Mutex<Option<Record>>);
//!
//! #[async_trait]
//! impl Lock for MemoryLock {
//!     fn identity(&self) -> &str {
//!         "node-1"
//!     }
//!
//!     fn describe(&self) -> String {
//!         "memory".to_owned()
//!     }
//!
//!     async fn get(&self) -> Result<Fetched, LockError> {
//!         let record = self.0.lock().clone().ok_or(LockError::NotFound)?;
//!         let raw = serde_json::to_vec(&record).unwrap();
//!         Ok(Fetched { record, raw })
//!     }
//!
//!     async fn create(&self, record: &Record) -> Result<(), LockError> {
//!         self.update(record).await
//!     }
//!
//!     async fn update(&self, record: &Record) -> Result<(), LockError> {
//!         *self.0.lock() = Some(record.clone());
//!         Ok(())
//!     }
//!
//!     fn record_event(&self, message: &str) {
//!         println!("node-1 {message}");
//!     }
//! }
//!
//! /// Stops the election as soon as it leads.
//! struct Work(CancellationToken);
//!
//! #[async_trait]
//! impl Callbacks for Work {
//!     async fn on_started_leading(&self, leading: CancellationToken) {
//!         self.0.cancel();
//!         leading.cancelled().await;
//!     }
//!
//!     fn on_stopped_leading(&self) {}
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let config = Config {
//!     lease_duration: Duration::from_secs(15),
//!     renew_deadline: Duration::from_secs(10),
//!     retry_period: Duration::from_secs(2),
//!     longest_wait: None,
//!     release_on_cancel: true,
//! };
//! let elector = LeaderElector::new(MemoryLock::default(), config, SmallRng::from_os_rng()).unwrap();
//! let token = CancellationToken::new();
//! assert_eq!(elector.run(&Work(token.clone()), token).await, Ended::Stopped);
//! assert_eq!(elector.leader(), "", "the lease is released");
//! # }
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod config;
mod elector;
mod health;
mod lease_lock;
mod lock;
mod observed;
mod record;
#[cfg(test)]
mod testing;

pub use config::{Config, ConfigError};
pub use elector::{Callbacks, Ended, LeaderElector};
pub use health::{HealthCheck, Unhealthy};
pub use lease_lock::LeaseLock;
pub use lock::{Fetched, Lock, LockError};
pub use record::Record;
