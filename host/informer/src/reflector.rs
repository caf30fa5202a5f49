//! Keeps a store equal to what the API server has: lists, watches, and does both again whenever it must.

mod store;

pub use store::{ReflectorStore, StoreError};
