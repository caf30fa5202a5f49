//! `cargo xtask node`: a Kubernetes cluster of one real node, until Ctrl-C.

use anyhow::{Context, Result};
use oarlock_node::{Component, Node, Programs, REGISTRY};
use tokio::signal::unix::{SignalKind, signal};

use crate::progress;
use crate::tool::Tool;

/// Runs a Kubernetes cluster of one real node on this machine, until Ctrl-C. Needs root.
#[derive(clap::Args)]
pub(crate) struct Args {}

// === impl Args ===

impl Args {
    pub(crate) fn run(self) -> Result<()> {
        let Self {} = self;
        let programs = oarlock_node::prepare(|| Tool::Crane.build())?;
        run(programs, false, |_| Ok(()))
    }
}

/// Starts a node, runs a scene on it, and keeps it until Ctrl-C unless it is to end after the scene.
pub(crate) fn run(
    programs: Programs,
    once: bool,
    scene: impl FnOnce(&mut Node) -> Result<()> + Send + 'static,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Before the node starts: a signal during the start ends the node in order, once it has started.
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let started = tokio::task::spawn_blocking(|| {
            let mut node = progress::step("starting the node", || {
                Node::start(programs, |step| progress::say(format!("  {step}")))
            })?;
            scene(&mut node).map(|()| node)
        });
        let node = started.await.context("the work on the node panicked")??;
        if !once {
            progress::say(what_to_try(&node));
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        }
        progress::step("ending the node", || {
            drop(node);
            Ok(())
        })
    })
}

fn what_to_try(node: &Node) -> String {
    let (kubeconfig, folder) = (node.kubeconfig(), node.folder());
    let kubectl = node.programs().kubectl();
    let logs = Component::ALL.map(Component::name).join(", ");
    format!(
        "The node is ready. Try:\n  \
           export KUBECONFIG={}\n  \
           alias kubectl={}\n  \
           kubectl get nodes\n  \
           kubectl get pods --all-namespaces\n\
         Images are pulled from {REGISTRY} inside of the node.\n\
         Logs: {}/logs/NAME.log, NAME being one of {logs}, audit.\n\
         Ctrl-C ends the node and removes everything.",
        kubeconfig.display(),
        kubectl.display(),
        folder.display(),
    )
}
