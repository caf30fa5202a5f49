//! Where the `tracing` events of the host's own parts go: standard error. What happens to plugins is no log, see `printer`.

use tracing_subscriber::EnvFilter;

/// Installs the subscriber. A filter that cannot be read is told and replaced by `warn`.
pub(crate) fn install(filter: &str) {
    let (parsed, complaint) = match EnvFilter::try_new(filter) {
        Ok(parsed) => (parsed, None),
        Err(error) => (EnvFilter::new("warn"), Some(error)),
    };
    tracing_subscriber::fmt()
        .with_env_filter(parsed)
        .with_writer(std::io::stderr)
        .with_target(true)
        .compact()
        .init();
    if let Some(error) = complaint {
        tracing::warn!(filter, %error, "this --log filter cannot be read; using `warn`");
    }
}
