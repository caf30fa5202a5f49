//! The host against a real API server.

mod mirror;
mod pods;
