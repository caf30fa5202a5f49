//! `oarlock completions`: prints what a shell needs to complete this command line.

use std::io::Write;

use clap::CommandFactory;

use crate::{
    args::{Args, CompletionsArgs},
    failure::{Ended, Failure},
};

pub(crate) fn run(args: &CompletionsArgs) -> Ended {
    std::io::stdout().write_all(&completions(args.shell)).map_err(Failure::output)
}

fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "oarlock", &mut text);
    text
}

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    use super::*;

    #[test]
    fn the_commands_and_options_are_completed_in_each_shell() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = String::from_utf8(completions(shell)).unwrap();
            for part in ["dead-letters", "doctor", "no-build", "junit"] {
                assert!(text.contains(part), "{shell}: {part} is missing");
            }
        }
    }
}
