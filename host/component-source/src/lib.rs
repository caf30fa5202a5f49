//! Where the component of a plugin comes from: an OCI registry, an HTTPS URL, a ConfigMap, a Secret, or a
//! file.
//!
//! ```text
//! Source ─→ Fetcher::fetch ─→ Fetched: a verified file in the cache, which is not evicted while it is held
//!              │
//!              ├─ Policy: which registries and hosts, which addresses, which signatures
//!              ├─ ReadReferenced: ConfigMaps and Secrets, read as the plugin's account
//!              └─ Cache: components by digest, of bounded size
//! ```
//!
//! The crate knows neither WebAssembly nor Kubernetes: a component is bytes that begin like one, and the
//! caller reads the objects.

#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod address;
mod cache;
mod digest;
mod error;
mod fetcher;
mod file;
mod http;
mod policy;
mod records;
mod reference;
mod referenced;
mod registry;
mod signature;
mod source;

pub use cache::CachedComponent;
pub use digest::Digest;
pub use error::{Error, Reason};
pub use fetcher::{Config, Fetched, Fetcher, Verified};
pub use policy::Policy;
pub use reference::Reference;
pub use referenced::{ReadError, ReadReferenced};
pub use registry::{Artifact, Keyring, Publisher, Pushed};
pub use source::{FileSource, HttpsSource, KeySource, OciSource, Source};
