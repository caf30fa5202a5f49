//! `oarlock completions`: prints what a shell needs to complete this command line.

use std::io::Write;

use clap::{Command, CommandFactory};

use crate::{
    args::{Args, CompletionsArgs},
    failure::{Ended, Failure},
};

pub(crate) fn run(args: &CompletionsArgs) -> Ended {
    std::io::stdout().write_all(&completions(args.shell)).map_err(Failure::output)
}

fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut shown(&Args::command()), "oarlock", &mut text);
    text
}

/// Returns a command without what the help hides, such as the flags of environment variables.
fn shown(command: &Command) -> Command {
    let arguments = command.get_arguments().filter(|it| !it.is_hide_set()).cloned();
    let commands = command.get_subcommands().filter(|it| !it.is_hide_set()).map(shown);
    let about = command.get_about().cloned().unwrap_or_default();
    let shown = Command::new(command.get_name().to_owned()).about(about);
    let shown = match command.get_version() {
        Some(version) => shown.version(version.to_owned()),
        None => shown,
    };
    shown
        .visible_aliases(command.get_visible_aliases().map(str::to_owned).collect::<Vec<_>>())
        .args(arguments)
        .subcommands(commands)
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    use super::*;

    #[test]
    fn the_commands_and_options_are_completed_in_each_shell() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = String::from_utf8(completions(shell)).unwrap();
            for part in ["dead-letters", "doctor", "no-build", "junit", "version"] {
                assert!(text.contains(part), "{shell}: {part} is missing");
            }
            for part in ["xdg-cache-home", "compile-component", "otlp-endpoint-variable"] {
                assert!(!text.contains(part), "{shell}: {part} is hidden");
            }
        }
    }
}
