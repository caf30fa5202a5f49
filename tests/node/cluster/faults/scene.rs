//! What must be on the cluster before a fault can be injected, and is removed after it.

use anyhow::Result;

use crate::cluster::Cluster;

use super::{clock, crash_loops, definition, edits, registry};

/// What is on the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Scene {
    /// The host and the plugin mirror, as they were installed.
    #[default]
    Installed,
    /// Nine Plugins beside the plugin mirror.
    Edits,
    /// A plugin of a custom resource.
    Generators,
    /// What ten Plugins that crash need.
    CrashLoops,
    /// The host has a clock of its own.
    OwnClock,
    /// The Plugin mirror is in a registry that can fail, and the host's cache on a small disk.
    Registry,
}

/// The scene, and what it needs to know.
#[derive(Default)]
pub(super) struct Stage {
    scene: Scene,
    pub(super) registry: Option<registry::Broken>,
    /// How many edits of Plugins the API server accepted per second in this round.
    pub(super) edits_per_second: Option<f64>,
    /// How many versions of components, or sets of objects, were made: each is another one.
    n_made: usize,
}

// === impl Stage ===

impl Stage {
    /// Removes what the scene has, and adds what the next one needs.
    pub(super) async fn change(&mut self, cluster: &mut Cluster, to: Scene) -> Result<()> {
        if self.scene == to {
            return Ok(());
        }
        cluster.until_ready().await?;
        match self.scene {
            Scene::Installed => {}
            Scene::Edits => edits::remove(cluster)?,
            Scene::Generators => definition::remove(cluster)?,
            Scene::CrashLoops => crash_loops::remove(cluster)?,
            Scene::OwnClock => cluster.undo_deployment().await?,
            Scene::Registry => {
                registry::remove(cluster).await?;
                self.registry = None;
            }
        }
        self.scene = to;
        match to {
            Scene::Installed => Ok(()),
            Scene::Edits => edits::install(cluster),
            Scene::Generators => definition::install(cluster),
            Scene::CrashLoops => crash_loops::install(cluster),
            Scene::OwnClock => clock::install(cluster).await,
            Scene::Registry => {
                let broken = registry::install(cluster, self.next()).await?;
                self.registry = Some(broken);
                Ok(())
            }
        }
    }

    /// Returns a number that was not returned before.
    pub(super) fn next(&mut self) -> usize {
        self.n_made += 1;
        self.n_made
    }
}
