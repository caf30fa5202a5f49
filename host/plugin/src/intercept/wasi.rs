//! Clocks and random numbers of the empty WASI, each answer shown to the interceptor.

use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::{
    WasiView as _,
    clocks::WasiClocksView as _,
    p2::{
        DynPollable,
        bindings::{
            clocks::{
                monotonic_clock,
                wall_clock::{self, Datetime},
            },
            random::{insecure, insecure_seed, random},
        },
    },
};

use super::{Border, Intercepted, named, value};
use crate::state::StoreState;

/// Links the intercepted interfaces over those of [`crate::imports::wasi`].
pub(super) fn add_to_linker(l: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    wall_clock::add_to_linker::<StoreState, Border>(l, |state| Intercepted { state })?;
    monotonic_clock::add_to_linker::<StoreState, Border>(l, |state| Intercepted { state })?;
    random::add_to_linker::<StoreState, Border>(l, |state| Intercepted { state })?;
    insecure::add_to_linker::<StoreState, Border>(l, |state| Intercepted { state })?;
    insecure_seed::add_to_linker::<StoreState, Border>(l, |state| Intercepted { state })
}

/// Shows one import to the interceptor. The answer is converted to a type that
/// can be recorded, and back.
macro_rules! pass {
    ($self:ident, $function:literal, ($($argument:ident),*), $record:expr, $read:expr => $answer:expr) => {{
        let arguments = [$((stringify!($argument), value(&$argument))),*];
        if let Some(answer) = $self.begins($function, named(arguments)) {
            return Ok($read(answer));
        }
        let answer = $answer?;
        $self.ends(&$record(&answer));
        Ok(answer)
    }};
}

impl wall_clock::Host for Intercepted<'_> {
    fn now(&mut self) -> wasmtime::Result<Datetime> {
        pass!(self, "wasi:clocks/wall-clock.now", (), pair, datetime => 
            wall_clock::Host::now(&mut self.state.clocks()))
    }

    fn resolution(&mut self) -> wasmtime::Result<Datetime> {
        wall_clock::Host::resolution(&mut self.state.clocks())
    }
}

impl monotonic_clock::Host for Intercepted<'_> {
    fn now(&mut self) -> wasmtime::Result<u64> {
        pass!(self, "wasi:clocks/monotonic-clock.now", (), same, same_of =>
            monotonic_clock::Host::now(&mut self.state.clocks()))
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        monotonic_clock::Host::resolution(&mut self.state.clocks())
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        if self.answers() {
            return monotonic_clock::Host::subscribe_duration(&mut self.state.clocks(), 0);
        }
        monotonic_clock::Host::subscribe_instant(&mut self.state.clocks(), when)
    }

    fn subscribe_duration(&mut self, duration: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let duration = if self.answers() { 0 } else { duration };
        monotonic_clock::Host::subscribe_duration(&mut self.state.clocks(), duration)
    }
}

impl random::Host for Intercepted<'_> {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        pass!(self, "wasi:random/random.get-random-bytes", (len), |it: &Vec<u8>| hex(it), bytes =>
            random::Host::get_random_bytes(self.state.ctx().ctx.random(), len))
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        pass!(self, "wasi:random/random.get-random-u64", (), same, same_of =>
            random::Host::get_random_u64(self.state.ctx().ctx.random()))
    }
}

impl insecure::Host for Intercepted<'_> {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        pass!(self, "wasi:random/insecure.get-insecure-random-bytes", (len), |it: &Vec<u8>| hex(it), bytes =>
            insecure::Host::get_insecure_random_bytes(self.state.ctx().ctx.random(), len))
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        pass!(self, "wasi:random/insecure.get-insecure-random-u64", (), same, same_of =>
            insecure::Host::get_insecure_random_u64(self.state.ctx().ctx.random()))
    }
}

impl insecure_seed::Host for Intercepted<'_> {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        pass!(self, "wasi:random/insecure-seed.insecure-seed", (), same, same_of =>
            insecure_seed::Host::insecure_seed(self.state.ctx().ctx.random()))
    }
}

// === impl Intercepted ===

impl Intercepted<'_> {
    /// Returns whether no time passes, since all answers come from a record.
    fn answers(&self) -> bool {
        self.interceptor().is_some_and(|interceptor| interceptor.answers())
    }
}

fn same<T: Copy>(answer: &T) -> T {
    *answer
}

fn same_of<T>(answer: T) -> T {
    answer
}

fn pair(now: &Datetime) -> (u64, u32) {
    (now.seconds, now.nanoseconds)
}

fn datetime((seconds, nanoseconds): (u64, u32)) -> Datetime {
    Datetime { seconds, nanoseconds }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads [`hex`] again. Digits that are not hexadecimal count as zero.
fn bytes(hex: String) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|it| u8::try_from(it).ok()).unwrap_or(0);
    hex.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}
