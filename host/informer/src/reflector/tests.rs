//! The reflector between a fake server and a store that writes everything down. Time is paused throughout.

mod listing;
mod recovering;
mod repeating;
mod streaming;
mod support;
mod switching;
mod undecodable;
mod upstream;
mod warnings;
mod watching;
