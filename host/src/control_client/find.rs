//! Finds the running host: by its flags, or by the sockets in the state folder.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::future::join_all;
use oarlock_controller::control;
use oarlock_controller::report::{Counted, Timestamp};
use rustix::fs::{Access, access};
use serde::Deserialize;
use tokio::time::timeout;

use super::{Chosen, ControlClient, Place, no_answer};
use crate::age::Age;
use crate::args::{Environment, HostChoice};
use crate::failure::Failure;
use crate::state_folder;

/// How long a host may take to say who it is. It waits for no plugin.
const FIND_LIMIT: Duration = Duration::from_secs(15);

/// Where to look for hosts.
pub(crate) struct Finding<'a> {
    /// The state folder that the user named.
    pub(crate) state_dir: Option<PathBuf>,
    pub(crate) environment: &'a Environment,
}

/// A running host.
#[derive(Debug, Deserialize)]
struct HostView {
    pid: u32,
    server: String,
    started: Timestamp,
    plugins: usize,
}

/// Connects to the host that the flags or the variable name, or to the only one that runs.
pub(crate) async fn connect(choice: HostChoice, finding: Finding<'_>) -> Result<ControlClient, Failure> {
    if let Some(place) = chosen(choice)? {
        return ControlClient::open(place).await;
    }
    let folders = finding.folders();
    let mut hosts = Vec::new();
    for path in sockets(&folders) {
        hosts.push(async move { open(&path).await.map(|answer| (path, answer)) });
    }
    let mut hosts: Vec<_> = join_all(hosts).await.into_iter().flatten().collect();
    // A host of another user is not meant, if one of this user answers.
    if hosts.iter().any(|(_, answer)| answer.is_ok()) {
        hosts.retain(|(path, answer)| answer.is_ok() || access(path, Access::WRITE_OK).is_ok());
    }
    match hosts.len() {
        0 => Err(none_runs(&folders)),
        1 => hosts.remove(0).1.map(|(client, _)| client),
        n => {
            let hosts = hosts.iter().map(|(path, answer)| describe(path, answer)).collect();
            Err(Failure::caller(anyhow::anyhow!("{n} hosts run on this machine:"))
                .and(hosts)
                .hint("choose one of them with --socket PATH"))
        }
    }
}

/// Returns where the host is that the flags name, else the variable.
fn chosen(choice: HostChoice) -> Result<Option<Place>, Failure> {
    let HostChoice { socket, socket_variable, admin } = choice;
    if let Some(path) = socket {
        return Ok(Some(Place::Socket(path, Chosen::ByFlag)));
    }
    let Some(address) = admin else {
        return Ok(socket_variable.map(|path| Place::Socket(path, Chosen::ByVariable)));
    };
    if address.starts_with("https://") {
        let refused =
            anyhow::anyhow!("{address} cannot be used: a host serves its admin address over plain HTTP");
        return Err(Failure::caller(refused)
            .hint("--admin takes HOST:PORT, the address that the host was given with --admin-addr"));
    }
    let address = address.strip_prefix("http://").unwrap_or(&address).trim_end_matches('/').to_owned();
    Ok(Some(Place::Admin(address)))
}

impl Finding<'_> {
    fn folders(&self) -> Vec<PathBuf> {
        let Self { state_dir, environment } = self;
        match state_dir {
            Some(named) => vec![control::folder(named)],
            None => {
                state_folder::default_folder(environment).map(|it| control::folder(&it)).into_iter().collect()
            }
        }
    }
}

/// Returns the sockets in the folders, each once.
fn sockets(folders: &[PathBuf]) -> Vec<PathBuf> {
    let entries = folders.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let paths =
        entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|it| it == "sock"));
    let by_target: BTreeMap<PathBuf, PathBuf> =
        paths.filter_map(|path| Some((path.canonicalize().ok()?, path))).collect();
    by_target.into_values().collect()
}

/// Connects to a host, if one serves the socket. Sockets of hosts that have ended are left to the next host,
/// which removes them.
async fn open(path: &Path) -> Option<Result<(ControlClient, HostView), Failure>> {
    // The messages name the flag, with which the user can choose this socket.
    let place = Place::Socket(path.to_owned(), Chosen::ByFlag);
    let ask = async {
        let mut client = ControlClient::open(place.clone()).await?;
        let view = client.get("/v1/host").await?;
        Ok((client, view))
    };
    match tokio::net::UnixStream::connect(path).await {
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::NotFound) => None,
        _ => Some(timeout(FIND_LIMIT, ask).await.unwrap_or_else(|_| Err(no_answer(&place, FIND_LIMIT)))),
    }
}

fn describe(path: &Path, answer: &Result<(ControlClient, HostView), Failure>) -> String {
    let described = match answer {
        Ok((_, view)) => view.to_string(),
        Err(failure) => failure.message(),
    };
    format!("--socket {}: {described}", path.display())
}

impl std::fmt::Display for HostView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { pid, server, started, plugins } = self;
        let (age, plugins) = (Age(started.elapsed()), Counted(*plugins, "plugin"));
        write!(f, "process {pid}, {plugins}, API server {server}, started {age} ago")
    }
}

fn none_runs(folders: &[PathBuf]) -> Failure {
    let looked = folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ");
    let error = match folders.is_empty() {
        true => anyhow::anyhow!("no running host was found: this user has no folder for state"),
        false => anyhow::anyhow!("no running host was found: no socket in {looked} answers"),
    };
    Failure::caller(error).hint(
        "start a host with `oarlock dev` or `oarlock run`, and run this command on the same machine as the same user \
         (in a cluster: kubectl exec POD -- oarlock …); --state-dir, --socket or --admin name another place",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flag_wins_over_the_variable() {
        let variable = Some(PathBuf::from("/variable.sock"));
        let of = |socket: Option<&str>, admin: Option<&str>| {
            let choice = HostChoice {
                socket: socket.map(PathBuf::from),
                socket_variable: variable.clone(),
                admin: admin.map(str::to_owned),
            };
            chosen(choice).unwrap().map(|place| place.to_string())
        };
        assert_eq!(of(Some("/flag.sock"), None).as_deref(), Some("/flag.sock"));
        assert_eq!(of(None, Some("http://127.0.0.1:1/")).as_deref(), Some("http://127.0.0.1:1"));
        assert_eq!(of(None, None).as_deref(), Some("/variable.sock"));
        assert!(chosen(HostChoice::default()).unwrap().is_none());
    }

    #[test]
    fn a_host_is_described_by_its_process_plugins_and_server() {
        let described = |plugins| {
            let (server, started) = ("https://a".to_owned(), Timestamp::now());
            HostView { pid: 7, server, started, plugins }.to_string()
        };
        assert_eq!(described(1), "process 7, 1 plugin, API server https://a, started 0s ago");
        assert!(described(2).contains(" 2 plugins, "));
    }
}
