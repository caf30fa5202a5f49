//! The standard `process_*` metrics, with the names of Prometheus's client libraries, and the build
//! information.

use std::fmt;

use prometheus_client::encoding::DescriptorEncoder;

use super::catalog;

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
    let values = [env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH];
    catalog::BUILD_INFO.encode(encoder, [(values.map(str::to_owned), 1.0)])
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fmt;

    use procfs::{ProcError, process};
    use prometheus_client::encoding::DescriptorEncoder;

    use crate::metrics::catalog;

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
            let values = [
                (&catalog::CPU, Some(cpu_seconds)),
                (&catalog::START_TIME, Some(started_at)),
                (&catalog::VIRTUAL_MEMORY, Some(virtual_bytes as f64)),
                (&catalog::RESIDENT_MEMORY, Some(resident_bytes as f64)),
                (&catalog::THREADS, Some(n_threads as f64)),
                (&catalog::OPEN_FDS, n_open_fds.map(|it| it as f64)),
                (&catalog::MAX_FDS, max_fds.map(|it| it as f64)),
            ];
            for (description, value) in values {
                description.encode(encoder, value.map(|value| ([], value)))?;
            }
            Ok(())
        }
    }
}
