//! Asks a component for its description, in an instance of its own without access to Kubernetes, and checks
//! the answer.

mod check;
mod computing;
pub(crate) mod no_access;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    CallError, Component, Configuration, Instance, InstanceConfig,
    contract::Description,
    engine::{DEFAULT_WEIGHT, Share},
    guest,
    guest::{GuestLog, GuestMetrics, Usage},
    kube_access::KubeAccess,
    limits::Limits,
};

pub use check::Invalid;

/// Why a component has no usable description.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescribeError {
    /// The guest returned an error, usually about its configuration.
    #[error("the plugin refuses to be loaded: {0}")]
    Refused(String),
    /// The description is not valid.
    #[error("the plugin's description is invalid: {0}")]
    Invalid(#[from] Invalid),
    /// The guest computed for too long. Waiting does not count; the start deadline applies as well.
    #[error("the plugin did not describe itself: it computed for more than {} s", limit.as_secs())]
    Computes {
        /// The limit.
        limit: Duration,
    },
    /// The call ended without an answer. The guest's last output is in its log.
    #[error("the plugin did not describe itself: {0}")]
    Call(#[from] CallError),
}

/// The maximum time that a guest may compute for its description, including its start.
pub const MOST_COMPUTED: Duration = Duration::from_secs(10);

/// A description, and what it took to get it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The description.
    pub description: Description,
    /// The time from the instance's creation to the answer: what an instance needs before its first call.
    pub took: Duration,
    /// The linear memory of the instance after that, in bytes.
    pub memory_bytes: u64,
}

/// Asks a component for its description, in an instance that is then dropped.
///
/// The imports `config`, `log`, `clock` and `metrics` work; every other import returns an error. The returned
/// description has unique names of limited length, well-formed pointers, references that resolve, and an
/// exported interface for each `enqueue`. Selectors and resources are not checked.
///
/// # Errors
///
/// When the guest returns an error, gives no answer, or returns a description that is not valid.
pub async fn describe(
    component: &Component,
    config: Configuration,
    limits: Limits,
    log: Arc<GuestLog>,
) -> Result<Description, DescribeError> {
    measure(component, config, limits, log).await.map(|measured| measured.description)
}

/// Does the same as [`describe`], and measures the instance.
///
/// # Errors
///
/// Those of [`describe`].
pub async fn measure(
    component: &Component,
    config: Configuration,
    limits: Limits,
    log: Arc<GuestLog>,
) -> Result<Measured, DescribeError> {
    measure_counted(component, config, limits, log).await.0
}

/// Does the same as [`describe`]; also returns how long the guest computed, in any case.
pub async fn describe_counted(
    component: &Component,
    config: Configuration,
    limits: Limits,
    log: Arc<GuestLog>,
) -> (Result<Description, DescribeError>, Duration) {
    let (measured, computed) = measure_counted(component, config, limits, log).await;
    (measured.map(|measured| measured.description), computed)
}

async fn measure_counted(
    component: &Component,
    config: Configuration,
    limits: Limits,
    log: Arc<GuestLog>,
) -> (Result<Measured, DescribeError>, Duration) {
    let share = component.engine().share(DEFAULT_WEIGHT);
    let asking = Box::pin(ask(component.clone(), config, limits, log, share.clone()));
    let (answer, computed) = share.run(computing::at_most(MOST_COMPUTED, asking)).await;
    (answer.unwrap_or(Err(DescribeError::Computes { limit: MOST_COMPUTED })), computed)
}

async fn ask(
    component: Component,
    config: Configuration,
    limits: Limits,
    log: Arc<GuestLog>,
    share: Share,
) -> Result<Measured, DescribeError> {
    let began = Instant::now();
    let config = InstanceConfig {
        config,
        limits,
        access: KubeAccess::of(Arc::new(no_access::NoAccess)),
        log,
        metrics: Arc::new(GuestMetrics::new()),
        usage: Usage::default(),
        interception: None,
        share,
    };
    let mut instance = Instance::new(&component, config).await?;
    let description = instance
        .describe()
        .await?
        .map_err(|text| DescribeError::Refused(guest::text::lines(text, check::MAX_TEXT_BYTES)))?;
    check::check(&description, &component)?;
    Ok(Measured { description, took: began.elapsed(), memory_bytes: instance.memory_bytes() })
}
