//! The commands that run a host: `run` and `dev`.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use clap::Args as ClapArgs;
use oarlock_controller::report::Level;
use oarlock_dev_cluster::faults::Fault;

use super::install::is_label;
use super::{CacheArgs, NamespaceName, Output, PluginObjectArgs, RecordArgs, TraceArgs, duration};

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
    #[arg(
        long,
        requires = "leader_elect",
        value_parser = duration::parse,
        default_value = "15s",
        value_name = "DURATION"
    )]
    pub(crate) leader_elect_lease_duration: Duration,

    /// The time for which the leader tries to renew the Lease before it ends.
    #[arg(
        long,
        requires = "leader_elect",
        value_parser = duration::parse,
        default_value = "10s",
        value_name = "DURATION"
    )]
    pub(crate) leader_elect_renew_deadline: Duration,

    /// The interval between two tries.
    #[arg(
        long,
        requires = "leader_elect",
        value_parser = duration::parse,
        default_value = "2s",
        value_name = "DURATION"
    )]
    pub(crate) leader_elect_retry_period: Duration,

    /// The name of the Lease.
    #[arg(long, requires = "leader_elect", default_value = "oarlock", value_name = "NAME")]
    pub(crate) leader_elect_resource_name: LeaseName,

    /// The namespace of the Lease. Otherwise that of the Pod, or of the kubeconfig's context.
    #[arg(long, requires = "leader_elect", value_name = "NAMESPACE")]
    pub(crate) leader_elect_resource_namespace: Option<NamespaceName>,
}

/// The name of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LeaseName(pub(crate) String);

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
    /// The address that serves /livez, /readyz, /metrics and /plugins. On a loopback address without
    /// --admin-cert-file: plain HTTP, for every user of the machine. Otherwise HTTPS, and all but /livez and
    /// /readyz need a bearer token of a user whom Kubernetes allows `get` on the path.
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

// === impl LeaseName ===

impl FromStr for LeaseName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        if text.split('.').all(is_label) && text.len() <= 253 {
            Ok(Self(text.to_owned()))
        } else {
            Err(
                "the name of a Lease is a DNS subdomain: at most 253 lowercase letters, digits and, within it, `-` \
                 and `.`",
            )
        }
    }
}

/// Parses an IP address with a port.
fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "write an IP address and a port, such as 127.0.0.1:8080 or [::]:8443")
}
