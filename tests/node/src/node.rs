//! A running node.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use oarlock_guest_build::toolchain::command;

use crate::cgroups::Cgroups;
use crate::component::{self, Component, Place, Process};
use crate::credentials::{self, Authority};
use crate::folder::Folder;
use crate::forward::{self, Forward};
use crate::namespaces::{Namespaces, output};
use crate::{Programs, wait_until};

/// The name of the node.
pub(crate) const NAME: &str = "node";
/// The address of the Service of the API server.
pub(crate) const SERVICE_IP: &str = "10.0.0.1";
/// The addresses of Services.
pub(crate) const SERVICE_CIDR: &str = "10.0.0.0/24";
/// The address of the node, which Pods reach.
pub const NODE_IP: &str = "10.9.0.1";
/// The addresses of Pods.
pub(crate) const POD_CIDR: &str = "10.1.0.0/24";

/// The address of the node's registry, with which references of images in it begin.
pub const REGISTRY: &str = "127.0.0.1:5000";

/// The file of the administrator's kubeconfig, in the folder of configuration.
const KUBECONFIG: &str = "kubeconfig";

/// A Kubernetes cluster of one node. Dropping it ends it and removes what it has written.
#[derive(Debug)]
pub struct Node {
    // The order of the fields is the order in which they are dropped.
    _forward: Forward,
    namespaces: Option<Namespaces>,
    processes: BTreeMap<Component, Process>,
    _cgroups: Cgroups,
    programs: Programs,
    folder: Folder,
}

// === impl Node ===

impl Node {
    /// Starts a node, and returns when it is ready for Pods. Calls `report` with each step.
    ///
    /// # Errors
    ///
    /// When a component ends or is not ready in time; the end of its log is in the error.
    pub fn start(programs: Programs, mut report: impl FnMut(&str)) -> Result<Self> {
        let folder = Folder::create()?;
        let cgroups = Cgroups::create(folder.name())?;
        let namespaces = Namespaces::create(&programs.init(), component::open(&folder.log("init"))?)?;
        let state = folder.state("");
        let mut setup = namespaces.enter(Path::new("sh"));
        setup.args(["-c", include_str!("setup.sh"), "setup.sh"]).arg(&state).args([SERVICE_IP, NODE_IP]);
        output(&mut setup).context("the namespaces of the node cannot be set up")?;

        let forward = Forward::start(namespaces.network()?, SocketAddr::from((Ipv4Addr::LOCALHOST, 443)))?;
        let authority = Authority::write(&folder)?;
        let inside = format!("https://{SERVICE_IP}:443");
        let outside = format!("https://127.0.0.1:{}", forward.port());
        let node = format!("system:node:{NAME}");
        for (file, server, user) in [
            (KUBECONFIG, &outside, ("admin", &["system:masters"][..])),
            ("controller-manager.kubeconfig", &inside, ("system:kube-controller-manager", &[])),
            ("scheduler.kubeconfig", &inside, ("system:kube-scheduler", &[])),
            ("kubelet.kubeconfig", &inside, (&node, &["system:nodes"])),
        ] {
            authority.kubeconfig(&folder, file, server, user)?;
        }
        component::write_config(&folder, &programs, &cgroups)?;

        let mut node = Self {
            _forward: forward,
            namespaces: Some(namespaces),
            processes: BTreeMap::new(),
            _cgroups: cgroups,
            programs,
            folder,
        };
        for component in Component::ALL {
            report(component.name());
            node.start_component(component)?;
            if component == Component::Registry {
                node.push_pause()?;
            }
        }
        report("waiting until the node is ready");
        node.wait("the node to be ready", |node| {
            let ready = r#"jsonpath={.status.conditions[?(@.type=="Ready")]}"#;
            let seen = node.kubectl(["get", "node", NAME, "-o", ready])?;
            if seen.contains(r#""status":"True""#) { Ok(()) } else { Err(anyhow!("{seen}")) }
        })?;
        node.wait("the ServiceAccount of the namespace default", |node| {
            node.kubectl(["get", "serviceaccount", "default", "-o", "name"]).map(drop)
        })?;
        Ok(node)
    }

    /// Returns the administrator's kubeconfig, which works in all namespaces of this machine.
    #[must_use]
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.config(KUBECONFIG)
    }

    /// Returns the executables of the node.
    #[must_use]
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Returns the folder of the node: configuration and logs.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the log of a component.
    #[must_use]
    pub fn log(&self, component: Component) -> PathBuf {
        self.folder.log(component.name())
    }

    /// Returns the API server's audit log: one JSON object for each write.
    #[must_use]
    pub fn audit_log(&self) -> PathBuf {
        self.folder.log("audit")
    }

    /// Returns a command that runs a program in the node's namespaces, with the node's executables in PATH.
    #[must_use]
    pub fn enter(&self, program: impl AsRef<Path>) -> Command {
        match &self.namespaces {
            Some(namespaces) => {
                let mut command = namespaces.enter(program.as_ref());
                command.env("PATH", self.programs.path());
                command
            }
            // Only while the node is dropped.
            None => Command::new("false"),
        }
    }

    /// Runs a program in the node's namespaces, and returns its standard output.
    ///
    /// # Errors
    ///
    /// When it fails, with its standard error.
    pub fn run<A: AsRef<std::ffi::OsStr>>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<String> {
        output(self.enter(program).args(arguments))
    }

    /// Runs kubectl as the administrator, and returns its standard output.
    ///
    /// # Errors
    ///
    /// When it fails, with its standard error.
    pub fn kubectl<A: AsRef<std::ffi::OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<String> {
        output(self.kubectl_command().args(arguments))
    }

    /// Returns kubectl, outside of the node's namespaces, as the administrator.
    #[must_use]
    pub fn kubectl_command(&self) -> Command {
        let mut kubectl = Command::new(self.programs.kubectl());
        kubectl.env("KUBECONFIG", self.kubeconfig()).env("KUBECACHEDIR", self.folder.config("kubectl-cache"));
        kubectl
    }

    /// Pushes an image from a folder in the OCI image layout, or from a tar file of `docker save`, to the
    /// node's registry. Returns its reference there.
    ///
    /// # Errors
    ///
    /// When it is no image, or the registry refuses it.
    pub fn push_image(&self, image: &Path, name: &str) -> Result<String> {
        let reference = format!("{REGISTRY}/{name}");
        self.run("crane", [Path::new("push"), image, Path::new(&reference)])?;
        Ok(reference)
    }

    /// Copies an image of the node's registry, with a label `NAME=VALUE` more: another image with the same
    /// content. Returns its reference.
    ///
    /// # Errors
    ///
    /// When there is no such image for this machine's processor.
    pub fn label_image(&self, reference: &str, name: &str, label: &str) -> Result<String> {
        let copy = format!("{REGISTRY}/{name}");
        self.run("crane", ["mutate", "--platform", PLATFORM, "--label", label, "--tag", &copy, reference])?;
        Ok(copy)
    }

    /// Copies an image of the node's registry, with the content of a folder more. Returns its reference.
    ///
    /// # Errors
    ///
    /// When there is no such image for this machine's processor.
    pub fn add_to_image(&self, reference: &str, name: &str, content: &Path) -> Result<String> {
        self.append(&["--platform", PLATFORM, "--base", reference], name, content)
    }

    /// Makes an image of the content of a folder, and pushes it to the node's registry.
    fn push_folder(&self, content: &Path, name: &str, entrypoint: &str, user: &str) -> Result<String> {
        let reference = self.append(&["--oci-empty-base"], name, content)?;
        self.run(
            "crane",
            ["mutate", "--set-platform", PLATFORM, "--entrypoint", entrypoint, "--user", user, &reference],
        )?;
        Ok(reference)
    }

    /// Pushes an image with a layer that has the content of a folder.
    fn append(&self, base: &[&str], name: &str, content: &Path) -> Result<String> {
        let reference = format!("{REGISTRY}/{name}");
        let layer = self.folder.config("layer.tar");
        let mut tar = Command::new("tar");
        tar.args(["--owner=0", "--group=0", "--sort=name", "--mtime=@0", "-C"])
            .arg(content)
            .arg("-cf")
            .arg(&layer);
        command::run(tar.arg("."))?;
        let file = layer.display().to_string();
        self.run("crane", ["append"].iter().chain(base).chain(&["-f", file.as_str(), "-t", &reference]))?;
        std::fs::remove_file(&layer)?;
        Ok(reference)
    }

    /// Replaces the key that signs the tokens of ServiceAccounts: no token from before is valid any more. The
    /// API server and the controller manager read the key when they start.
    ///
    /// # Errors
    ///
    /// When the key cannot be written.
    pub fn replace_account_key(&self) -> Result<()> {
        credentials::write_account_key(&self.folder)
    }

    /// Starts a thread in the node's network namespace: there it can listen, and connect to the node's
    /// registry.
    ///
    /// # Errors
    ///
    /// When the node has ended, or the namespace cannot be entered.
    pub fn spawn_in_network(&self, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let namespaces = self.namespaces.as_ref().context("the node has ended")?;
        forward::spawn_in(namespaces.network()?, run)
    }

    /// Kills a component with SIGKILL, and returns when its process has ended.
    ///
    /// # Errors
    ///
    /// When it does not run.
    pub fn kill(&mut self, component: Component) -> Result<()> {
        let process = self.processes.remove(&component);
        process.with_context(|| format!("{} does not run", component.name()))?.kill()
    }

    /// Starts a component, and returns when it is ready, as far as it can say that.
    ///
    /// # Errors
    ///
    /// When it ends or is not ready in time; the end of its log is in the error.
    pub fn start_component(&mut self, component: Component) -> Result<()> {
        let namespaces = self.namespaces.as_ref().context("the node has ended")?;
        let place = Place { folder: &self.folder, programs: &self.programs, namespaces };
        self.processes.insert(component, Process::start(component, &place)?);
        let what = format!("{} to be ready", component.name());
        let socket = self.folder.state("run/containerd.sock").display().to_string();
        match component {
            Component::Registry => {
                self.wait(&what, |node| node.run("crane", ["catalog", REGISTRY]).map(drop))
            }
            Component::Containerd => {
                self.wait(&what, |node| node.run("ctr", ["--address", &socket, "version"]).map(drop))
            }
            Component::ApiServer => {
                self.wait(&what, |node| node.kubectl(["get", "--raw", "/readyz"]).map(drop))
            }
            // The API server is ready only with etcd; the others need the API server.
            _ => Ok(()),
        }
    }

    /// Runs `ctr` for the containers of Pods, and returns its standard output.
    ///
    /// # Errors
    ///
    /// When it fails, with its standard error.
    pub fn ctr<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Result<String> {
        let socket = self.folder.state("run/containerd.sock").display().to_string();
        let arguments: Vec<&str> = arguments.into_iter().collect();
        self.run("ctr", ["--address", &socket, "--namespace", "k8s.io"].iter().chain(&arguments))
    }

    /// Probes until the probe returns `Ok`, and returns its value.
    ///
    /// # Errors
    ///
    /// When a component ends meanwhile, or after [`crate::LIMIT`] with what the probe returned last.
    pub fn wait<T>(&mut self, what: &str, mut probe: impl FnMut(&Self) -> Result<T>) -> Result<T> {
        wait_until(what, || {
            for process in self.processes.values_mut() {
                if let Err(error) = process.check() {
                    return Ok(Err(error));
                }
            }
            probe(self).map(Ok)
        })?
        .with_context(|| format!("while the node waited for {what}"))
    }

    fn push_pause(&self) -> Result<()> {
        let content = self.folder.config("pause");
        std::fs::create_dir(&content).context("cannot create the content of the image of Pods")?;
        std::fs::copy(self.programs.pause(), content.join("pause"))?;
        self.push_folder(&content, "pause:1", "/pause", "65535:65535").map(drop)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Ends all processes; the cgroups are empty, and nothing writes to the folder, after this.
        drop(self.namespaces.take());
        for process in std::mem::take(&mut self.processes).into_values() {
            process.wait();
        }
    }
}

/// The platform of the images that are made here.
const PLATFORM: &str = if cfg!(target_arch = "aarch64") { "linux/arm64" } else { "linux/amd64" };
