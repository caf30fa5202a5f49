//! Going back to an earlier version, and releasing versions from quarantine, when an operator asks for it.

use std::fmt;

use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

/// Asks for rollbacks by the name of a plugin. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Rollback {
    requests: mpsc::Sender<Request>,
}

/// The result of a rollback.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RolledBack {
    /// The number of the generation that was left.
    pub(crate) from: u64,
    /// The version that serves from now on.
    pub(crate) to_version: String,
    /// The digest of its component.
    pub(crate) to_digest: String,
}

/// Why the host did not go back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RollbackError {
    /// No plugin has this name.
    #[error("this host runs no plugin {0:?}")]
    UnknownPlugin(String),
    /// No version serves.
    #[error("no version of the plugin serves")]
    NothingServes,
    /// There is no version to go back to.
    #[error(
        "there is no version to go back to: no other version that is not in quarantine served since the host \
         was started, and the folder for state has none that passed its probation"
    )]
    NothingToGoBackTo,
    /// The plugin is on the only earlier version that the host keeps.
    #[error(
        "there is no version to go back to: the host keeps one earlier version of a plugin, and it went back \
         to that one already"
    )]
    IsBack,
    /// The version to go back to cannot be loaded.
    #[error("the version to go back to cannot be loaded: {message}")]
    Failed {
        /// The error.
        message: String,
        /// What the operator can do, if the error says it.
        hint: Option<String>,
    },
    /// Another version was loaded meanwhile, or the host ends.
    #[error("another version of the plugin was loaded meanwhile, or the host ends")]
    Interrupted,
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, RollbackError>>;

/// One request, and where its answer goes.
pub(crate) enum Request {
    /// Go back to the version before.
    Rollback {
        /// The name of the plugin.
        plugin: String,
        /// Receives the result when the other version serves.
        reply: Reply<RolledBack>,
    },
    /// Try the versions again that were rolled back.
    Release {
        /// The name of the plugin.
        plugin: String,
        /// Receives how many versions were in quarantine.
        reply: Reply<usize>,
    },
}

/// Returns the two ends of the channel for requests.
pub(crate) fn rollbacks() -> (Rollback, mpsc::Receiver<Request>) {
    let (requests, receiver) = mpsc::channel(16);
    (Rollback { requests }, receiver)
}

// === impl Rollback ===

impl Rollback {
    /// Goes back to the version before the one that serves, and puts this one in quarantine. Returns when the
    /// other one serves. A version that is being prepared is given up until its files change again.
    pub(crate) async fn rollback(&self, plugin: &str) -> Result<RolledBack, RollbackError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Rollback { plugin: plugin.to_owned(), reply }).await?;
        answer.await.unwrap_or(Err(RollbackError::Interrupted))
    }

    /// Empties the quarantine of a plugin, and loads the newest version of its files. Returns how many
    /// versions were in quarantine.
    pub(crate) async fn release(&self, plugin: &str) -> Result<usize, RollbackError> {
        let (reply, answer) = oneshot::channel();
        self.ask(Request::Release { plugin: plugin.to_owned(), reply }).await?;
        answer.await.unwrap_or(Err(RollbackError::Interrupted))
    }

    async fn ask(&self, request: Request) -> Result<(), RollbackError> {
        self.requests.send(request).await.map_err(|_| RollbackError::Interrupted)
    }
}

// === impl Request ===

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rollback { plugin, .. } => write!(f, "Rollback({plugin})"),
            Self::Release { plugin, .. } => write!(f, "Release({plugin})"),
        }
    }
}
