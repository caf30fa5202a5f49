//! Changes the options of requests.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use oarlock_label_selector::LabelSelector;

use crate::list_watch::{ApiError, ItemHook, ListOptions, ListPage, ListWatch, WatchOptions, WatchStream};
use crate::user_function::{self, UserFunction};

/// Changes the options of every list and watch request after the reflector has set them, for example to add a
/// selector (client-go: `TweakListOptionsFunc`).
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
/// It may change every option. Versions and limits belong to the reflector: change them only with a good
/// reason.
#[derive(Clone)]
pub struct Tweak(Arc<dyn Fn(RequestOptions<'_>) + Send + Sync>);

/// The options of one request.
#[derive(Debug)]
pub enum RequestOptions<'o> {
    /// The options of a list.
    List(&'o mut ListOptions),
    /// The options of a watch.
    Watch(&'o mut WatchOptions),
}

struct Tweaked {
    list_watch: Arc<dyn ListWatch>,
    tweak: Tweak,
}

// === impl Tweak ===

impl Tweak {
    /// Returns a tweak that calls a function once for each request.
    pub fn new(function: impl Fn(RequestOptions<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    /// Returns a list-watch that changes the options of each request and passes it to this one.
    #[must_use]
    pub fn apply_to(self, list_watch: Arc<dyn ListWatch>) -> Arc<dyn ListWatch> {
        Arc::new(Tweaked { list_watch, tweak: self })
    }

    /// Changes the options of one request. After an error the request must not be sent.
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
    /// Returns the label selector.
    pub fn label_selector(&mut self) -> &mut LabelSelector {
        match self {
            Self::List(options) => &mut options.label_selector,
            Self::Watch(options) => &mut options.label_selector,
        }
    }

    /// Returns the field selector, in the syntax of the API.
    pub fn field_selector(&mut self) -> &mut String {
        match self {
            Self::List(options) => &mut options.field_selector,
            Self::Watch(options) => &mut options.field_selector,
        }
    }

    /// Returns the resourceVersion of the request.
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
