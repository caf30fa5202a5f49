//! How far the versions of a resource have come.

use crate::resource_version::{NotComparable, ResourceVersion, Version};

/// The greatest version that everything is known up to.
///
/// A watch's events and bookmarks only raise it: a bookmark of a lower version, or of none, is from a server that is behind, and takes
/// nothing back. A whole list is what there is, and may be at a lower version: then the server's data was restored from a backup, and
/// versions up to the greatest one before, which the server is about to give out again, are ambiguous until they are passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watermark {
    /// The last version that was said, whether or not it can be compared; none before the first.
    last: Option<Version>,
    /// The greatest since the last list; none where that has a version that cannot be compared.
    highest: Option<ResourceVersion>,
    /// The greatest before a list that went back behind it.
    lost: Option<ResourceVersion>,
    /// How often a list went back.
    n_times_back: u64,
}

/// Why a version will never be known to be reached, or nobody can tell whether it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// The versions of this resource cannot be compared.
    NotComparable(NotComparable),
    /// The version may be one of before the versions went back to this one.
    WentBack(String),
}

// === impl Watermark ===

impl Watermark {
    /// Everything is as a whole list of this version says.
    pub(super) fn listed(&mut self, version: Version) {
        let listed = version.comparable();
        if listed < self.highest {
            self.lost = self.lost.max(self.highest);
            self.n_times_back += 1;
        }
        self.highest = listed;
        self.last = Some(version);
        self.find();
    }

    /// A watch has come to this version.
    pub(super) fn advanced(&mut self, version: Version) {
        if version.is_empty() {
            return;
        }
        self.highest = self.highest.max(version.comparable());
        self.last = Some(version);
        self.find();
    }

    /// What was lost is passed again.
    fn find(&mut self) {
        self.lost = self.lost.filter(|lost| Some(*lost) > self.highest);
    }

    /// Returns the last version that was said.
    pub(super) fn last(&self) -> Option<&Version> {
        self.last.as_ref()
    }

    /// Returns whether everything up to a version is known; none if it has yet to come.
    pub(crate) fn answer(&self, wanted: &ResourceVersion) -> Option<Result<(), Unknown>> {
        if self.highest.as_ref() >= Some(wanted) {
            return Some(Ok(()));
        }
        if let Some(last) = self.last.as_ref().filter(|last| last.comparable().is_none()) {
            return Some(Err(Unknown::NotComparable(NotComparable(last.text().to_owned()))));
        }
        (self.lost.as_ref() >= Some(wanted)).then(|| Err(self.went_back()))
    }

    /// Returns why a wait for a version has ended that began at another watermark; none if it has to go on.
    pub(crate) fn answer_since(&self, begun: &Self, wanted: &ResourceVersion) -> Option<Result<(), Unknown>> {
        let went_back = || (self.n_times_back > begun.n_times_back).then(|| Err(self.went_back()));
        self.answer(wanted).or_else(went_back)
    }

    fn went_back(&self) -> Unknown {
        Unknown::WentBack(self.highest.map(|highest| highest.to_string()).unwrap_or_default())
    }
}
