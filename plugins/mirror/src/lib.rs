//! Keeps ConfigMaps and Secrets as copies in other namespaces.
//!
//! An object annotated `oarlock.dev/mirror-to: "team-a,team-b"` (or `*`) is copied into those namespaces, for as long as it exists and
//! says so. Whatever happens to a source, a copy or a namespace ends in the same question, asked of the cache: which
//! copies should this source have, and which has it? ([`reconcile`]). So the plugin keeps no state, may miss any number of
//! events and still ends where it should.
//!
//! [`source`] what is asked for → [`copy`] what a copy looks like and whom it belongs to → [`reconcile`] the difference,
//! written.

#![deny(unsafe_code)]

mod copy;
mod kind;
mod reconcile;
mod source;

use oarlock_sdk::{
    Added, Deleted, Description, Failure, Handler, Notified, Plugin, Subscription, Synced, Test, Updated,
    escape_pointer, event, gvr, pointer_index,
};

use kind::Kind;
use source::SourceKey;

/// The subscription to namespaces, and the lister of that name.
const NAMESPACES: &str = "namespaces";

/// How often, in seconds, a source is looked at without an event: an object that stood in a copy's way may be gone.
const LOOK_AGAIN: u32 = 300;

struct Mirror {
    exclusions: source::Exclusions,
}

// === impl Mirror ===

impl Plugin for Mirror {
    fn describe() -> Result<Description, String> {
        source::Exclusions::from_config().map_err(|error| format!("excludedNamespaces: {error:?}"))?;
        let mut description = Description::new("mirror", env!("CARGO_PKG_VERSION")).stateless();
        for kind in Kind::ALL {
            let resource = || gvr("", "v1", kind.plural());
            let annotated = |annotation| format!("/metadata/annotations/{}", escape_pointer(annotation));
            description = description
                .subscribe(
                    Subscription::new(kind.sources(), resource())
                        .condition(&annotated(source::MIRROR_TO), Test::Exists)
                        .resync_seconds(LOOK_AGAIN),
                )
                .subscribe(
                    Subscription::new(kind.copies(), resource())
                        .condition(&annotated(copy::MIRRORED_FROM), Test::Exists),
                )
                .read(kind.plural(), resource())
                .index(pointer_index(kind.sources(), kind.plural(), &annotated(source::MIRROR_TO)))
                .index(pointer_index(kind.copies(), kind.plural(), &annotated(copy::MIRRORED_FROM)))
                .write(resource(), &["get", "create", "patch", "delete"]);
        }
        Ok(description
            .subscribe(Subscription::new(NAMESPACES, gvr("", "v1", "namespaces")))
            .read(NAMESPACES, gvr("", "v1", "namespaces")))
    }

    fn start() -> Result<Self, Failure> {
        Ok(Self { exclusions: source::Exclusions::from_config()? })
    }
}

/// What was handled is logged last: a notification that fails is delivered again, and counts once.
impl Handler for Mirror {
    fn on_add(&mut self, added: &Added) -> Result<(), Failure> {
        match added.subscription.as_str() {
            // In the first list every source is about to be added anyway.
            NAMESPACES if added.is_in_initial_list => {}
            NAMESPACES => self.namespace_appeared()?,
            subscription => self.changed(subscription, &added.object, event::Version::New)?,
        }
        added.log(&[]);
        Ok(())
    }

    fn on_update(&mut self, updated: &Updated) -> Result<(), Failure> {
        if updated.subscription != NAMESPACES {
            // A copy whose annotation was changed by hand belongs to another source now: both look again.
            self.changed(&updated.subscription, &updated.old, event::Version::Old)?;
            self.changed(&updated.subscription, &updated.object, event::Version::New)?;
        }
        updated.log(&[]);
        Ok(())
    }

    fn on_delete(&mut self, deleted: &Deleted) -> Result<(), Failure> {
        if deleted.subscription != NAMESPACES {
            self.changed(&deleted.subscription, &deleted.object, event::Version::Old)?;
        }
        deleted.log(&[]);
        Ok(())
    }

    fn on_synced(&mut self, synced: &Synced) -> Result<(), Failure> {
        if synced.remaining == 0 {
            self.sweep()?;
        }
        synced.log(&[]);
        Ok(())
    }
}

impl Mirror {
    /// Looks again at the source behind a notification: the object itself, or the one that a copy names.
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

    /// Serves a new namespace: every source that could mean it looks again.
    fn namespace_appeared(&self) -> Result<(), Failure> {
        for kind in Kind::ALL {
            for source in source::all(kind)? {
                reconcile::reconcile(kind, &source, &self.exclusions)?;
            }
        }
        Ok(())
    }

    /// Deletes the copies of sources that vanished while nobody ran: their deletes were never told.
    fn sweep(&self) -> Result<(), Failure> {
        for kind in Kind::ALL {
            for source in copy::all_sources(kind)? {
                reconcile::reconcile(kind, &source, &self.exclusions)?;
            }
        }
        Ok(())
    }
}

oarlock_sdk::export_handler!(Mirror);
