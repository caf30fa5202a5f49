//! The variables of the environment that arguments read.

use std::ffi::OsStr;

use clap::Command;

/// Returns a command whose arguments do not read the variables that are empty: an empty one counts as not
/// set. An empty value of a flag stays an error.
pub(crate) fn without_empty_variables(command: Command) -> Command {
    without(command, |name| std::env::var_os(name).is_some_and(|value| value.is_empty()))
}

/// Removes variables from the arguments of a command, and of the commands below it.
fn without(command: Command, is_removed: impl Fn(&OsStr) -> bool + Copy) -> Command {
    let command = command.mut_args(|argument| match argument.get_env().is_some_and(is_removed) {
        true => argument.env(None::<&'static str>),
        false => argument,
    });
    command.mut_subcommands(|below| without(below, is_removed))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Args;

    /// Returns how many arguments read a variable.
    fn n_readers(command: &Command, name: &str) -> usize {
        let own = command.get_arguments().filter(|it| it.get_env() == Some(OsStr::new(name))).count();
        own + command.get_subcommands().map(|below| n_readers(below, name)).sum::<usize>()
    }

    #[test]
    fn an_empty_variable_is_read_by_no_argument_of_any_command() {
        let empty = ["OARLOCK_STATE_DIR", "OARLOCK_SOCKET", "OTEL_TRACES_SAMPLER_ARG"];
        let command = without(Args::command(), |name| empty.iter().any(|it| name == *it));
        for name in empty {
            assert!(n_readers(&Args::command(), name) > 0, "{name}");
            assert_eq!(n_readers(&command, name), 0, "{name}");
        }
        assert_eq!(n_readers(&command, "OARLOCK_CACHE_DIR"), 1);
    }
}
