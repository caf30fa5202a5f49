//! The launcher of a server: it binds its life to that of the process that started it, then becomes the
//! server.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The exit code of a launcher that cannot run the server, as in shells.
pub(crate) const CANNOT_RUN: i32 = 126;

/// How the launcher is called. What follows these arguments is for [`launch`].
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program.
    pub program: PathBuf,
    /// Its first arguments, such as the name of a subcommand.
    pub arguments: Vec<OsString>,
}

// === impl Launcher ===

impl Launcher {
    /// Returns the command that runs a server. The server is killed when the thread that starts the command
    /// ends.
    pub(crate) fn command(&self, server: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(std::process::id().to_string()).arg(server);
        command
    }
}

/// Replaces this process with a server, which the kernel kills when the parent process ends (on Linux; other
/// systems cannot do that, and a killed parent leaves its servers behind).
///
/// `arguments` are the parent's process id, the server's path and its arguments. Returns only if the server
/// cannot be run.
#[must_use]
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let mut arguments = arguments.into_iter();
    let parent = arguments.next().and_then(|it| it.into_string().ok()).and_then(|it| it.parse::<i32>().ok());
    let (Some(parent), Some(server)) = (parent, arguments.next()) else {
        eprintln!("this program is run by its own kind, to start one server");
        return ExitCode::from(2);
    };
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
    {
        eprintln!("the server cannot be bound to its parent process: {error}");
        return ExitCode::FAILURE;
    }
    // The parent may have ended before the kernel knew that this matters.
    if rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get()) != Some(parent) {
        return ExitCode::FAILURE;
    }
    let error = Command::new(&server).args(arguments).exec();
    eprintln!("{error}");
    ExitCode::from(CANNOT_RUN as u8)
}
