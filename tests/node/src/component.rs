//! The components of a node: how each is called, and its process.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Child;

use anyhow::{Context, Result, bail};

use crate::folder::Folder;
use crate::namespaces::{self, Namespaces};
use crate::node::{NODE_IP, POD_CIDR, REGISTRY, SERVICE_CIDR};
use crate::{Programs, cgroups::Cgroups};

/// How many lines of a log an error repeats.
const TAIL_LINES: usize = 15;

/// A component of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// etcd.
    Etcd,
    /// A registry of images on the node's loopback.
    Registry,
    /// containerd.
    Containerd,
    /// kube-apiserver.
    ApiServer,
    /// kube-controller-manager.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// The kubelet.
    Kubelet,
}

/// A running component.
#[derive(Debug)]
pub(crate) struct Process {
    component: Component,
    child: Child,
    log: PathBuf,
}

/// What the components read and write.
pub(crate) struct Place<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) programs: &'a Programs,
    pub(crate) namespaces: &'a Namespaces,
}

// === impl Component ===

impl Component {
    /// All components, in the order in which they start.
    pub const ALL: [Self; 7] = [
        Self::Etcd,
        Self::Registry,
        Self::Containerd,
        Self::ApiServer,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Kubelet,
    ];

    /// Returns the name of the component, which is also that of its log.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Registry => "registry",
            Self::Containerd => "containerd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kubelet => "kubelet",
        }
    }

    fn program(self) -> &'static str {
        if self == Self::Registry { "crane" } else { self.name() }
    }

    fn arguments(self, folder: &Folder) -> Vec<OsString> {
        let state = |name: &str| folder.state(name).display().to_string();
        let config = |name: &str| folder.config(name).display().to_string();
        let arguments: Vec<String> = match self {
            Self::Etcd => vec![
                format!("--data-dir={}", state("etcd")),
                "--listen-client-urls=http://127.0.0.1:2379".to_owned(),
                "--advertise-client-urls=http://127.0.0.1:2379".to_owned(),
                "--listen-peer-urls=http://127.0.0.1:2380".to_owned(),
                "--unsafe-no-fsync".to_owned(),
                "--log-level=warn".to_owned(),
            ],
            Self::Registry => ["registry", "serve", "--address", REGISTRY, "--disk"]
                .map(str::to_owned)
                .into_iter()
                .chain([state("registry")])
                .collect(),
            Self::Containerd => vec!["--config".to_owned(), config("containerd.toml")],
            Self::ApiServer => vec![
                "--etcd-servers=http://127.0.0.1:2379".to_owned(),
                "--bind-address=0.0.0.0".to_owned(),
                "--secure-port=443".to_owned(),
                format!("--advertise-address={NODE_IP}"),
                format!("--service-cluster-ip-range={SERVICE_CIDR}"),
                format!("--tls-cert-file={}", config("server.crt")),
                format!("--tls-private-key-file={}", config("server.key")),
                format!("--client-ca-file={}", config("ca.crt")),
                "--authorization-mode=Node,RBAC".to_owned(),
                "--enable-admission-plugins=NodeRestriction".to_owned(),
                "--allow-privileged=true".to_owned(),
                "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
                format!("--service-account-key-file={}", config("service-account.pub")),
                format!("--service-account-signing-key-file={}", config("service-account.key")),
                format!("--kubelet-client-certificate={}", config("kubelet-client.crt")),
                format!("--kubelet-client-key={}", config("kubelet-client.key")),
                "--kubelet-preferred-address-types=InternalIP".to_owned(),
                format!("--cert-dir={}", state("run/kube-apiserver")),
                format!("--audit-policy-file={}", config("audit.yaml")),
                format!("--audit-log-path={}", folder.log("audit").display()),
                // In megabytes: tests read it from a position on, so it must stay one file.
                "--audit-log-maxsize=10000".to_owned(),
            ],
            Self::ControllerManager => vec![
                format!("--kubeconfig={}", config("controller-manager.kubeconfig")),
                "--leader-elect=false".to_owned(),
                "--use-service-account-credentials".to_owned(),
                format!("--service-account-private-key-file={}", config("service-account.key")),
                format!("--root-ca-file={}", config("ca.crt")),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--cert-dir={}", state("run/kube-controller-manager")),
                format!("--flex-volume-plugin-dir={}", state("flex-volumes")),
            ],
            Self::Scheduler => vec![
                format!("--kubeconfig={}", config("scheduler.kubeconfig")),
                "--leader-elect=false".to_owned(),
                "--bind-address=127.0.0.1".to_owned(),
                format!("--cert-dir={}", state("run/kube-scheduler")),
            ],
            Self::Kubelet => vec![
                format!("--config={}", config("kubelet.yaml")),
                format!("--kubeconfig={}", config("kubelet.kubeconfig")),
                format!("--root-dir={}", state("kubelet")),
                format!("--cert-dir={}", state("run/kubelet")),
                format!("--hostname-override={}", crate::node::NAME),
                format!("--node-ip={NODE_IP}"),
            ],
        };
        arguments.into_iter().map(OsString::from).collect()
    }
}

// === impl Process ===

impl Process {
    /// Starts a component. Its output is appended to its log.
    pub(crate) fn start(component: Component, place: &Place<'_>) -> Result<Self> {
        let Place { folder, programs, namespaces } = place;
        let log = folder.log(component.name());
        let output = open(&log)?;
        let mut command = namespaces.enter(Path::new(component.program()));
        command.args(component.arguments(folder));
        command.env_clear().env("PATH", programs.path()).env("HOME", folder.state("run"));
        let libraries = programs.libraries()?;
        if component == Component::Containerd && !libraries.is_empty() {
            command.env("LD_LIBRARY_PATH", libraries);
        }
        command.stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().with_context(|| format!("cannot start {}", component.name()))?;
        Ok(Self { component, child, log })
    }

    /// Fails if the component has ended by itself.
    pub(crate) fn check(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!(
                "{} ended ({status}); the end of {}:\n{}",
                self.component.name(),
                self.log.display(),
                tail(&self.log)
            );
        }
        Ok(())
    }

    /// Kills the component with SIGKILL, and waits until it has ended.
    pub(crate) fn kill(mut self) -> Result<()> {
        namespaces::kill(&mut self.child).with_context(|| format!("cannot kill {}", self.component.name()))
    }

    /// Waits for the end of a component whose namespaces have ended.
    pub(crate) fn wait(mut self) {
        let _ = self.child.wait();
    }
}

/// Opens a log to append to it.
pub(crate) fn open(log: &Path) -> Result<File> {
    let file = OpenOptions::new().create(true).append(true).open(log);
    file.with_context(|| format!("cannot write {}", log.display()))
}

/// Returns the last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let text = fs::read(log)
        .map_or_else(|error| error.to_string(), |log| String::from_utf8_lossy(&log).into_owned());
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// Writes the configuration files of all components.
pub(crate) fn write_config(folder: &Folder, programs: &Programs, cgroups: &Cgroups) -> Result<()> {
    let state = |name: &str| folder.state(name).display().to_string();
    let shown = |path: PathBuf| path.display().to_string();
    folder.write("resolv.conf", "")?;
    // Each write is in the audit log, with its user.
    folder.write(
        "audit.yaml",
        "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
         - {level: None, verbs: [get, list, watch]}\n- {level: Metadata}\n",
    )?;
    folder.write(
        "containerd.toml",
        &include_str!("containerd.toml")
            .replace("@STATE@", &state(""))
            .replace("@CNI@", &shown(programs.cni()))
            .replace("@CONFIG@", &shown(folder.config("cni")))
            .replace("@RUNC@", &shown(programs.runc()))
            .replace("@PAUSE@", &format!("{REGISTRY}/pause:1")),
    )?;
    folder.write(
        "kubelet.yaml",
        &include_str!("kubelet.yaml")
            .replace("@STATE@", &state(""))
            .replace("@CONFIG@", &shown(folder.config("")))
            .replace("@CGROUPS@", &cgroups.path()),
    )?;
    fs::create_dir(folder.config("cni")).context("cannot create the folder of the CNI's configuration")?;
    folder.write(
        "cni/10-node.conflist",
        &serde_json::json!({
            "cniVersion": "1.0.0",
            "name": "node",
            "plugins": [{
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": state("cni"),
                    "ranges": [[{"subnet": POD_CIDR}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            }],
        })
        .to_string(),
    )?;
    Ok(())
}
