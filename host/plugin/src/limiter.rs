//! Limits the sum of an instance's memories and the sum of its tables, and remembers refusals.

use wasmtime::ResourceLimiter;

use crate::{
    guest::{Usage, usage::InstanceUse},
    limits::Limits,
};

/// QuickJS needs four, `CPython` at most one for each native library.
const MAX_MEMORIES: usize = 32;
const MAX_TABLES: usize = 128;

/// Limits sums. `StoreLimits` of wasmtime limits each memory alone.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory: Budget,
    table_elements: Budget,
    core_instances: usize,
    instance_use: InstanceUse,
    refused: Option<Refused>,
}

/// A refusal since the begin of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Memory { wanted: u64, limit: u64 },
    TableElements { wanted: u64, limit: u64 },
}

#[derive(Debug)]
struct Budget {
    used: u64,
    limit: u64,
    /// The last granted growth, which is subtracted again if the system refuses it.
    granted: u64,
}

// === impl Limiter ===

impl Limiter {
    pub(crate) fn new(limits: &Limits, usage: &Usage) -> Self {
        Self {
            memory: Budget::new(limits.memory),
            table_elements: Budget::new(limits.table_elements.into()),
            core_instances: limits.core_instances as usize,
            instance_use: InstanceUse::begin(usage.clone()),
            refused: None,
        }
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory.used
    }

    pub(crate) fn refused(&self) -> Option<Refused> {
        self.refused
    }

    /// Forgets the refusals of earlier calls.
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
        self.instance_use.set_linear_memory(self.memory.used);
        self.refused =
            self.refused.or(granted.err().map(|(wanted, limit)| Refused::Memory { wanted, limit }));
        Ok(granted.is_ok())
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.memory.take_back();
        self.instance_use.set_linear_memory(self.memory.used);
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

    /// Subtracts nothing. wasmtime also calls this for growths that it never passed to `table_growing` (a
    /// delta that overflows), so a guest could otherwise reduce the count.
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

    /// Adds the growth. If the sum would exceed the limit, returns that sum and the limit.
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
    fn the_sum_of_all_memories_is_limited() {
        let mut limiter = Limiter::new(&Limits { memory: 1000, ..Limits::default() }, &Usage::default());
        assert!(limiter.memory_growing(0, 600, None).unwrap());
        assert!(!limiter.memory_growing(0, 600, None).unwrap());
        assert_eq!(limiter.refused(), Some(Refused::Memory { wanted: 1200, limit: 1000 }));
        limiter.call_begins();
        assert_eq!(limiter.refused(), None);
        assert!(limiter.memory_growing(600, 1000, None).unwrap());
        assert_eq!(limiter.memory_bytes(), 1000);
    }

    #[test]
    fn growth_beyond_a_modules_own_maximum_is_not_a_refusal() {
        let mut limiter = Limiter::new(&Limits::default(), &Usage::default());
        assert!(!limiter.memory_growing(0, 600, Some(500)).unwrap());
        assert_eq!(limiter.refused(), None);
    }
}
