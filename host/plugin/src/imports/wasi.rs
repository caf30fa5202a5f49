//! The empty WASI: for language runtimes that will not start without one.
//!
//! Clocks work, at a millisecond, and so does randomness; what is written to stdout and stderr (a Go, Python or JavaScript guest's
//! exception) goes to the plugin's log, or explains why its instance broke. There are no files, no arguments, no environment, nothing
//! to read on stdin; every socket and every look-up of a name is denied before the system is asked for anything.

mod coarse;
mod stdio;

use std::sync::Arc;

use wasmtime::component::{HasData, Linker, ResourceTable};
use wasmtime_wasi::{
    WasiCtx, WasiCtxView, WasiView,
    cli::{WasiCli, WasiCliView as _},
    clocks::{WasiClocks, WasiClocksView as _},
    filesystem::{WasiFilesystem, WasiFilesystemView as _},
    p2::bindings::{cli, clocks, filesystem, io, random, sockets},
    random::WasiRandom,
    sockets::{WasiSockets, WasiSocketsView as _},
};

use self::stdio::Stdio;
use crate::{
    output::Stream,
    state::{State, Wasi},
};

/// Random bytes in one call: the host allocates them.
const MAX_RANDOM_BYTES: u64 = 64 << 10;

/// Links the interfaces that [`crate::component`] lets through.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let l = linker;
    io::error::add_to_linker::<State, Table>(l, table)?;
    io::poll::add_to_linker::<State, Table>(l, table)?;
    io::streams::add_to_linker::<State, Table>(l, table)?;
    clocks::wall_clock::add_to_linker::<State, WasiClocks>(l, State::clocks)?;
    clocks::monotonic_clock::add_to_linker::<State, WasiClocks>(l, State::clocks)?;
    filesystem::types::add_to_linker::<State, WasiFilesystem>(l, State::filesystem)?;
    filesystem::preopens::add_to_linker::<State, WasiFilesystem>(l, State::filesystem)?;
    random::random::add_to_linker::<State, WasiRandom>(l, |state| state.ctx().ctx.random())?;
    random::insecure::add_to_linker::<State, WasiRandom>(l, |state| state.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<State, WasiRandom>(l, |state| state.ctx().ctx.random())?;
    cli::exit::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::environment::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::stdin::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::stdout::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::stderr::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_input::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_output::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_stdin::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_stdout::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_stderr::add_to_linker::<State, WasiCli>(l, State::cli)?;
    sockets::instance_network::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    sockets::network::add_to_linker::<State, WasiSockets>(
        l,
        &sockets::network::LinkOptions::default(),
        State::sockets,
    )?;
    sockets::ip_name_lookup::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    sockets::tcp_create_socket::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    sockets::tcp::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    sockets::udp_create_socket::add_to_linker::<State, WasiSockets>(l, State::sockets)?;
    sockets::udp::add_to_linker::<State, WasiSockets>(l, State::sockets)
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let output = &self.output;
        let made = self.made;
        let Wasi { context, table } = &mut **self.wasi.get_or_insert_with(|| {
            let context = WasiCtx::builder()
                .max_random_size(MAX_RANDOM_BYTES)
                .stdout(Stdio::new(Arc::clone(output), Stream::Stdout))
                .stderr(Stdio::new(Arc::clone(output), Stream::Stderr))
                .wall_clock(coarse::WallClock)
                .monotonic_clock(coarse::MonotonicClock(made))
                // No socket is ever made: each would be a file of the host's.
                .allow_tcp(false)
                .allow_udp(false)
                .allow_ip_name_lookup(false)
                .build();
            Box::new(Wasi { context, table: ResourceTable::new() })
        });
        WasiCtxView { ctx: context, table }
    }
}

struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

fn table(state: &mut State) -> &mut ResourceTable {
    state.ctx().table
}
