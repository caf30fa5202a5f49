//! Counts what an instance's memories and tables take together, and remembers when it said no.

use wasmtime::ResourceLimiter;

use crate::limits::Limits;

/// More than QuickJS (four) and `CPython` (one per native library at most) need.
const MAX_MEMORIES: usize = 32;
const MAX_TABLES: usize = 128;

/// wasmtime's own `StoreLimits` bounds each memory by itself; this one bounds their sum.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory: Budget,
    table_elements: Budget,
    core_instances: usize,
    refused: Option<Refused>,
}

/// What was refused since the call began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Memory { wanted: u64, limit: u64 },
    TableElements { wanted: u64, limit: u64 },
}

#[derive(Debug)]
struct Budget {
    used: u64,
    limit: u64,
    /// What was granted last, to be taken back if the system has no more.
    granted: u64,
}

// === impl Limiter ===

impl Limiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            memory: Budget::new(limits.memory),
            table_elements: Budget::new(limits.table_elements.into()),
            core_instances: limits.core_instances as usize,
            refused: None,
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory.used
    }

    pub(crate) fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// Forgets what was refused: a new call begins.
    pub(crate) fn call_begins(&mut self) {
        self.refused = None;
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let granted = self.memory.grow(current, desired);
        self.refused =
            self.refused.or(granted.err().map(|(wanted, limit)| Refused::Memory { wanted, limit }));
        Ok(granted.is_ok())
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory.take_back();
        Ok(())
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let granted = self.table_elements.grow(current, desired);
        self.refused =
            self.refused.or(granted.err().map(|(wanted, limit)| Refused::TableElements { wanted, limit }));
        Ok(granted.is_ok())
    }

    /// Takes nothing back: it is also called for growths that `table_growing` was never asked about (a delta that overflows), and
    /// a guest could have what it was granted before taken off the count.
    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        Ok(())
    }

    fn instances(&self) -> usize {
        self.core_instances
    }

    fn tables(&self) -> usize {
        MAX_TABLES
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES
    }
}

// === impl Budget ===

impl Budget {
    fn new(limit: u64) -> Self {
        Self { used: 0, limit, granted: 0 }
    }

    /// Adds the growth, or returns what the sum would have been, and the limit.
    fn grow(&mut self, current: usize, desired: usize) -> Result<(), (u64, u64)> {
        let more = desired.saturating_sub(current) as u64;
        let wanted = self.used.saturating_add(more);
        if wanted > self.limit {
            return Err((wanted, self.limit));
        }
        self.used = wanted;
        self.granted = more;
        Ok(())
    }

    fn take_back(&mut self) {
        self.used -= std::mem::take(&mut self.granted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_counted_together() {
        let mut limiter = Limiter::new(&Limits { memory: 1000, ..Limits::default() });
        assert!(limiter.memory_growing(0, 600, None).unwrap());
        assert!(!limiter.memory_growing(0, 600, None).unwrap());
        assert_eq!(limiter.refused(), Some(Refused::Memory { wanted: 1200, limit: 1000 }));
        limiter.call_begins();
        assert_eq!(limiter.refused(), None);
        assert!(limiter.memory_growing(600, 1000, None).unwrap());
        assert_eq!(limiter.memory_bytes(), 1000);
    }

    #[test]
    fn a_module_s_own_maximum_is_no_refusal_of_ours() {
        let mut limiter = Limiter::new(&Limits::default());
        assert!(!limiter.memory_growing(0, 600, Some(500)).unwrap());
        assert_eq!(limiter.refused(), None);
    }
}
