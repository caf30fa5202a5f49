//! The standard `process_*` metrics, with the names of Prometheus's client libraries, and the build
//! information.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

/// Writes the host's version, and on Linux the resources that its process uses.
pub(super) fn encode(encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    build_info(encoder)?;
    #[cfg(target_os = "linux")]
    if let Ok(process) = linux::Process::read() {
        process.encode(encoder)?;
    }
    Ok(())
}

fn build_info(encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
    let labels = [
        ("version", env!("CARGO_PKG_VERSION")),
        ("os", std::env::consts::OS),
        ("arch", std::env::consts::ARCH),
    ];
    let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    super::scrape::gauges(
        encoder,
        "oarlock_build_info",
        "Always 1; the labels have the version and platform of the host.",
        [(labels, 1.0)],
    )
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fmt;

    use procfs::{ProcError, process};
    use prometheus_client::encoding::DescriptorEncoder;

    use crate::metrics::scrape::{counter, gauge};

    /// The figures of the process in `/proc`.
    pub(super) struct Process {
        cpu_seconds: f64,
        started_at: f64,
        virtual_bytes: u64,
        resident_bytes: u64,
        n_threads: i64,
        n_open_fds: Option<usize>,
        max_fds: Option<u64>,
    }

    impl Process {
        pub(super) fn read() -> Result<Self, ProcError> {
            let process = process::Process::myself()?;
            let stat = process.stat()?;
            let ticks = procfs::ticks_per_second().max(1) as f64;
            let max_fds = process.limits().ok().and_then(|limits| match limits.max_open_files.soft_limit {
                process::LimitValue::Value(limit) => Some(limit),
                process::LimitValue::Unlimited => None,
            });
            Ok(Self {
                cpu_seconds: (stat.utime + stat.stime) as f64 / ticks,
                started_at: procfs::boot_time_secs()? as f64 + stat.starttime as f64 / ticks,
                virtual_bytes: stat.vsize,
                resident_bytes: stat.rss.saturating_mul(procfs::page_size()),
                n_threads: stat.num_threads,
                n_open_fds: process.fd_count().ok(),
                max_fds,
            })
        }

        pub(super) fn encode(self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
            let Self {
                cpu_seconds,
                started_at,
                virtual_bytes,
                resident_bytes,
                n_threads,
                n_open_fds,
                max_fds,
            } = self;
            let help = "Total user and system CPU time spent in seconds.";
            counter(encoder, "process_cpu_seconds", help, cpu_seconds)?;
            let help = "Start time of the process since unix epoch in seconds.";
            gauge(encoder, "process_start_time_seconds", help, started_at)?;
            let help = "Virtual memory size in bytes.";
            gauge(encoder, "process_virtual_memory_bytes", help, virtual_bytes as f64)?;
            let help = "Resident memory size in bytes.";
            gauge(encoder, "process_resident_memory_bytes", help, resident_bytes as f64)?;
            let help = "Number of OS threads in the process.";
            gauge(encoder, "process_threads", help, n_threads as f64)?;
            if let Some(n_open_fds) = n_open_fds {
                let help = "Number of open file descriptors.";
                gauge(encoder, "process_open_fds", help, n_open_fds as f64)?;
            }
            if let Some(max_fds) = max_fds {
                let help = "Maximum number of open file descriptors.";
                gauge(encoder, "process_max_fds", help, max_fds as f64)?;
            }
            Ok(())
        }
    }
}
