//! Why a control plane does not start, or does not keep running.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a control plane does not start, or does not keep running. The logs that an error names are kept.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder of assets lacks an executable.
    #[error("there is no file `{program}` in {}", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// `etcd` or `kube-apiserver`.
        program: &'static str,
    },
    /// The system cannot run an executable, for example since it was built for another processor.
    #[error("{} cannot be run: {reason}", path.display())]
    NotRunnable {
        /// The executable.
        path: PathBuf,
        /// The system's reason.
        reason: String,
    },
    /// The API server's port is not free.
    #[error("port {port} of 127.0.0.1 is in use: choose another, or 0 for any that is free")]
    PortInUse {
        /// The port.
        port: u16,
    },
    /// A server ended although it was not asked to.
    #[error("{program} ended ({status}); the end of its log, {}:\n{tail}", log.display())]
    Ended {
        /// `etcd` or `kube-apiserver`.
        program: &'static str,
        /// How it ended.
        status: ExitStatus,
        /// The file with its standard output and standard error.
        log: PathBuf,
        /// The last lines of that file.
        tail: String,
    },
    /// A server runs, but does not become ready.
    #[error("{program} was not ready after {limit:?}: {answer}; its log is {}", log.display())]
    NotReady {
        /// `etcd` or `kube-apiserver`.
        program: &'static str,
        /// How long it was waited for.
        limit: Duration,
        /// The last answer to the probe.
        answer: String,
        /// The file with its standard output and standard error.
        log: PathBuf,
    },
    /// The certificates cannot be made.
    #[error("the certificates cannot be made")]
    Certificates(#[from] rcgen::Error),
    /// A request to the API server failed.
    #[error("the API server cannot be used")]
    Client(#[source] Box<kube::Error>),
    /// The kubeconfig of the API server cannot be used.
    #[error("the API server's kubeconfig cannot be used")]
    Kubeconfig(#[from] kube::config::KubeconfigError),
    /// A file cannot be written, or a process cannot be started.
    #[error("{what} {}", path.display())]
    Io {
        /// What failed, such as "cannot write".
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

// === impl Error ===

impl Error {
    pub(crate) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Client(Box::new(error))
    }
}
