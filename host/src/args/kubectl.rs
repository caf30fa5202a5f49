//! The command line of `kubectl oarlock`: the same program under the name `kubectl-oarlock`.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args as ClapArgs, Parser, Subcommand};

use super::control::{AnswerOutput, LinesChoice, ListFormat, ListOutput, ParkedChoice, SortBy};
use super::{Environment, install::NamespaceName};

/// Shows and controls the Plugins of a cluster.
///
/// `plugins`, `events`, `suspend` and `resume` ask the API server. The others ask the host that leads,
/// through a port-forward; Kubernetes decides who may. docs/kubectl.md lists the rights.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-oarlock",
    bin_name = "kubectl oarlock",
    display_name = "kubectl oarlock",
    version,
    max_term_width = 100
)]
pub(crate) struct KubectlArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterChoice,

    #[command(flatten)]
    pub(crate) environment: Environment,

    #[command(subcommand)]
    pub(crate) command: KubectlCommand,
}

/// The cluster, and the namespace.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct ClusterChoice {
    /// The kubeconfig to use. Otherwise `~/.kube/config`.
    #[arg(long, global = true, env = "KUBECONFIG", hide_env_values = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<OsString>,

    /// The kubeconfig's context to use instead of its current one.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// The namespace of the Plugins. Otherwise that of the context.
    #[arg(short, long, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<NamespaceName>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KubectlCommand {
    /// Lists Plugins, or one of them.
    #[command(visible_alias = "plugin")]
    Plugins {
        /// The Plugin. Otherwise all are listed.
        #[arg(value_name = "PLUGIN")]
        plugin: Option<String>,
        #[command(flatten)]
        place: NamespaceChoice,
        #[command(flatten)]
        list: ListOutput,
    },
    /// Shows what Plugins use: CPU, calls, memory, backlog.
    Top {
        /// Only this Plugin.
        #[arg(value_name = "PLUGIN")]
        plugin: Option<String>,
        #[command(flatten)]
        place: NamespaceChoice,
        /// The column by which the Plugins are sorted, the largest first.
        #[arg(long, value_enum, default_value_t = SortBy::Cpu, value_name = "COLUMN")]
        sort_by: SortBy,
        /// The format. Otherwise a table.
        #[arg(short, long, value_enum, value_name = "FORMAT")]
        output: Option<ListFormat>,
        /// Leaves out the line with the names of the columns.
        #[arg(long)]
        no_headers: bool,
        /// Prints a sample every second, until Ctrl-C: a JSON object in a line, a document of YAML, or rows.
        /// In a terminal a table is drawn again.
        #[arg(short, long)]
        watch: bool,
        #[command(flatten)]
        host: RemoteChoice,
    },
    /// Prints the newest log lines of a Plugin, and the host's events about it.
    Logs {
        #[command(flatten)]
        plugin: ObjectChoice,
        #[command(flatten)]
        lines: LinesChoice,
        #[command(flatten)]
        host: RemoteChoice,
    },
    /// Lists the Kubernetes Events about Plugins.
    Events {
        /// Only those about this Plugin.
        #[arg(value_name = "PLUGIN")]
        plugin: Option<String>,
        #[command(flatten)]
        place: NamespaceChoice,
        #[command(flatten)]
        list: ListOutput,
    },
    /// Lists the objects and keys that Plugins failed to handle, and that are parked.
    DeadLetters {
        /// Only what this Plugin could not handle.
        #[arg(value_name = "PLUGIN")]
        plugin: Option<String>,
        #[command(flatten)]
        place: NamespaceChoice,
        #[command(flatten)]
        list: ListOutput,
        #[command(flatten)]
        host: RemoteChoice,
    },
    /// Makes the host try parked objects or keys again, now, or deliver all objects again.
    #[command(override_usage = "kubectl oarlock redeliver PLUGIN SUBSCRIPTION NAMESPACE/NAME\n       \
                                kubectl oarlock redeliver PLUGIN --key KIND [NAMESPACE/NAME]\n       \
                                kubectl oarlock redeliver PLUGIN --all\n       \
                                kubectl oarlock redeliver PLUGIN [SUBSCRIPTION] --existing")]
    Redeliver {
        #[command(flatten)]
        plugin: ObjectChoice,
        #[command(flatten)]
        parked: ParkedChoice,
        #[command(flatten)]
        output: AnswerOutput,
        #[command(flatten)]
        host: RemoteChoice,
    },
    /// Goes back to the newest version that passed its probation, else to the one before.
    ///
    /// It takes the first of these that exists, without versions in quarantine: the newest version that
    /// passed its probation since the host was started, the version that served before, the last good version
    /// on disk. The version that it leaves is in quarantine then: the host does not try it again until its
    /// component or its settings change, or --release is given.
    Rollback {
        #[command(flatten)]
        plugin: ObjectChoice,
        /// Does not roll back. Releases the versions in quarantine, so that the host tries them again.
        #[arg(long)]
        release: bool,
        #[command(flatten)]
        output: AnswerOutput,
        #[command(flatten)]
        host: RemoteChoice,
    },
    /// Stops the calls of a Plugin. Its notifications wait.
    Suspend(SuspendChoice),
    /// Calls a suspended Plugin again.
    Resume(SuspendChoice),
}

/// A Plugin that is suspended or resumed.
#[derive(Debug, ClapArgs)]
pub(crate) struct SuspendChoice {
    #[command(flatten)]
    pub(crate) plugin: ObjectChoice,

    #[command(flatten)]
    pub(crate) output: AnswerOutput,
}

/// One Plugin or ClusterPlugin.
#[derive(Debug, ClapArgs)]
pub(crate) struct ObjectChoice {
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,

    /// It is a ClusterPlugin.
    #[arg(long, conflicts_with = "namespace")]
    pub(crate) cluster: bool,
}

/// The Plugins of one namespace or of all, or ClusterPlugins.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct NamespaceChoice {
    /// Plugins of all namespaces, even if a namespace is given.
    #[arg(short = 'A', long, conflicts_with_all = ["plugin", "cluster"])]
    pub(crate) all_namespaces: bool,

    /// ClusterPlugins.
    #[arg(long, conflicts_with = "namespace")]
    pub(crate) cluster: bool,
}

/// How to reach the host.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "The host")]
pub(crate) struct RemoteChoice {
    /// The namespace of the host.
    #[arg(long, default_value = "oarlock-system", value_name = "NAME")]
    pub(crate) host_namespace: NamespaceName,

    /// The admin address of the host that leads, `https://HOST:PORT`, instead of a port-forward to its Pod.
    #[arg(long, env = "OARLOCK_SERVER_ADDRESS", hide_env_values = true, value_name = "URL")]
    pub(crate) server_address: Option<String>,

    /// The certificates of authorities, in PEM, that may have signed that of the address. Otherwise those of
    /// the system.
    #[arg(
        long,
        value_name = "FILE",
        requires = "server_address",
        conflicts_with = "insecure_skip_tls_verify"
    )]
    pub(crate) certificate_authority: Option<PathBuf>,

    /// Accepts any certificate at the address. Who can answer there in place of the host reads your token.
    #[arg(long, requires = "server_address")]
    pub(crate) insecure_skip_tls_verify: bool,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent_and_names_itself_as_kubectl_does() {
        let mut command = KubectlArgs::command();
        command.clone().debug_assert();
        command.build();
        for below in command.get_subcommands_mut() {
            let usage = below.render_usage().to_string();
            assert!(usage.contains("kubectl oarlock "), "{usage}");
            assert!(!usage.contains("kubectl-oarlock"), "{usage}");
        }
    }

    #[test]
    fn flags_that_contradict_each_other_are_refused() {
        for wrong in [
            "top -A mirror",
            "plugins --cluster -n team-a",
            "logs mirror --insecure-skip-tls-verify",
            "logs",
            "suspend mirror -n Team",
        ] {
            let words = std::iter::once("kubectl oarlock").chain(wrong.split(' '));
            assert!(KubectlArgs::try_parse_from(words).is_err(), "{wrong}");
        }
        let words =
            ["kubectl oarlock", "-n", "team-a", "logs", "-f", "mirror", "--since", "5m", "--tail", "3"];
        assert!(KubectlArgs::try_parse_from(words).is_ok());
        // As in kubectl, where a namespace may come from an alias of the shell.
        assert!(KubectlArgs::try_parse_from(["kubectl oarlock", "-n", "team-a", "top", "-A"]).is_ok());
    }
}
