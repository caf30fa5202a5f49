//! The watermark of a queue: how far its consumer has processed what the reflector queued.

use crate::object::ShortText;
use crate::reflector::SourceGeneration;
use crate::resource_version::{NotComparable, ResourceVersion, Version};

/// How far the consumer of a queue has processed what the reflector queued: the first list, the source, the
/// version.
///
/// Events and bookmarks of a watch only raise the version: a bookmark of a lower version, or of none, comes
/// from a server that is behind, and takes nothing back. A list is the whole state, and may have a lower
/// version: then the server's data was restored from a backup. The versions up to the highest one before the
/// restore will be assigned a second time, so they are ambiguous until the server has passed them again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watermark {
    /// The first list was processed, or a change came before any list.
    has_synced: bool,
    /// The generation of the source whose list was processed last.
    source_generation: SourceGeneration,
    /// The last version, whether or not it can be compared; none before the first.
    last: Option<Version>,
    /// The highest version since the last list; none while no version since then can be compared.
    highest: Option<ResourceVersion>,
    /// The highest version before a list with a lower one, until it is passed again.
    highest_before_restore: Option<ResourceVersion>,
    /// How many lists had a lower version than what came before them.
    n_times_back: u64,
}

/// Why a queue cannot tell whether a version was processed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ambiguous {
    /// The versions of this resource cannot be compared.
    NotComparable(NotComparable),
    /// The server's versions went back to this one, and the version may be one of those before.
    WentBack(String),
}

// === impl Watermark ===

impl Watermark {
    /// Returns whether the first list was processed. A queue whose first change came before any list counts
    /// as synced. Once true, it stays true.
    #[must_use]
    pub fn has_synced(&self) -> bool {
        self.has_synced
    }

    /// Returns the generation of the source whose list was processed last; 0 for the first source, and before
    /// any list.
    #[must_use]
    pub fn source_generation(&self) -> SourceGeneration {
        self.source_generation
    }

    /// Returns the last resourceVersion up to which everything was processed; none before the first.
    #[must_use]
    pub fn resource_version(&self) -> Option<ShortText<'_>> {
        self.last.as_ref().map(Version::text)
    }

    /// Returns whether everything up to a version was processed; none while it was not and may still be.
    pub(crate) fn has_reached(&self, wanted: &ResourceVersion) -> Option<Result<(), Ambiguous>> {
        if self.highest.as_ref() >= Some(wanted) {
            return Some(Ok(()));
        }
        if let Some(last) = self.last.as_ref().filter(|last| last.comparable().is_none()) {
            return Some(Err(Ambiguous::NotComparable(NotComparable(last.text().to_owned()))));
        }
        (self.highest_before_restore.as_ref() >= Some(wanted)).then(|| Err(self.went_back()))
    }

    /// Does as [`Watermark::has_reached`] for a wait that began at the watermark `begun`. The wait also ends
    /// when the versions went back since.
    pub(crate) fn has_reached_since(
        &self,
        begun: &Self,
        wanted: &ResourceVersion,
    ) -> Option<Result<(), Ambiguous>> {
        let went_back = || (self.n_times_back > begun.n_times_back).then(|| Err(self.went_back()));
        self.has_reached(wanted).or_else(went_back)
    }

    pub(super) fn sync(&mut self) {
        self.has_synced = true;
    }

    /// Moves to a list of this version, from this source.
    pub(super) fn list(&mut self, version: Version, source_generation: SourceGeneration) {
        let listed = version.comparable();
        if listed < self.highest {
            self.highest_before_restore = self.highest_before_restore.max(self.highest);
            self.n_times_back += 1;
        }
        self.highest = listed;
        self.last = Some(version);
        self.source_generation = source_generation;
        self.drop_passed_restore();
    }

    /// Moves to a version that a watch has reached.
    pub(super) fn advance(&mut self, version: Version) {
        if version.is_empty() {
            return;
        }
        self.highest = self.highest.max(version.comparable());
        self.last = Some(version);
        self.drop_passed_restore();
    }

    fn drop_passed_restore(&mut self) {
        self.highest_before_restore =
            self.highest_before_restore.filter(|before| Some(*before) > self.highest);
    }

    fn went_back(&self) -> Ambiguous {
        Ambiguous::WentBack(self.highest.map(|highest| highest.to_string()).unwrap_or_default())
    }
}
