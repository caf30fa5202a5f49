//! Finds the running host: by its flags, or by the sockets in the state folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use futures::future::join_all;
use oarlock_controller::control;
use oarlock_controller::report::Timestamp;
use serde::Deserialize;

use super::{ControlClient, Place};
use crate::age::Age;
use crate::args::{Environment, HostChoice};
use crate::failure::Failure;
use crate::state_folder;

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

/// Connects to the host that the flags name, or to the only one that runs.
pub(crate) async fn connect(choice: HostChoice, finding: Finding<'_>) -> Result<ControlClient, Failure> {
    let HostChoice { socket, admin } = choice;
    if let Some(path) = socket {
        return ControlClient::open(Place::Socket(path)).await;
    }
    if let Some(address) = admin {
        let address = address.strip_prefix("http://").unwrap_or(&address).trim_end_matches('/').to_owned();
        return ControlClient::open(Place::Admin(address)).await;
    }
    let folders = finding.folders();
    let mut found = Vec::new();
    let mut unusable = None;
    for opened in join_all(sockets(&folders).into_iter().map(open)).await {
        match opened {
            Ok(Some(host)) => found.push(host),
            Ok(None) => {}
            Err(failure) => unusable = Some(failure),
        }
    }
    match found.len() {
        1 => Ok(found.remove(0).1),
        0 => Err(unusable.unwrap_or_else(|| none_runs(&folders))),
        n => {
            let hosts = found.iter().map(|(path, _, view)| describe(path, view)).collect();
            Err(Failure::caller(anyhow::anyhow!("{n} hosts run on this machine:"))
                .and(hosts)
                .hint("choose one of them with --socket PATH"))
        }
    }
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
async fn open(path: PathBuf) -> Result<Option<(PathBuf, ControlClient, HostView)>, Failure> {
    match tokio::net::UnixStream::connect(&path).await {
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => return Ok(None),
        _ => {}
    }
    let mut client = ControlClient::open(Place::Socket(path.clone())).await?;
    let view = client.get("/v1/host").await?;
    Ok(Some((path, client, view)))
}

fn describe(path: &Path, view: &HostView) -> String {
    let HostView { pid, server, started, plugins } = view;
    let age = Age(started.elapsed());
    format!(
        "--socket {}: process {pid}, {plugins} plugins, API server {server}, started {age} ago",
        path.display()
    )
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
