//! The flags that choose the cluster, in the commands of hints: a command that a user pastes is about the
//! cluster of the command that failed.

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::shell_word::quoted;

/// The flags that kubectl and `kubectl oarlock` have in common, by their names in [`ArgMatches`].
const FLAGS: [&str; 2] = ["kubeconfig", "context"];

/// The commands of kubectl that hints name. Other words after `kubectl` make no command.
const COMMANDS: [&str; 8] = ["auth", "create", "describe", "exec", "get", "logs", "oarlock", "port-forward"];

/// The flags as a user gave them, such as ` --context staging`.
pub(super) struct ClusterFlags(String);

// === impl ClusterFlags ===

impl ClusterFlags {
    /// Returns the flags of a command line. What comes from a variable of the environment, a pasted command
    /// reads too.
    pub(super) fn given(matches: &ArgMatches) -> Self {
        let given = |flag: &&str| matches.value_source(flag) == Some(ValueSource::CommandLine);
        let words = FLAGS.into_iter().filter(given).filter_map(|flag| {
            let value = matches.get_raw(flag)?.next_back()?;
            Some(format!(" --{flag} {}", quoted(&value.to_string_lossy())))
        });
        Self(words.collect())
    }

    /// Returns a hint with the flags in each command of kubectl.
    pub(super) fn in_commands(&self, hint: &str) -> String {
        const KUBECTL: &str = "kubectl ";
        let Self(flags) = self;
        let mut parts = hint.split(KUBECTL);
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let is_word = |it: char| it.is_ascii_lowercase() || it == '-';
            let command = &part[..part.find(|it| !is_word(it)).unwrap_or(part.len())];
            let begins = !text.ends_with(|it: char| it.is_alphanumeric() || "-_./".contains(it));
            let given = if begins && COMMANDS.contains(&command) { flags.as_str() } else { "" };
            text += &match command {
                // The flags of a plugin of kubectl come after its name.
                "oarlock" => format!("{KUBECTL}{command}{given}{}", &part[command.len()..]),
                _ => format!("kubectl{given} {part}"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::KubectlArgs;

    fn flags(words: &[&str]) -> ClusterFlags {
        let words = ["kubectl oarlock"].iter().chain(words);
        ClusterFlags::given(&KubectlArgs::command().try_get_matches_from(words).unwrap())
    }

    #[test]
    fn the_flags_are_those_of_the_command_line_wherever_they_are() {
        assert_eq!(flags(&["plugins"]).0, "");
        assert_eq!(flags(&["--context", "a", "plugins"]).0, " --context a");
        assert_eq!(
            flags(&["plugins", "--context=it's b", "--kubeconfig", "c/d"]).0,
            r" --kubeconfig c/d --context 'it'\''s b'"
        );
    }

    #[test]
    fn each_command_of_kubectl_in_a_hint_is_about_the_same_cluster() {
        let flags = flags(&["plugins", "--context", "a"]);
        for (hint, shown) in [
            (
                "`kubectl oarlock plugins -A` lists the Plugins",
                "`kubectl oarlock --context a plugins -A` lists the Plugins",
            ),
            ("or use `kubectl oarlock`", "or use `kubectl oarlock --context a`"),
            (
                "kubectl get pods --namespace b shows the hosts; kubectl auth whoami more",
                "kubectl --context a get pods --namespace b shows the hosts; kubectl --context a auth whoami more",
            ),
            ("put kubectl into a folder of PATH", "put kubectl into a folder of PATH"),
            ("docs/kubectl.md lists the rights", "docs/kubectl.md lists the rights"),
            ("`oarlock install --print`", "`oarlock install --print`"),
        ] {
            assert_eq!(flags.in_commands(hint), shown);
        }
        let none = ClusterFlags(String::new());
        assert_eq!(
            none.in_commands("`kubectl oarlock top` or kubectl get"),
            "`kubectl oarlock top` or kubectl get"
        );
    }

    #[test]
    fn the_commands_of_all_hints_are_known() {
        // A hint may name another command: then it must be added to the list.
        for source in [
            include_str!("api.rs"),
            include_str!("remote.rs"),
            include_str!("../control_client.rs"),
            include_str!("../control_client/remote.rs"),
            include_str!("../control_client/names.rs"),
        ] {
            let code = source.split("mod tests {").next().unwrap_or_default();
            for part in code.split("`kubectl ").skip(1).filter(|it| !it.starts_with('`')) {
                let command = part.split([' ', '`', '"']).next().unwrap_or_default();
                assert!(COMMANDS.contains(&command), "{command}");
            }
        }
    }
}
