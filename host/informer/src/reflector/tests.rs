//! The reflector between a fake server and a store that records its calls. All tests pause the clock.

mod listing;
mod recovering;
mod repeating;
mod streaming;
pub(super) mod support;
mod switching;
mod undecodable;
mod upstream;
pub(crate) mod warnings;
mod watching;
