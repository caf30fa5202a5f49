//! The command line. The only reader of the environment, beside `oarlock-guest-build`, which looks for tools.

mod caches;
mod control;
mod duration;
mod host;
mod install;
mod kubectl;
mod plugin;
mod plugin_objects;
mod record;
mod registry;
mod traces;
mod unknown_command;
mod variables;

use std::{ffi::OsString, path::PathBuf};

use clap::{
    Args as ClapArgs, CommandFactory, Error, FromArgMatches, Parser, Subcommand, ValueEnum,
    builder::{OsStringValueParser, TypedValueParser},
};
use oarlock_controller::account::{Account, DEFAULT_HOST_ACCOUNT};
use tracing_subscriber::{EnvFilter, filter::ParseError};

pub(crate) use self::caches::CacheArgs;
pub(crate) use self::control::{
    AnswerFormat, AnswerOutput, HostChoice, LinesChoice, ListFormat, ListOutput, LogFormat, LogsArgs,
    ParkedArgs, ParkedChoice, PluginsArgs, RedeliverArgs, RollbackArgs, SortBy, SuspendArgs, TopArgs,
};
pub(crate) use self::host::{ClusterArgs, DevArgs, ElectionArgs, HostArgs, LeaseName, RunArgs};
pub(crate) use self::install::{Image, InstallArgs, NamespaceName};
pub(crate) use self::kubectl::{ClusterChoice, KubectlArgs, KubectlCommand, RemoteChoice, SuspendChoice};
pub(crate) use self::plugin::{BuildArgs, CheckArgs, DoctorArgs, DoctorFormat, NewArgs, TestArgs};
pub(crate) use self::plugin_objects::PluginObjectArgs;
pub(crate) use self::record::RecordArgs;
pub(crate) use self::registry::{PushArgs, RegistryArgs};
pub(crate) use self::traces::TraceArgs;
pub(crate) use self::unknown_command::with_tip;
pub(crate) use self::variables::without_empty_variables;

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
        value_parser = log_filter,
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

/// Checks a filter of the log, and returns its text: the parsed one cannot be cloned.
fn log_filter(text: &str) -> Result<String, ParseError> {
    EnvFilter::try_new(text).map(|_| text.to_owned())
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
    /// Makes the host try parked objects or keys again, now, or deliver all objects again.
    Redeliver(RedeliverArgs),
    /// Stops the calls of a plugin. Its notifications wait.
    Suspend(SuspendArgs),
    /// Calls a suspended plugin again.
    Resume(SuspendArgs),
    /// Goes back to the newest version that passed its probation, else to the one before.
    ///
    /// It takes the first of these that exists, without versions in quarantine: the newest version that
    /// passed its probation since the host was started, the version that served before, the last good version
    /// on disk. The version that it leaves is in quarantine then: the host does not try it again until its
    /// component or its settings change, or --release is given.
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
pub(crate) struct RbacArgs {
    /// Plugin files, folders of one plugin each, or folders of plugins. With --service-account: components.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugins: Vec<PathBuf>,

    /// For a Plugin object: prints the rights that its component needs, for the account of the object.
    /// The rights of the host are those of its installation.
    #[arg(
        long,
        requires = "plugins",
        conflicts_with_all = ["namespace", "host_account", "leader_elect"],
        value_name = "NAMESPACE/NAME"
    )]
    pub(crate) service_account: Option<Account>,

    /// Prints the RoleBinding with which this namespace lets the host act as its ServiceAccounts, for Plugins
    /// in the namespace.
    #[arg(long, conflicts_with_all = ["plugins", "leader_elect"], value_name = "NAME")]
    pub(crate) namespace: Option<NamespaceName>,

    /// With --namespace: lets the host act as them on objects of the namespace only. Needs Kubernetes 1.36.
    #[arg(long, requires = "namespace", conflicts_with_all = ["plugins", "leader_elect"])]
    pub(crate) constrained: bool,

    /// The ServiceAccount that the host runs as.
    #[arg(long, default_value = DEFAULT_HOST_ACCOUNT, value_name = "NAMESPACE/NAME")]
    pub(crate) host_account: Account,

    /// Also prints the rights that the host needs with --leader-elect.
    #[arg(long)]
    pub(crate) leader_elect: bool,

    /// The name of the Lease.
    #[arg(long, requires = "leader_elect", default_value = "oarlock", value_name = "NAME")]
    pub(crate) leader_elect_resource_name: LeaseName,

    /// The namespace of the Lease. Otherwise that of the host's account.
    #[arg(long, requires = "leader_elect", value_name = "NAMESPACE")]
    pub(crate) leader_elect_resource_namespace: Option<NamespaceName>,
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
  oarlock plugin replay mirror.record mirror.wasm --call 12
  oarlock plugin replay swapped.record new.wasm --of 1f0c2a9b53de";

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

    /// Replays only the calls of one version, if the record has several. DIGEST is the beginning of the
    /// digest of its component.
    #[arg(long, value_parser = digest_beginning, value_name = "DIGEST")]
    pub(crate) of: Option<String>,

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

/// Parses the beginning of a digest, also as registries write it.
fn digest_beginning(text: &str) -> Result<String, &'static str> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    if digits.is_empty() || digits.len() > 64 || !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
        return Err("not the beginning of a SHA-256 digest, which has 64 hexadecimal digits");
    }
    Ok(digits.to_ascii_lowercase())
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

// === impl Args ===

impl Args {
    /// Parses the command line, and the variables that are not empty.
    pub(crate) fn of_process(arguments: Vec<OsString>) -> Result<Self, Error> {
        let matches = without_empty_variables(Self::command()).try_get_matches_from(arguments)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut Self::command()))
    }
}

#[cfg(test)]
mod tests;
