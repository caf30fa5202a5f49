//! The reflector between a fake server and a store that writes everything down. Time is paused throughout.

mod listing;
mod recovering;
mod streaming;
mod support;
mod switching;
mod upstream;
mod undecodable;
mod warnings;
mod watching;
