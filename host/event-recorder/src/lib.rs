//! Records Kubernetes Events. A caller never waits for the API server.
//!
//! ```text
//! EventRecorder ─emit→ Broadcaster ─┬─ bounded queue → Recording: correlator → EventSink (create, patch)
//!                      never waits  └─ bounded queue → any other reader of a Watch, such as a log
//! ```
//!
//! This is client-go's recorder of `core/v1` Events (ER, EA, ES). Module [`series`] records Events of
//! `events.k8s.io/v1`, which counts repeated Events in another way. Both lose Events rather than block a
//! caller, and count the lost ones.
//!
//! A recording ends when its broadcaster is shut down or dropped and its queue is empty, or at once when its
//! token is cancelled. The crate spawns no task. An emitted Event goes straight to the queue of each watch,
//! in one order for all; client-go has one more queue in between.
//!
//! ```
//! use async_trait::async_trait;
//! use k8s_openapi::api::core::v1::{Event, ObjectReference};
//! use oarlock_event_recorder::{
//!     Broadcaster, EventRecorder, EventSink, EventType, Recording, RecordingConfig, SinkError,
//! };
//! use serde_json::Value;
//! use tokio_util::sync::CancellationToken;
//!
//! /// Prints Events. A real program uses a `KubeSink`.
//! struct Printer;
//!
//! #[async_trait]
//! impl EventSink<Event> for Printer {
//!     async fn create(&self, event: &Event) -> Result<Event, SinkError> {
//!         println!("{:?}", event.message);
//!         Ok(event.clone())
//!     }
//!
//!     async fn patch(&self, event: &Event, patch: &Value) -> Result<Event, SinkError> {
//!         println!("once more: {patch}");
//!         Ok(event.clone())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let broadcaster = Broadcaster::new();
//! let recording = Recording::new(broadcaster.watch(), Printer, RecordingConfig::default());
//! let stats = recording.stats();
//!
//! let recorder = EventRecorder::new(broadcaster.clone(), "my-controller", "node-1");
//! let pod = ObjectReference { name: Some("web".to_owned()), ..ObjectReference::default() };
//! recorder.event(pod, EventType::Normal, "Scheduled", "assigned to node-1").unwrap();
//!
//! broadcaster.shut_down();
//! recording.run(CancellationToken::new()).await;
//! assert_eq!(stats.recorded(), 1);
//! # }
//! ```

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod broadcaster;
pub mod correlator;
mod field_selector;
pub mod logging;
mod name;
mod recorder;
mod recording;
pub mod reference;
pub mod series;
mod sink;
#[cfg(test)]
mod testing;

pub use broadcaster::{Broadcaster, Dropped, Watch};
pub use recorder::{EventRecorder, EventType};
pub use recording::{Config as RecordingConfig, Recording, Stats};
pub use sink::{EventSink, KubeSink, SinkError};
