//! The calls that a plugin receives, also when something goes wrong. Real listeners over a fake API server;
//! the instance is a script.

mod commands;
mod concurrency;
mod crash_backoff;
mod delivering;
mod existing;
mod failing;
mod keys;
mod losing_instances;
mod rig;
mod slices;
mod standby;
mod swapping;
mod waking;
