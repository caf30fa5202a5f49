//! The failure of a command: the error, a hint, and the exit code.

use std::{fmt::Display, io, process::ExitCode};

use oarlock_controller::report::{Lines, OneLine};

use crate::telemetry;

/// The failure of a command.
#[derive(Debug)]
pub(crate) struct Failure {
    fault: Fault,
    error: anyhow::Error,
    /// Further errors, each printed on its own line.
    others: Vec<String>,
    hint: Option<String>,
}

/// Who has to act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A failure while the command ran: exit code 1.
    Running,
    /// The reader of the output has closed it: no failure, and no message.
    Unread,
    /// The caller has to change a file, a flag or a right first: exit code 2, as for a wrong command line.
    Caller,
}

pub(crate) type Ended = Result<(), Failure>;

// === impl Failure ===

impl Failure {
    pub(crate) fn caller(error: impl Into<anyhow::Error>) -> Self {
        Self { fault: Fault::Caller, error: error.into(), others: Vec::new(), hint: None }
    }

    pub(crate) fn running(error: impl Into<anyhow::Error>) -> Self {
        Self { fault: Fault::Running, error: error.into(), others: Vec::new(), hint: None }
    }

    /// Returns the failure of a write to standard output.
    pub(crate) fn output(error: io::Error) -> Self {
        let is_closed = error.kind() == io::ErrorKind::BrokenPipe;
        let failure = Self::running(anyhow::Error::new(error).context("standard output cannot be written"));
        if is_closed { Self { fault: Fault::Unread, ..failure } } else { failure }
    }

    /// Returns the end of a command whose output no one can read any more.
    pub(crate) fn unread() -> Self {
        Self::output(io::ErrorKind::BrokenPipe.into())
    }

    /// Adds further errors.
    #[must_use]
    pub(crate) fn and(self, others: Vec<String>) -> Self {
        Self { others, ..self }
    }

    #[must_use]
    pub(crate) fn hint(self, hint: impl Display) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }

    /// Adds a hint, if there is one.
    #[must_use]
    pub(crate) fn hint_if(self, hint: Option<impl Display>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// Changes the hint, if there is one.
    #[must_use]
    pub(crate) fn map_hint(self, change: impl FnOnce(String) -> String) -> Self {
        Self { hint: self.hint.map(change), ..self }
    }

    /// Adds a context in front of the error.
    #[must_use]
    pub(crate) fn context(self, context: impl Display) -> Self {
        Self { error: self.error.context(context.to_string()), ..self }
    }

    /// Returns the error with its causes, without the hint. Many errors have the text of their cause in their
    /// own.
    pub(crate) fn message(&self) -> String {
        let mut message = self.error.to_string();
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            if !message.contains(&cause) {
                message = format!("{message}: {cause}");
            }
        }
        message
    }

    /// Writes it to standard error.
    pub(crate) fn print(&self) {
        if self.fault == Fault::Unread {
            return;
        }
        // The text may quote files, guests and API servers.
        let mut lines = format!("error: {}\n", Lines(self.message()));
        for other in &self.others {
            lines += &format!("       {}\n", Lines(other));
        }
        if let Some(hint) = &self.hint {
            lines += &format!("hint:  {}\n", OneLine(hint));
        }
        telemetry::print_at_end(lines);
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.fault {
            Fault::Unread => ExitCode::SUCCESS,
            Fault::Running => ExitCode::from(1),
            Fault::Caller => ExitCode::from(2),
        }
    }

    #[cfg(test)]
    pub(crate) fn text(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}\nhint: {hint}", self.message()),
            None => self.message(),
        }
    }
}
