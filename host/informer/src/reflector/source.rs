//! Where a reflector lists and watches, which may change while it runs.

use std::fmt;
use std::sync::Arc;

use tokio::sync::watch;

use crate::list_watch::ListWatch;
use crate::names::TypeMeta;

/// Where a reflector lists and watches.
#[derive(Clone)]
pub struct Source {
    /// What answers. None: nothing for now; the reflector asks nobody and its store stays as it is.
    pub list_watch: Option<Arc<dyn ListWatch>>,
    /// What the watch's objects must be; an event with anything else is dropped (RL-05). None: anything is taken.
    pub type_meta: Option<TypeMeta>,
}

/// The source in force, of which there is always one. Clones share it.
///
/// A reflector takes another source up at once: it gives up the request, the watch or the wait that it is in, and begins with a list
/// that is not older than what it last saw. So its store goes over from the one to the other without a gap: what is different in
/// the list is new, changed or gone, and what is the same in it is the same.
#[derive(Clone)]
pub struct Sources {
    sender: Arc<watch::Sender<Numbered>>,
}

/// A source, and the how-many-th it is.
#[derive(Clone)]
pub(super) struct Numbered {
    pub(super) number: u64,
    pub(super) source: Source,
}

// === impl Source ===

impl Source {
    /// Returns the one that has nothing to say.
    #[must_use]
    pub fn none() -> Self {
        Self { list_watch: None, type_meta: None }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { list_watch, type_meta } = self;
        f.debug_struct("Source")
            .field("is_some", &list_watch.is_some())
            .field("type_meta", type_meta)
            .finish()
    }
}

// === impl Sources ===

impl Sources {
    /// Begins with a source, whose number is 0.
    #[must_use]
    pub fn new(source: Source) -> Self {
        Self { sender: Arc::new(watch::channel(Numbered { number: 0, source }).0) }
    }

    /// Goes over to another source and returns its number, by which the store hears of it
    /// ([`ReflectorStore::source_changed`](super::ReflectorStore::source_changed)).
    pub fn switch(&self, source: Source) -> u64 {
        let mut number = 0;
        self.sender.send_modify(|current| {
            number = current.number + 1;
            *current = Numbered { number, source };
        });
        number
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Numbered> {
        self.sender.subscribe()
    }
}
