//! The functions that a plugin imports: the one place where the SDK calls the host.
//!
//! In a component they are the generated ones. In a native build, such as that of a unit test, they are
//! answered by [`crate::testing::Host`].

#[cfg(target_family = "wasm")]
pub(crate) use oarlock_sdk_bindings::oarlock::plugin::{
    cache, client, clock, config, event, events, log, metrics, work_queue,
};

#[cfg(not(target_family = "wasm"))]
pub(crate) use crate::testing::imports::{
    cache, client, clock, config, event, events, log, metrics, work_queue,
};
