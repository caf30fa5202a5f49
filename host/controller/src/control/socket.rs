//! The unix socket for the control operations: `control/PID.sock` in the state folder, which only the host's
//! user can open.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use axum::Router;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;

use crate::report::{HostEvent, Reporter};

/// The longest path that the address of a unix socket can hold, on Linux.
const MAX_PATH: usize = 107;

/// How long the end of the host waits for answers in progress.
pub(crate) const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path does not fit into the address of a socket.
    #[error(
        "the path of the control socket is too long: {} has {} bytes, at most {MAX_PATH} are possible. \
         Name a folder with a shorter path with --state-dir", .path.display(), .path.as_os_str().len()
    )]
    PathTooLong {
        /// The path.
        path: PathBuf,
    },
    /// Another host with the same process id serves it, for example in another container.
    #[error(
        "another host serves {}, which has the same process id in another container: \
         name a folder of its own with --state-dir", .path.display()
    )]
    InUse {
        /// The path.
        path: PathBuf,
    },
    /// The system refuses the folder or the socket.
    #[error("the control socket {} cannot be made", .path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// The error.
        #[source]
        source: io::Error,
    },
}

/// A control socket that is bound. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    files: SocketFiles,
}

/// The socket's file, and a link to it.
#[derive(Debug)]
struct SocketFiles {
    path: PathBuf,
    link: Option<PathBuf>,
}

/// Returns the folder of the sockets in a state folder.
#[must_use]
pub fn folder(state_dir: &Path) -> PathBuf {
    state_dir.join("control")
}

/// Binds the control socket of this process in a state folder. If commands look for hosts in another folder,
/// a link is made there.
pub fn bind(state_dir: &Path, looked_for_in: Option<&Path>) -> Result<ControlSocket, Error> {
    let name = format!("{}.sock", std::process::id());
    let path = folder(state_dir).join(&name);
    if path.as_os_str().as_bytes().len() > MAX_PATH {
        return Err(Error::PathTooLong { path });
    }
    let io = |source| Error::Io { path: path.clone(), source };
    prepare(&folder(state_dir)).map_err(io)?;
    if is_served(&path) {
        return Err(Error::InUse { path });
    }
    remove(&path).map_err(io)?;
    let listener = UnixListener::bind(&path).map_err(io)?;
    // The folder protects it until then.
    fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(io)?;
    let path = path.canonicalize().unwrap_or(path);
    let link =
        looked_for_in.filter(|it| *it != state_dir).and_then(|it| link(&path, &folder(it).join(&name)));
    Ok(ControlSocket { listener, files: SocketFiles { path, link } })
}

/// Makes the folder, open only to this user, and removes sockets of processes that are gone.
fn prepare(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    if fs::metadata(folder)?.permissions().mode() & 0o777 != 0o700 {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    for entry in fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        let pid = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse::<u32>().ok());
        // A process that has just bound its socket does not listen yet.
        let is_gone = pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists());
        if is_gone && path.extension().is_some_and(|it| it == "sock") && !is_served(&path) {
            // Another host may have removed it meanwhile.
            let _ = fs::remove_file(&path);
        }
    }
    Ok(())
}

/// Links the socket into a folder. Without the link, commands need the path of the socket.
fn link(socket: &Path, link: &Path) -> Option<PathBuf> {
    let made = link
        .parent()
        .map_or(Ok(()), prepare)
        .and_then(|()| remove(link))
        .and_then(|()| symlink(socket, link));
    match made {
        Ok(()) => Some(link.to_owned()),
        Err(error) => {
            tracing::info!(link = %link.display(), %error, "commands do not find this host by themselves");
            None
        }
    }
}

/// Returns whether a process listens on a socket. A socket of a process that is gone refuses connections.
fn is_served(path: &Path) -> bool {
    UnixStream::connect(path).is_ok()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

// === impl ControlSocket ===

impl ControlSocket {
    /// Returns the path of the socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.files.path
    }

    /// Serves the operations until the token is cancelled, and removes the socket.
    pub(crate) async fn serve(self, operations: Router, reporter: Reporter, token: CancellationToken) {
        let Self { listener, files } = self;
        reporter.report(HostEvent::ControlListening { socket: files.path.display().to_string() });
        serve_until(
            axum::serve(listener, operations).with_graceful_shutdown(token.clone().cancelled_owned()),
            token,
        )
        .await;
        drop(files);
    }
}

/// Serves until the token is cancelled. A client that does not read its answer delays the end for a moment
/// only.
async fn serve_until(serving: impl IntoFuture<Output = io::Result<()>>, token: CancellationToken) {
    let limit = async {
        token.cancelled().await;
        tokio::time::sleep(LAST_ANSWERS).await;
    };
    tokio::select! {
        ended = serving.into_future() => {
            if let Err(error) = ended {
                tracing::error!(%error, "serving pages failed");
            }
        }
        () = limit => {}
    }
}

// === impl SocketFiles ===

impl Drop for SocketFiles {
    fn drop(&mut self) {
        for file in [Some(&self.path), self.link.as_ref()].into_iter().flatten() {
            // A file that is left behind is recognised: it refuses connections.
            let _ = fs::remove_file(file);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn the_socket_is_private_found_by_a_link_and_removed_at_the_end() {
        let temporary = tempfile::tempdir().unwrap();
        let (state, default) = (temporary.path().join("state"), temporary.path().join("default"));
        let socket = bind(&state, Some(&default)).unwrap();
        assert_eq!(
            (mode(socket.path()), mode(&folder(&state)), mode(&folder(&default))),
            (0o600, 0o700, 0o700)
        );
        let link = folder(&default).join(socket.path().file_name().unwrap());
        assert!(is_served(&link) && is_served(socket.path()));
        drop(socket);
        assert_eq!(fs::read_dir(folder(&state)).unwrap().count(), 0);
        assert_eq!(fs::read_dir(folder(&default)).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_socket_of_a_dead_process_is_replaced_and_others_are_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let sockets = folder(temporary.path());
        fs::create_dir(&sockets).unwrap();
        let own = sockets.join(format!("{}.sock", std::process::id()));
        // No process has an id this high: the kernel's limit is 2^22.
        let (dead, alive, other) =
            (sockets.join("99999998.sock"), sockets.join("99999999.sock"), sockets.join("notes"));
        for path in [&own, &dead] {
            drop(UnixListener::bind(path).unwrap());
        }
        let _alive = UnixListener::bind(&alive).unwrap();
        fs::write(&other, "").unwrap();
        let socket = bind(temporary.path(), None).unwrap();
        assert!(is_served(socket.path()) && !dead.exists() && is_served(&alive) && other.exists());
        let refused = bind(temporary.path(), None).unwrap_err();
        assert!(matches!(refused, Error::InUse { .. }), "{refused}");
    }

    #[tokio::test]
    async fn a_path_that_is_too_long_is_an_error_that_says_how_long_it_may_be() {
        let long = Path::new("/tmp").join("x".repeat(100));
        let refused = bind(&long, None).unwrap_err().to_string();
        assert!(refused.contains("at most 107") && refused.contains("--state-dir"), "{refused}");
    }
}
