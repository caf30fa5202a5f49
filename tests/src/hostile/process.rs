//! The resources of the host's process, as Linux counts them.

use std::fs;

use anyhow::Context;
use serde::Serialize;

/// Memory in bytes, and counts.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Resources {
    /// Resident memory that no file backs: heaps, stacks, linear memories.
    pub anonymous: u64,
    /// Resident memory that files back: the program, mapped code of plugins.
    pub file_mapped: u64,
    /// Threads.
    pub threads: u64,
    /// Open files, sockets included.
    pub files: u64,
    /// Child processes: compilers.
    pub children: u64,
}

/// What a host may keep after plugins were removed: the allocator's free pages, and connections of clients.
const MEMORY_SLACK: u64 = 96 << 20;
const THREADS_SLACK: u64 = 16;
const FILES_SLACK: u64 = 32;

// === impl Resources ===

impl Resources {
    /// Reads the resources of a process.
    ///
    /// # Errors
    ///
    /// When the process has ended.
    pub fn of(pid: u32) -> anyhow::Result<Self> {
        let folder = format!("/proc/{pid}");
        let status = fs::read_to_string(format!("{folder}/status")).context("the process has ended")?;
        let of = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
            value
                .and_then(|number| number.parse::<u64>().ok())
                .with_context(|| format!("no {name} in status"))
        };
        let mut children = 0;
        for task in fs::read_dir(format!("{folder}/task"))? {
            // A thread may end meanwhile.
            let of_task = fs::read_to_string(task?.path().join("children")).unwrap_or_default();
            children += of_task.split_whitespace().count() as u64;
        }
        Ok(Self {
            anonymous: of("RssAnon:")? << 10,
            file_mapped: (of("RssFile:")? + of("RssShmem:")?) << 10,
            threads: of("Threads:")?,
            files: fs::read_dir(format!("{folder}/fd"))?.count() as u64,
            children,
        })
    }

    /// Returns the maximum of each.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self {
            anonymous: self.anonymous.max(other.anonymous),
            file_mapped: self.file_mapped.max(other.file_mapped),
            threads: self.threads.max(other.threads),
            files: self.files.max(other.files),
            children: self.children.max(other.children),
        }
    }

    /// Checks that a process keeps no more than before, but for what may stay.
    ///
    /// # Errors
    ///
    /// Names the first resource of which it keeps more.
    pub fn check_released(&self, before: &Self) -> Result<(), String> {
        let at_most = |what: &str, now: u64, before: u64, slack: u64| {
            if now > before + slack { Err(format!("{what}: {now}, before {before}")) } else { Ok(()) }
        };
        at_most("anonymous memory", self.anonymous, before.anonymous, MEMORY_SLACK)?;
        at_most("threads", self.threads, before.threads, THREADS_SLACK)?;
        at_most("files", self.files, before.files, FILES_SLACK)?;
        at_most("child processes", self.children, before.children, 0)
    }
}
