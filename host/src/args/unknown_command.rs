//! The error of a command that does not exist.

use clap::{
    Error, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};

use super::PluginCommand;

/// Other tools make a project with this command.
const INIT: &str = "init";

/// Adds the command of `oarlock plugin` that was meant, if there is one.
pub(crate) fn with_tip(mut error: Error) -> Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    let Some(ContextValue::String(written)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let meant = if written == INIT { "new" } else { written };
    if PluginCommand::has_subcommand(meant) {
        let tip = format!("did you mean 'oarlock plugin {meant}'?");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        // `init` resembles `install`.
        error.remove(ContextKind::SuggestedSubcommand);
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Args;

    fn refused(line: &str) -> String {
        with_tip(Args::try_parse_from(line.split(' ')).unwrap_err()).to_string()
    }

    #[test]
    fn a_command_of_plugin_is_found_without_plugin() {
        insta::assert_snapshot!(refused("oarlock new web --lang c"), @"
        error: unrecognized subcommand 'new'

          tip: did you mean 'oarlock plugin new'?

        Usage: oarlock [OPTIONS] <COMMAND>

        For more information, try '--help'.
        ");
        for (line, meant) in [
            ("oarlock init", "new"),
            ("oarlock plugin init", "new"),
            ("oarlock build .", "build"),
            ("oarlock help test", "test"),
        ] {
            let text = refused(line);
            assert!(text.contains(&format!("tip: did you mean 'oarlock plugin {meant}'?")), "{text}");
            assert!(!text.contains("similar"), "{text}");
        }
    }

    #[test]
    fn other_errors_stay_as_they_are() {
        let text = refused("oarlock rolback");
        assert!(text.contains("similar subcommands exist: 'rbac', 'rollback'"), "{text}");
        for line in ["oarlock rolback", "oarlock deploy", "oarlock completions new", "oarlock run new"] {
            let text = refused(line);
            assert!(!text.contains("oarlock plugin"), "{text}");
        }
    }
}
