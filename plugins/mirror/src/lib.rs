//! Keeps ConfigMaps and Secrets as copies in other namespaces.
//!
//! mirror copies an object with the annotation `oarlock.dev/mirror-to: "team-a,team-b"` (or `*`) into those
//! namespaces, as long as the object and its annotation exist. Every change of a source, a copy or a
//! namespace leads to the same comparison, with data from the cache: the copies that a source should have,
//! and the copies that it has ([`reconcile`]). So the plugin keeps no state, and reaches the correct state
//! after any number of missed events.
//!
//! [`source`]: the copies that a source asks for → [`copy`]: the content of a copy → [`reconcile`]: the
//! writes.

#![deny(unsafe_code)]

mod copy;
mod kind;
mod reconcile;
mod source;
#[cfg(test)]
mod tests;

use std::time::Duration;

use oarlock_sdk::{
    Added, Deleted, Description, Failure, Handler, Lister, Outcome, Plugin, Reconciler, Request,
    Subscription, Synced, Test, Updated, WorkKey, event, key, work_key, work_queue,
};

use kind::Kind;
use source::SourceKey;

/// Reads the Namespaces from the cache.
const NAMESPACES: Lister = Lister::new(NAMESPACES_NAME, "", "v1", "namespaces");

/// The subscription to Namespaces, and the lister of that name.
const NAMESPACES_NAME: &str = "namespaces";

/// The interval in seconds at which a source is reconciled without an event: an object that prevented a copy
/// may be gone.
const RESYNC_SECONDS: u32 = 300;

/// The delay after which all sources are reconciled for Namespaces that are delivered as initial adds, of
/// which many follow each other.
const ALL_SOURCES_AFTER: Duration = Duration::from_secs(1);

struct Mirror {
    exclusions: source::Exclusions,
}

// === impl Mirror ===

impl Plugin for Mirror {
    fn describe() -> Result<Description, String> {
        source::Exclusions::from_config()?;
        let mut description = Description::new("mirror", env!("CARGO_PKG_VERSION")).stateless();
        for kind in Kind::ALL {
            let resource = || kind.lister().gvr();
            description = description
                .subscribe(
                    Subscription::new(kind.sources(), resource())
                        .condition(source::MIRROR_TO_POINTER, Test::Exists)
                        .resync_seconds(RESYNC_SECONDS),
                )
                .subscribe(
                    Subscription::new(kind.copies(), resource())
                        .condition(copy::MIRRORED_FROM_POINTER, Test::Exists),
                )
                .read(kind.lister())
                .index(kind.sources_index())
                .index(kind.copies_index())
                .request(Request::new(resource(), &["get", "create", "patch", "delete"]));
        }
        Ok(description.subscribe(Subscription::new(NAMESPACES_NAME, NAMESPACES.gvr())).read(NAMESPACES))
    }

    fn start() -> Result<Self, Failure> {
        Ok(Self { exclusions: source::Exclusions::from_config()? })
    }
}

/// Each method logs the notification last, so that a notification that fails and is delivered again is logged
/// once.
impl Handler for Mirror {
    fn on_add(&mut self, added: &Added) -> Result<(), Failure> {
        match added.subscription.as_str() {
            // The account may see Namespaces only now, after it was notified of the sources.
            NAMESPACES_NAME if added.is_in_initial_list => {
                work_queue::add_after(&all_sources(), ALL_SOURCES_AFTER)?;
            }
            NAMESPACES_NAME => self.reconcile_all_sources()?,
            subscription => self.changed(subscription, &added.object, event::Version::New)?,
        }
        added.log(&[]);
        Ok(())
    }

    fn on_update(&mut self, updated: &Updated) -> Result<(), Failure> {
        if updated.subscription != NAMESPACES_NAME {
            // A copy whose annotation a user changed belongs to another source now: both sources are
            // reconciled.
            self.changed(&updated.subscription, &updated.object, event::Version::Old)?;
            self.changed(&updated.subscription, &updated.object, event::Version::New)?;
        }
        updated.log(&[]);
        Ok(())
    }

    fn on_delete(&mut self, deleted: &Deleted) -> Result<(), Failure> {
        if deleted.subscription != NAMESPACES_NAME {
            self.changed(&deleted.subscription, &deleted.object, event::Version::Old)?;
        }
        deleted.log(&[]);
        Ok(())
    }

    fn on_synced(&mut self, synced: &Synced) -> Result<(), Failure> {
        if synced.remaining == 0 {
            self.delete_orphans()?;
        }
        synced.log(&[]);
        Ok(())
    }
}

/// Its only key stands for all sources.
impl Reconciler for Mirror {
    fn reconcile(&mut self, _: &WorkKey) -> Result<Outcome, Failure> {
        self.reconcile_all_sources()?;
        Ok(Outcome::Done)
    }
}

impl Mirror {
    /// Reconciles the source of a notification: the object itself, or the source that a copy names.
    fn changed(
        &self,
        subscription: &str,
        object: &oarlock_sdk::ObjectRef,
        which: event::Version,
    ) -> Result<(), Failure> {
        for kind in Kind::ALL {
            if subscription == kind.sources() {
                let source = SourceKey { namespace: object.namespace.clone(), name: object.name.clone() };
                return reconcile::reconcile(kind, &source, &self.exclusions);
            }
            if subscription == kind.copies() {
                return match copy::source_in_event(which)? {
                    Some(source) => reconcile::reconcile(kind, &source, &self.exclusions),
                    None => Ok(()),
                };
            }
        }
        Ok(())
    }

    /// Reconciles all sources, for Namespaces that mirror did not know.
    fn reconcile_all_sources(&self) -> Result<(), Failure> {
        for kind in Kind::ALL {
            for source in source::all(kind)? {
                reconcile::reconcile(kind, &source, &self.exclusions)?;
            }
        }
        Ok(())
    }

    /// Deletes the copies of sources that were deleted while the plugin did not run.
    fn delete_orphans(&self) -> Result<(), Failure> {
        for kind in Kind::ALL {
            for source in copy::all_sources(kind)? {
                reconcile::reconcile(kind, &source, &self.exclusions)?;
            }
        }
        Ok(())
    }
}

/// Returns the key of the work queue that stands for all sources.
fn all_sources() -> WorkKey {
    work_key("all-sources", key("", ""))
}

oarlock_sdk::export_plugin!(Mirror);
