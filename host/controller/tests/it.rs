//! The whole host without its command line, with real guests, over the embedded API server.
//!
//! `cargo xtask guests` builds the guests into `target/guests`.

#![expect(clippy::unwrap_used, reason = "a test that cannot continue has failed")]

#[path = "it/admin_pages.rs"]
mod admin_pages;
#[path = "it/bad_files.rs"]
mod bad_files;
#[path = "it/bad_plugins.rs"]
mod bad_plugins;
#[path = "it/canary.rs"]
mod canary;
#[path = "it/cluster_plugins.rs"]
mod cluster_plugins;
#[path = "it/concurrency.rs"]
mod concurrency;
#[path = "it/control_socket.rs"]
mod control_socket;
#[path = "it/definitions.rs"]
mod definitions;
#[path = "it/draining.rs"]
mod draining;
#[path = "it/election.rs"]
mod election;
#[path = "it/events.rs"]
mod events;
#[path = "it/faults.rs"]
mod faults;
#[path = "it/further_host.rs"]
mod further_host;
#[path = "it/hoarding.rs"]
mod hoarding;
#[path = "it/mirror.rs"]
mod mirror;
#[path = "it/plugin_object_events.rs"]
mod plugin_object_events;
#[path = "it/plugin_objects.rs"]
mod plugin_objects;
#[path = "it/pod_doctor.rs"]
mod pod_doctor;
#[path = "it/received.rs"]
mod received;
#[path = "it/recording.rs"]
mod recording;
#[path = "it/reloader.rs"]
mod reloader;
#[path = "it/repaired_files.rs"]
mod repaired_files;
#[path = "it/rig.rs"]
mod rig;
#[path = "it/rights.rs"]
mod rights;
#[path = "it/roll_backs_of_objects.rs"]
mod roll_backs_of_objects;
#[path = "it/rolling_back.rs"]
mod rolling_back;
#[path = "it/schedules.rs"]
mod schedules;
#[path = "it/shadow.rs"]
mod shadow;
#[path = "it/shadows_of_objects.rs"]
mod shadows_of_objects;
#[path = "it/swapping.rs"]
mod swapping;
#[path = "it/traces.rs"]
mod traces;
#[path = "it/waking.rs"]
mod waking;
