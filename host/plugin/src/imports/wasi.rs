//! The empty WASI, for language runtimes that do not start without WASI.
//!
//! Clocks (in whole milliseconds) and random numbers work. Output on stdout and stderr, such as an exception
//! of a Go, Python or JavaScript guest, goes to the plugin's log, or becomes part of the error of a failed
//! call. There are no files, no arguments, no environment, and stdin is empty. Every socket and every look-up
//! of a name is denied without a system call.

pub(crate) mod coarse;
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
    state::{StoreState, Wasi},
};

/// The maximum number of random bytes in one call, which the host allocates.
pub(crate) const MAX_RANDOM_BYTES: u64 = 64 << 10;

/// Links the interfaces that [`crate::component`] accepts.
pub(crate) fn add_to_linker(linker: &mut Linker<StoreState>) -> wasmtime::Result<()> {
    let l = linker;
    io::error::add_to_linker::<StoreState, Table>(l, table)?;
    io::poll::add_to_linker::<StoreState, Table>(l, table)?;
    io::streams::add_to_linker::<StoreState, Table>(l, table)?;
    clocks::wall_clock::add_to_linker::<StoreState, WasiClocks>(l, StoreState::clocks)?;
    clocks::monotonic_clock::add_to_linker::<StoreState, WasiClocks>(l, StoreState::clocks)?;
    filesystem::types::add_to_linker::<StoreState, WasiFilesystem>(l, StoreState::filesystem)?;
    filesystem::preopens::add_to_linker::<StoreState, WasiFilesystem>(l, StoreState::filesystem)?;
    random::random::add_to_linker::<StoreState, WasiRandom>(l, |state| state.ctx().ctx.random())?;
    random::insecure::add_to_linker::<StoreState, WasiRandom>(l, |state| state.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<StoreState, WasiRandom>(l, |state| state.ctx().ctx.random())?;
    cli::exit::add_to_linker::<StoreState, WasiCli>(l, StoreState::cli)?;
    cli::environment::add_to_linker::<StoreState, WasiCli>(l, StoreState::cli)?;
    cli::stdin::add_to_linker::<StoreState, WasiCli>(l, StoreState::cli)?;
    cli::stdout::add_to_linker::<StoreState, WasiCli>(l, StoreState::cli)?;
    cli::stderr::add_to_linker::<StoreState, WasiCli>(l, StoreState::cli)?;
    cli::terminal_input::add_to_linker::<StoreState, WasiCli>(l, StoreState::cli)?;
    cli::terminal_output::add_to_linker::<StoreState, WasiCli>(l, StoreState::cli)?;
    cli::terminal_stdin::add_to_linker::<StoreState, WasiCli>(l, StoreState::cli)?;
    cli::terminal_stdout::add_to_linker::<StoreState, WasiCli>(l, StoreState::cli)?;
    cli::terminal_stderr::add_to_linker::<StoreState, WasiCli>(l, StoreState::cli)?;
    sockets::instance_network::add_to_linker::<StoreState, WasiSockets>(l, StoreState::sockets)?;
    sockets::network::add_to_linker::<StoreState, WasiSockets>(
        l,
        &sockets::network::LinkOptions::default(),
        StoreState::sockets,
    )?;
    sockets::ip_name_lookup::add_to_linker::<StoreState, WasiSockets>(l, StoreState::sockets)?;
    sockets::tcp_create_socket::add_to_linker::<StoreState, WasiSockets>(l, StoreState::sockets)?;
    sockets::tcp::add_to_linker::<StoreState, WasiSockets>(l, StoreState::sockets)?;
    sockets::udp_create_socket::add_to_linker::<StoreState, WasiSockets>(l, StoreState::sockets)?;
    sockets::udp::add_to_linker::<StoreState, WasiSockets>(l, StoreState::sockets)
}

impl WasiView for StoreState {
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
                // The host never opens a socket for a guest.
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

fn table(state: &mut StoreState) -> &mut ResourceTable {
    state.ctx().table
}
