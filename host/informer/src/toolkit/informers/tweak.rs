//! Changing what is asked of the API server, request by request.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use oarlock_label_selector::LabelSelector;

use crate::list_watch::{ApiError, ItemHook, ListOptions, ListPage, ListWatch, WatchOptions, WatchStream};
use crate::user_function::{self, UserFunction};

/// Changes the options of every list and every watch, after the reflector has filled them in: a selector mostly.
///
/// ```
/// # use oarlock_informer::toolkit::informers::Tweak;
/// # fn example() -> Result<(), oarlock_label_selector::ParseError> {
/// let selector: oarlock_label_selector::LabelSelector = "app=web".parse()?;
/// let tweak = Tweak::new(move |mut options| *options.label_selector() = selector.clone());
/// # let _ = tweak;
/// # Ok(())
/// # }
/// ```
///
/// It may change everything, also what the reflector relies on. Whoever changes versions or limits should know why.
#[derive(Clone)]
pub struct Tweak(Arc<dyn Fn(RequestOptions<'_>) + Send + Sync>);

/// The options of one request.
#[derive(Debug)]
pub enum RequestOptions<'o> {
    /// Of a list.
    List(&'o mut ListOptions),
    /// Of a watch.
    Watch(&'o mut WatchOptions),
}

struct Tweaked {
    list_watch: Arc<dyn ListWatch>,
    tweak: Tweak,
}

// === impl Tweak ===

impl Tweak {
    /// Makes a tweak of a function, which is called once for each request.
    pub fn new(function: impl Fn(RequestOptions<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    /// Returns a source whose requests are changed on their way to this one.
    #[must_use]
    pub fn apply_to(self, list_watch: Arc<dyn ListWatch>) -> Arc<dyn ListWatch> {
        Arc::new(Tweaked { list_watch, tweak: self })
    }

    /// Changes the options of one request. A request whose options could not be changed must not be made.
    fn apply(&self, options: RequestOptions<'_>) -> Result<(), ApiError> {
        let what = match &options {
            RequestOptions::List(_) => "list",
            RequestOptions::Watch(_) => "watch",
        };
        user_function::call(UserFunction::Tweak, &what, || (self.0)(options))
            .map_err(|panic| ApiError::Transport(panic.into()))
    }
}

impl fmt::Debug for Tweak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tweak")
    }
}

// === impl RequestOptions ===

impl RequestOptions<'_> {
    /// Returns which labels the objects are to have.
    pub fn label_selector(&mut self) -> &mut LabelSelector {
        match self {
            Self::List(options) => &mut options.label_selector,
            Self::Watch(options) => &mut options.label_selector,
        }
    }

    /// Returns which fields the objects are to have, in the API's syntax.
    pub fn field_selector(&mut self) -> &mut String {
        match self {
            Self::List(options) => &mut options.field_selector,
            Self::Watch(options) => &mut options.field_selector,
        }
    }

    /// Returns the version to list at or to watch from.
    pub fn resource_version(&mut self) -> &mut String {
        match self {
            Self::List(options) => &mut options.resource_version,
            Self::Watch(options) => &mut options.resource_version,
        }
    }
}

// === impl Tweaked ===

#[async_trait]
impl ListWatch for Tweaked {
    async fn list(&self, mut options: ListOptions, keep: ItemHook<'_>) -> Result<ListPage, ApiError> {
        self.tweak.apply(RequestOptions::List(&mut options))?;
        self.list_watch.list(options, keep).await
    }

    async fn watch(&self, mut options: WatchOptions) -> Result<WatchStream, ApiError> {
        self.tweak.apply(RequestOptions::Watch(&mut options))?;
        self.list_watch.watch(options).await
    }

    fn supports_watch_list(&self) -> bool {
        self.list_watch.supports_watch_list()
    }
}
