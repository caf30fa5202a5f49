//! The command line. The only reader of the environment, beside `oarlock-guest-build`, which looks for tools.

mod caches;
mod control;
mod duration;
mod install;
mod kubectl;
mod plugin;
mod plugin_objects;
mod record;
mod registry;
mod traces;

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use clap::{
    Args as ClapArgs, Parser, Subcommand, ValueEnum,
    builder::{OsStringValueParser, TypedValueParser},
};
use oarlock_controller::{
    account::{Account, DEFAULT_HOST_ACCOUNT},
    report::Level,
};
use oarlock_dev_cluster::faults::Fault;

pub(crate) use self::caches::CacheArgs;
pub(crate) use self::control::{
    HostChoice, LinesChoice, ListFormat, ListOutput, LogFormat, LogsArgs, ParkedArgs, ParkedChoice,
    PluginChoice, PluginsArgs, RedeliverArgs, RollbackArgs, SortBy, TopArgs,
};
pub(crate) use self::install::{Image, InstallArgs, NamespaceName};
pub(crate) use self::kubectl::{ClusterChoice, KubectlArgs, KubectlCommand, RemoteChoice};
pub(crate) use self::plugin::{BuildArgs, CheckArgs, DoctorArgs, DoctorFormat, NewArgs, TestArgs};
pub(crate) use self::plugin_objects::PluginObjectArgs;
pub(crate) use self::record::RecordArgs;
pub(crate) use self::registry::{PushArgs, RegistryArgs};
pub(crate) use self::traces::TraceArgs;

/// Runs Kubernetes controllers as WebAssembly plugins in one process.
///
/// Try it: `oarlock dev plugins/mirror` starts an API server, runs the plugin against it, and prints the next
/// step.
#[derive(Debug, Parser)]
#[command(name = "oarlock", version, max_term_width = 100)]
pub(crate) struct Args {
    /// The host's own log on standard error: a level, or targets such as `oarlock=debug,kube=info`.
    #[arg(
        long,
        global = true,
        env = "OARLOCK_LOG",
        hide_env_values = true,
        default_value = "warn",
        value_name = "FILTER"
    )]
    pub(crate) log: String,

    /// The folder for compiled plugins, which only this user can write. Otherwise `oarlock` in the user's
    /// cache folder, if it is writable.
    #[arg(long, global = true, env = "OARLOCK_CACHE_DIR", hide_env_values = true, value_name = "FOLDER")]
    pub(crate) cache_dir: Option<PathBuf>,

    /// The folder for what a host keeps over a restart, which only this user can write: the last good version
    /// of each plugin, and the versions that are not tried again. Otherwise `oarlock` in the user's folder
    /// for state, if it is writable; `dev` uses a temporary one.
    #[arg(long, global = true, env = "OARLOCK_STATE_DIR", hide_env_values = true, value_name = "FOLDER")]
    pub(crate) state_dir: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) environment: Environment,

    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The environment of the process, as hidden arguments.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct Environment {
    /// The user's home folder. The kubeconfig, the cache and the state are below it unless other variables
    /// name their places.
    #[arg(long, global = true, env = "HOME", value_parser = path_or_empty(), hide = true)]
    pub(crate) home: Option<PathBuf>,

    /// The user's folder for caches, with `oarlock` in it. Otherwise `~/.cache`.
    #[arg(long, global = true, env = "XDG_CACHE_HOME", value_parser = path_or_empty(), hide = true)]
    pub(crate) xdg_cache_home: Option<PathBuf>,

    /// The user's folder for state, with `oarlock` in it. Otherwise `~/.local/state`.
    #[arg(long, global = true, env = "XDG_STATE_HOME", value_parser = path_or_empty(), hide = true)]
    pub(crate) xdg_state_home: Option<PathBuf>,

    /// Kubernetes sets it in every Pod. Without a kubeconfig, the host uses the ServiceAccount of its Pod.
    #[arg(long, global = true, env = "KUBERNETES_SERVICE_HOST", hide = true)]
    pub(crate) kubernetes_service_host: Option<String>,

    /// If it is set and not empty, no colours are printed.
    #[arg(long, global = true, env = "NO_COLOR", hide = true)]
    pub(crate) no_color: Option<OsString>,

    /// The name of the machine, or of the Pod: the identity in the Lease of a leader election.
    #[arg(long, global = true, env = "HOSTNAME", hide = true)]
    pub(crate) hostname: Option<String>,

    /// The folder with the etcd and the kube-apiserver for `dev --real`, as envtest names it.
    #[arg(long, global = true, env = "KUBEBUILDER_ASSETS", value_parser = path_or_empty(), hide = true)]
    pub(crate) kubebuilder_assets: Option<PathBuf>,
}

/// Parses a path. An environment variable may be empty, which counts as not set.
fn path_or_empty() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().map(PathBuf::from)
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs plugins against a cluster.
    Run(RunArgs),
    /// Starts an API server on this machine and runs plugins against it.
    Dev(DevArgs),
    /// Prints the objects that install a host in a cluster, for `kubectl apply -f -`.
    #[command(after_help = install::INSTALL_EXAMPLES)]
    Install(InstallArgs),
    /// Prints the rights that plugins and the host need, as YAML for `kubectl apply -f -`.
    Rbac(RbacArgs),
    /// Makes, builds, tests and checks plugins.
    Plugin(PluginArgs),
    /// Lists the plugins of a running host, or describes one.
    Plugins(PluginsArgs),
    /// Shows what the plugins of a running host use: CPU, calls, memory, backlog.
    Top(TopArgs),
    /// Prints the newest log lines of a plugin, and the host's events about it.
    Logs(LogsArgs),
    /// Lists the objects and keys that plugins failed to handle, and that are parked.
    DeadLetters(ParkedArgs),
    /// Makes the host try parked objects or keys again, now.
    Redeliver(RedeliverArgs),
    /// Stops the calls of a plugin. Its notifications wait.
    Suspend(PluginChoice),
    /// Calls a suspended plugin again.
    Resume(PluginChoice),
    /// Goes back to the version of a plugin that served before.
    Rollback(RollbackArgs),
    /// Prints the completions of this command line for a shell.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Prints what docs/reference/configuration.md is made from, as JSON.
    #[command(hide = true)]
    Reference,
    /// Compiles one component, as a child process of a host.
    #[command(hide = true)]
    CompileComponent(ChildArgs),
    /// Becomes a server of `dev --real`, which ends when its parent process ends.
    #[command(hide = true)]
    LaunchServer(ChildArgs),
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  oarlock completions bash > ~/.local/share/bash-completion/completions/oarlock
  oarlock completions zsh > ~/.zfunc/_oarlock        # with ~/.zfunc in fpath
  oarlock completions fish > ~/.config/fish/completions/oarlock.fish";

#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// The arguments of a hidden command, which the library passes that starts the process.
#[derive(Debug, ClapArgs)]
pub(crate) struct ChildArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// A folder of plugin files, the folder of one plugin, or a plugin file. May be given several times. The
    /// host reloads changed plugins.
    #[arg(long, value_name = "PATH")]
    pub(crate) plugins: Vec<PathBuf>,

    /// How long the calls in progress may take when the process is asked to end. Keep it below the
    /// terminationGracePeriodSeconds of the Pod.
    #[arg(long, value_parser = duration::parse, default_value = "20s", value_name = "DURATION")]
    pub(crate) drain_timeout: Duration,

    /// Runs the Plugin and ClusterPlugin objects of the cluster.
    #[arg(long)]
    pub(crate) watch_plugins: bool,

    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    #[command(flatten)]
    pub(crate) host: HostArgs,

    // Last, since their headings would apply to the following arguments.
    #[command(flatten)]
    pub(crate) objects: PluginObjectArgs,

    #[command(flatten)]
    pub(crate) election: ElectionArgs,
}

/// The flags for leader election of Kubernetes' components.
#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "Leader election")]
pub(crate) struct ElectionArgs {
    /// Calls plugins only while this process holds a Lease. Other processes are on standby: they have loaded
    /// the plugins and filled their caches, and take over when the Lease is free.
    #[arg(long)]
    pub(crate) leader_elect: bool,

    /// The time after the last renewal of the Lease at which another process may acquire it.
    #[arg(long, value_parser = duration::parse, default_value = "15s", value_name = "DURATION")]
    pub(crate) leader_elect_lease_duration: Duration,

    /// The time for which the leader tries to renew the Lease before it ends.
    #[arg(long, value_parser = duration::parse, default_value = "10s", value_name = "DURATION")]
    pub(crate) leader_elect_renew_deadline: Duration,

    /// The interval between two tries.
    #[arg(long, value_parser = duration::parse, default_value = "2s", value_name = "DURATION")]
    pub(crate) leader_elect_retry_period: Duration,

    /// The name of the Lease.
    #[arg(long, default_value = "oarlock", value_name = "NAME")]
    pub(crate) leader_elect_resource_name: String,

    /// The namespace of the Lease. Otherwise that of the Pod, or of the kubeconfig's context.
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) leader_elect_resource_namespace: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ClusterArgs {
    /// The kubeconfig to use. Otherwise `~/.kube/config`, or without such a file the ServiceAccount of this
    /// Pod.
    #[arg(long, env = "KUBECONFIG", hide_env_values = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<OsString>,

    /// The kubeconfig's context to use instead of its current one.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// The arguments of both `run` and `dev`.
#[derive(Debug, ClapArgs)]
pub(crate) struct HostArgs {
    /// The address that serves /livez, /readyz, /metrics and /plugins. On an address that other machines can
    /// reach they are served over HTTPS, and all but /livez and /readyz need a bearer token of a user whom
    /// Kubernetes allows `get` on the path.
    #[arg(long, value_parser = address, value_name = "ADDRESS")]
    pub(crate) admin_addr: Option<SocketAddr>,

    /// The certificate for that address, in PEM, with those of its authorities; read again when it changes.
    /// Otherwise the host makes one, which clients cannot verify.
    #[arg(long, requires_all = ["admin_addr", "admin_key_file"], value_name = "FILE")]
    pub(crate) admin_cert_file: Option<PathBuf>,

    /// The private key of that certificate, in PEM.
    #[arg(long, requires = "admin_cert_file", value_name = "FILE")]
    pub(crate) admin_key_file: Option<PathBuf>,

    /// The format of events on standard output, and of the host's own log on standard error.
    #[arg(long, value_enum, default_value_t = Output::Human)]
    pub(crate) output: Output,

    /// The lowest level of printed events: trace, debug (every notification), info, warn or error.
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    pub(crate) level: Level,

    #[command(flatten)]
    pub(crate) record: RecordArgs,

    #[command(flatten)]
    pub(crate) traces: TraceArgs,

    #[command(flatten)]
    pub(crate) caches: CacheArgs,

    /// Leaves out the Nth notification. For the test that the loss is found.
    #[arg(long, hide = true, value_name = "N")]
    pub(crate) fault_swallow: Option<u64>,

    /// Compares every streamed initial list with a list, and fails at any difference. For tests, with
    /// client-go's name.
    #[arg(
        long,
        hide = true,
        env = "KUBE_WATCHLIST_INCONSISTENCY_DETECTOR",
        value_parser = clap::builder::FalseyValueParser::new()
    )]
    pub(crate) detect_inconsistency: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DevArgs {
    /// Plugin files, folders of one plugin each, or folders of plugins [default: the plugin in the current
    /// folder; if there is none, only the API server runs].
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugins: Vec<PathBuf>,

    /// The API server's port on 127.0.0.1. Otherwise a free one.
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,

    /// The file for the kubeconfig [default: .oarlock/kubeconfig].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Runs a real etcd and kube-apiserver instead of the embedded API server: those in the folder that
    /// KUBEBUILDER_ASSETS names, or those that `cargo xtask control-plane` has built.
    #[arg(long)]
    pub(crate) real: bool,

    /// A fault that the embedded API server injects, such as `close-watch,resource=pods,after=10`. May be
    /// given several times.
    #[arg(long, value_name = "ACTION[,KEY=VALUE]…")]
    pub(crate) fault: Vec<Fault>,

    /// Runs components as they are. Otherwise a plugin whose sources are beside its `plugin.yaml` is built
    /// first, and again whenever a source changes.
    #[arg(long)]
    pub(crate) no_build: bool,

    #[command(flatten)]
    pub(crate) host: HostArgs,

    // Last, since its heading would apply to the following arguments.
    #[command(flatten)]
    pub(crate) objects: PluginObjectArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RbacArgs {
    /// Plugin files, folders of one plugin each, or folders of plugins.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugins: Vec<PathBuf>,

    /// Prints the RoleBinding with which this namespace lets the host act as its ServiceAccounts, for Plugins
    /// in the namespace.
    #[arg(long, conflicts_with_all = ["plugins", "leader_elect"], value_name = "NAME")]
    pub(crate) namespace: Option<NamespaceName>,

    /// With --namespace: lets the host act as them on objects of the namespace only. Needs Kubernetes 1.36.
    #[arg(long, requires = "namespace")]
    pub(crate) constrained: bool,

    /// The ServiceAccount that the host runs as.
    #[arg(long, default_value = DEFAULT_HOST_ACCOUNT, value_name = "NAMESPACE/NAME")]
    pub(crate) host_account: Account,

    /// Also prints the rights that the host needs with --leader-elect.
    #[arg(long)]
    pub(crate) leader_elect: bool,

    /// The name of the Lease.
    #[arg(long, default_value = "oarlock", value_name = "NAME")]
    pub(crate) leader_elect_resource_name: String,

    /// The namespace of the Lease. Otherwise that of the host's account.
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) leader_elect_resource_namespace: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    pub(crate) command: PluginCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Writes a new plugin: a folder with sources, a plugin file and a README.
    #[command(after_help = plugin::NEW_EXAMPLES)]
    New(NewArgs),
    /// Builds the component of a plugin with the tools of its language.
    ///
    /// Fetches what is pinned and missing into the cache. Writes the component that `plugin.yaml` names, if
    /// its bytes have changed.
    Build(BuildArgs),
    /// Runs the cases of a plugin: objects, steps, and what the plugin is expected to do.
    ///
    /// Builds the component first, if its sources are beside `plugin.yaml`. Each case runs on a host of its
    /// own, over an embedded API server with a controlled clock, so no cluster is needed and no time is
    /// waited. Exit status: 0 if all cases passed, 1 if not, 2 if a case cannot be read.
    #[command(after_help = plugin::TEST_EXAMPLES)]
    Test(TestArgs),
    /// Lists the tools that builds need, and the commands that get those that are missing.
    #[command(after_help = plugin::DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Prints what a plugin is, declares and needs, or why a host would refuse it; and warnings.
    ///
    /// Its world and imports, what it watches, reads and writes, its size, the time and memory that an
    /// instance takes. Warnings name risky rights, and what makes the plugin slower than necessary.
    #[command(after_help = plugin::CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Prints the same as `check`, as JSON.
    Inspect(InspectArgs),
    /// Publishes a component in an OCI registry, and prints its reference with the digest.
    ///
    /// Checks the component first, as a host does. Uses the credentials of `docker login`.
    #[command(after_help = registry::PUSH_EXAMPLES)]
    Push(PushArgs),
    /// Runs a component as a record says, without a cluster, and prints the first difference.
    ///
    /// Each recorded call is made again, and each import is answered from the record. Exit status: 0 if all
    /// is equal, 1 if the component differs, 2 if it cannot be replayed.
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(ReplayArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InspectArgs {
    /// A component (.wasm), a plugin file, the folder of one plugin, or `oci://REFERENCE` for an artifact of a
    /// registry.
    #[arg(default_value = ".", value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) registry: RegistryArgs,
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  oarlock dev plugins/mirror --record mirror.record
  oarlock plugin replay mirror.record mirror.wasm
  oarlock plugin replay mirror.record new.wasm --keep-going --ignore log,metrics
  oarlock plugin replay mirror.record mirror.wasm --call 12";

#[derive(Debug, ClapArgs)]
pub(crate) struct ReplayArgs {
    /// The record, of `oarlock run --record` or `oarlock dev --record`.
    #[arg(value_name = "RECORD")]
    pub(crate) record: PathBuf,

    /// The component (.wasm): the recorded one, or another version of it.
    #[arg(value_name = "COMPONENT")]
    pub(crate) component: PathBuf,

    /// Stops after this call, and prints everything about it.
    #[arg(long, value_name = "N")]
    pub(crate) call: Option<u64>,

    /// Goes on after a difference, with a new instance where imports diverged.
    #[arg(long)]
    pub(crate) keep_going: bool,

    /// Interfaces whose imports are not compared, such as `log,metrics`.
    #[arg(long, value_delimiter = ',', value_parser = ["log", "metrics"], value_name = "INTERFACE,…")]
    pub(crate) ignore: Vec<String>,

    /// Prints a line for each call.
    #[arg(long)]
    pub(crate) print: bool,

    /// The format of the result.
    #[arg(long, short, value_enum, default_value_t = ReplayOutput::Human)]
    pub(crate) output: ReplayOutput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayOutput {
    /// Text.
    Human,
    /// One JSON object.
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// One line for each event.
    Human,
    /// One JSON object for each event.
    Json,
}

/// Parses an IP address with a port.
fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "write an IP address and a port, such as 127.0.0.1:8080 or [::]:8443")
}

#[cfg(test)]
mod tests;
