//! `kubectl oarlock`: the Plugins of a cluster, with the rights of the user.
//!
//! ```text
//!   plugins, events, suspend, resume ──────────► API server
//!   top, logs, dead-letters, redeliver, rollback ─► the host that leads ─► API server: may this user?
//! ```

mod api;
mod cluster_flags;
mod complete;
mod events;
mod objects;
mod remote;
mod suspend;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

pub(crate) use self::api::failure;
use self::api::{ApiServer, Place};
use self::cluster_flags::ClusterFlags;
pub(crate) use self::complete::run as complete;
use crate::args::{KubectlArgs, KubectlCommand, without_empty_variables};
use crate::commands::{lifecycle, logs, parked, top};
use crate::failure::Ended;
use crate::unread::while_read;

/// The names of the program as a plugin of kubectl: the commands, and their completions.
pub(crate) const PROGRAM: &str = "kubectl-oarlock";
pub(crate) const COMPLETER: &str = "kubectl_complete-oarlock";

/// Runs the command.
pub(crate) async fn run(arguments: Vec<OsString>) -> ExitCode {
    let matches = without_empty_variables(KubectlArgs::command()).get_matches_from(arguments);
    // The command line was checked.
    let args = KubectlArgs::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let flags = ClusterFlags::given(&matches);
    match command(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let failure = failure.map_hint(|hint| flags.in_commands(&hint));
            failure.print();
            failure.exit_code()
        }
    }
}

async fn command(args: KubectlArgs) -> Ended {
    let KubectlArgs { cluster, environment, command } = args;
    let server = ApiServer::connect(&cluster, &environment).await?;
    match command {
        KubectlCommand::Plugins { plugin, place, list } => {
            let place = server.place(place.all_namespaces, place.cluster);
            while_read(list.watch, objects::list(&server, &place, plugin.as_deref(), list)).await
        }
        KubectlCommand::Events { plugin, place, list } => {
            let place = server.place(place.all_namespaces, place.cluster);
            while_read(list.watch, events::list(&server, &place, plugin.as_deref(), list)).await
        }
        KubectlCommand::Suspend(it) => suspend::set(&server, it, true).await,
        KubectlCommand::Resume(it) => suspend::set(&server, it, false).await,
        KubectlCommand::Top { plugin, place, sort_by, output, no_headers, watch, host } => {
            let place = server.place(place.all_namespaces, place.cluster);
            let plugin = plugin.as_deref().map(|it| place.object_name(it)).transpose()?;
            let repeat = if watch { top::Repeat::Always } else { top::Repeat::Never };
            let shown = top::Shown { sort_by, repeat, output, no_headers };
            top::show(remote::connect(&server, &place, host).await?, plugin, shown).await
        }
        KubectlCommand::Logs { plugin, lines, host } => {
            let place = server.place(false, plugin.cluster);
            let name = place.object_name(&plugin.plugin)?;
            let client = remote::connect(&server, &place, host).await?;
            while_read(lines.follow, logs::follow_leader(client, name, lines)).await
        }
        KubectlCommand::DeadLetters { plugin, place, list, host } => {
            let place = server.place(place.all_namespaces, place.cluster);
            let plugin = plugin.as_deref().map(|it| place.object_name(it)).transpose()?;
            let client = remote::connect(&server, &place, host).await?;
            while_read(list.watch, parked::show(client, plugin, list)).await
        }
        KubectlCommand::Redeliver { plugin, parked, output, host } => {
            let place = server.place(false, plugin.cluster);
            let name = place.object_name(&plugin.plugin)?;
            let what = parked::requested(parked, name, &place.names())?;
            parked::deliver_again(remote::connect(&server, &place, host).await?, name, what, output).await
        }
        KubectlCommand::Rollback { plugin, release, output, host } => {
            let place = server.place(false, plugin.cluster);
            let name = place.object_name(&plugin.plugin)?;
            lifecycle::go_back(remote::connect(&server, &place, host).await?, name, release, output).await
        }
    }
}
