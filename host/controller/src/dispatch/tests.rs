//! What a plugin is called with, whatever goes wrong. Real Listeners over a fake API server; the instance is a script.

mod failing;
mod keys;
mod losing;
mod poison;
mod rig;
mod swapping;
mod telling;
