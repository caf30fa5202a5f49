//! The arguments of the commands that ask a running host.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};

/// Which host to ask. Without a flag and the variable, the one host that runs on this machine.
#[derive(Debug, Clone, Default, ClapArgs)]
pub(crate) struct HostChoice {
    /// The control socket of the host. Otherwise that of OARLOCK_SOCKET, or that of the one host of this user
    /// on this machine.
    #[arg(long, value_name = "PATH", conflicts_with = "admin")]
    pub(crate) socket: Option<PathBuf>,

    // An argument of its own: for clap, a variable of `socket` would conflict with `admin` as the flag does.
    /// The control socket of the host, if neither --socket nor --admin is given.
    #[arg(long, env = "OARLOCK_SOCKET", hide = true)]
    pub(crate) socket_variable: Option<PathBuf>,

    /// The admin address of the host, for commands that only read.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
}

/// How a list is printed.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct ListOutput {
    /// The format. Otherwise a table.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<ListFormat>,

    /// Leaves out the line with the names of the columns.
    #[arg(long)]
    pub(crate) no_headers: bool,

    /// Prints what changes, until Ctrl-C.
    #[arg(short, long)]
    pub(crate) watch: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// The answer as JSON.
    Json,
    /// The answer as YAML.
    Yaml,
    /// A table with more columns.
    Wide,
    /// Names only, one per line, as other commands take them.
    Name,
}

/// How the answer to a command is printed.
#[derive(Debug, Clone, Copy, Default, ClapArgs)]
pub(crate) struct AnswerOutput {
    /// The format of the answer. Otherwise a line for people.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<AnswerFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnswerFormat {
    /// The answer as JSON.
    Json,
    /// The answer as YAML.
    Yaml,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PluginsArgs {
    /// The plugin to describe in detail. Otherwise all are listed.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: Option<String>,

    #[command(flatten)]
    pub(crate) list: ListOutput,

    #[command(flatten)]
    pub(crate) host: HostChoice,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TopArgs {
    /// Only this plugin.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: Option<String>,

    /// The column by which the plugins are sorted, the largest first.
    #[arg(long, value_enum, default_value_t = SortBy::Cpu, value_name = "COLUMN")]
    pub(crate) sort_by: SortBy,

    /// Prints one table and ends, also in a terminal.
    #[arg(long)]
    pub(crate) once: bool,

    /// Prints a sample every second, until Ctrl-C: a JSON object in a line, a document of YAML, or rows.
    /// In a terminal a table is drawn again, also without this flag.
    #[arg(short, long, conflicts_with = "once")]
    pub(crate) watch: bool,

    /// The format. Otherwise a table.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<ListFormat>,

    /// Leaves out the line with the names of the columns.
    #[arg(long)]
    pub(crate) no_headers: bool,

    #[command(flatten)]
    pub(crate) host: HostChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortBy {
    /// CPU time per second.
    Cpu,
    /// Calls per second.
    Calls,
    /// The duration that 99 of 100 calls do not exceed.
    P99,
    /// Memory of the instances, and what the host keeps for the plugin.
    Memory,
    /// Notifications and keys that wait.
    Backlog,
    /// Failed calls.
    Errors,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ParkedArgs {
    /// Only what this plugin could not handle.
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: Option<String>,

    #[command(flatten)]
    pub(crate) list: ListOutput,

    #[command(flatten)]
    pub(crate) host: HostChoice,
}

#[derive(Debug, ClapArgs)]
#[command(override_usage = "oarlock redeliver PLUGIN SUBSCRIPTION NAMESPACE/NAME\n       \
                            oarlock redeliver PLUGIN --key KIND [NAMESPACE/NAME]\n       \
                            oarlock redeliver PLUGIN --all\n       \
                            oarlock redeliver PLUGIN [SUBSCRIPTION] --existing")]
pub(crate) struct RedeliverArgs {
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,

    #[command(flatten)]
    pub(crate) parked: ParkedChoice,

    #[command(flatten)]
    pub(crate) output: AnswerOutput,

    #[command(flatten)]
    pub(crate) host: HostChoice,
}

/// What is tried or delivered again.
#[derive(Debug, ClapArgs)]
pub(crate) struct ParkedChoice {
    /// The subscription of the object, or of all objects with --existing.
    #[arg(value_name = "SUBSCRIPTION", conflicts_with_all = ["key", "all"])]
    pub(crate) subscription: Option<String>,

    /// The object; NAME alone if it has no namespace.
    #[arg(value_name = "NAMESPACE/NAME")]
    pub(crate) object: Option<String>,

    /// A key of the work queue; KIND alone if it has no object.
    #[arg(long, num_args = 1..=2, value_names = ["KIND", "NAMESPACE/NAME"], conflicts_with = "all")]
    pub(crate) key: Option<Vec<String>>,

    /// Everything that is parked.
    #[arg(long)]
    pub(crate) all: bool,

    /// Every object that exists, parked or not, of the subscription or of all: each arrives as an add, as if
    /// the declaration of the subscription had changed. A plugin with state gets a fresh instance.
    #[arg(long, conflicts_with_all = ["object", "key", "all"])]
    pub(crate) existing: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LogsArgs {
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,

    #[command(flatten)]
    pub(crate) lines: LinesChoice,

    #[command(flatten)]
    pub(crate) host: HostChoice,
}

/// Which lines of a log, and how they are printed.
#[derive(Debug, ClapArgs)]
pub(crate) struct LinesChoice {
    /// Goes on with new lines, until Ctrl-C.
    #[arg(short, long)]
    pub(crate) follow: bool,

    /// Begins with the last N lines. Otherwise, and with -1, with all that the host keeps (64 KiB per
    /// plugin).
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = clap::value_parser!(i64).range(-1..)
    )]
    pub(crate) tail: Option<i64>,

    /// Only lines that are newer than this, such as 10m or 1d12h.
    #[arg(long, value_parser = super::duration::parse, value_name = "DURATION")]
    pub(crate) since: Option<Duration>,

    /// The format. Otherwise lines for people.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    pub(crate) output: Option<LogFormat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One JSON object per line.
    Json,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SuspendArgs {
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,

    #[command(flatten)]
    pub(crate) output: AnswerOutput,

    #[command(flatten)]
    pub(crate) host: HostChoice,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RollbackArgs {
    #[arg(value_name = "PLUGIN")]
    pub(crate) plugin: String,

    /// Does not roll back. Releases the versions in quarantine, so that the host tries them again.
    #[arg(long)]
    pub(crate) release: bool,

    #[command(flatten)]
    pub(crate) output: AnswerOutput,

    #[command(flatten)]
    pub(crate) host: HostChoice,
}
