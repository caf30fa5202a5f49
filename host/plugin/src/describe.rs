//! Asking a component what it is: in an instance of its own, with nothing to reach, and the answer checked.

mod check;
mod computing;
mod nothing;

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    CallError, Component, GuestLog, GuestMetrics, Instance, InstanceConfig, contract::Description,
    guest_text, limits::Limits,
};

pub use check::Invalid;

/// Why a component's description cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescribeError {
    /// The guest said so itself, usually because its configuration does not suit it.
    #[error("the plugin refuses to be loaded: {0}")]
    Refused(String),
    /// What it said does not hold together.
    #[error("the plugin's description is invalid: {0}")]
    Invalid(#[from] Invalid),
    /// It computed for too long. Waiting does not count, and the start deadline holds besides.
    #[error("the plugin did not describe itself: it computed for more than {} s", limit.as_secs())]
    Computes {
        /// How long it may.
        limit: Duration,
    },
    /// It did not get to an answer.
    #[error("the plugin did not describe itself: {}", .0.in_full())]
    Call(#[from] CallError),
}

/// How long a guest may compute until it has described itself, its start included.
pub const MOST_COMPUTED: Duration = Duration::from_secs(10);

/// Asks a component what it is, in an instance of its own that is then dropped.
///
/// `config`, `log` and `clock` work for the guest, everything else answers an error. Names are unique and of sane sizes, pointers well-formed,
/// references among the parts resolve, and what `enqueue` asks for is exported; selectors and resources are
/// not looked at here.
///
/// # Errors
///
/// When the guest refuses, fails to answer, or answers nonsense.
pub async fn describe(
    component: &Component,
    config: Arc<Value>,
    limits: Limits,
    log: Arc<GuestLog>,
) -> Result<Description, DescribeError> {
    describe_counted(component, config, limits, log).await.0
}

/// The same, and how long the guest computed, whatever came of it.
pub async fn describe_counted(
    component: &Component,
    config: Arc<Value>,
    limits: Limits,
    log: Arc<GuestLog>,
) -> (Result<Description, DescribeError>, Duration) {
    let asking = Box::pin(ask(component, config, limits, log));
    let (answer, computed) = computing::at_most(MOST_COMPUTED, asking).await;
    (answer.unwrap_or(Err(DescribeError::Computes { limit: MOST_COMPUTED })), computed)
}

async fn ask(
    component: &Component,
    config: Arc<Value>,
    limits: Limits,
    log: Arc<GuestLog>,
) -> Result<Description, DescribeError> {
    let config = InstanceConfig {
        config,
        limits,
        access: Arc::new(nothing::Nothing),
        log,
        metrics: Arc::new(GuestMetrics::new()),
    };
    let mut instance = Instance::new(component, config).await?;
    let description = instance
        .describe()
        .await?
        .map_err(|text| DescribeError::Refused(guest_text::lines(text, check::MAX_TEXT_BYTES)))?;
    check::check(&description, component)?;
    Ok(description)
}
