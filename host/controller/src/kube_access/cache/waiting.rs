//! The function `wait-until-seen`: waits until the cache has a version that this plugin wrote or read.

use std::time::Duration;

use oarlock_label_selector::LabelSelector;

use oarlock_informer::{SharedInformer, indexer, object::Namespaces as Wanted, shared_informer::WaitError};
use oarlock_plugin::contract::{Error, Namespaces};

use super::{Cache, synced};
use crate::kube_access::slices::{OBJECT, Slices};

/// The number of objects that are read under one lock of the cache.
const STEP: usize = 256;

// === impl Cache ===

impl Cache {
    /// Waits for a version that the API server returned to this plugin. For any other version it searches
    /// only the objects that the plugin may read, so that the plugin learns nothing about changes of others.
    pub(in crate::kube_access) async fn wait_until_seen(
        &self,
        lister: &str,
        resource_version: &str,
        timeout: Duration,
    ) -> Result<(), Error> {
        let reader = self.reader(lister)?;
        let wanted = self.narrow(lister, reader, &Namespaces::All).await?;
        let informer = synced(lister, reader)?;
        if !self.own_versions.contains(&reader.target, resource_version) {
            return match resource_version.parse() {
                Ok(version) if has_seen(&informer, wanted, version).await => Ok(()),
                _ => Err(Error::Invalid(format!(
                    "resourceVersion {resource_version:?} of {lister}: it is none that a write or client.get of this plugin \
                     was answered with, and no object that the plugin may read has it or a later one"
                ))),
            };
        }
        match tokio::time::timeout(timeout, informer.wait_until_seen(resource_version)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(WaitError::NotComparable(error))) => Err(Error::Invalid(error.to_string())),
            Ok(Err(error @ (WaitError::Stopped | WaitError::WentBack { .. }))) => {
                Err(Error::Gone(format!("{lister}: {error}")))
            }
            Err(_) => Err(Error::Timeout(format!(
                "{lister} has not yet reached resourceVersion {resource_version}"
            ))),
        }
    }
}

/// Returns whether an object in these namespaces has this version or a later one.
async fn has_seen(informer: &SharedInformer, namespaces: Wanted, version: u64) -> bool {
    let mut slices = Slices::begin();
    let selector = LabelSelector::everything();
    let mut request = indexer::PageRequest { after: None, limit: STEP, namespaces, selector };
    loop {
        let indexer::Page { objects, next } = informer.indexer().list_step(&request, STEP);
        let is_at = |text: &str| text.parse::<u64>().is_ok_and(|at| at >= version);
        if objects.iter().any(|object| is_at(&object.resource_version())) {
            return true;
        }
        if next.is_none() {
            return false;
        }
        request.after = next;
        slices.worked(STEP * OBJECT).await;
    }
}
