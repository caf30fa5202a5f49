//! Who is told when a list or watch fails.

use std::fmt;
use std::sync::Arc;

use super::Error;
use crate::user_function::{self, UserFunction};

/// Is told of every round of list and watch that failed, before the wait that follows, in place of the log (RL-10).
///
/// The error's sources say why: an [`ApiError`](crate::ApiError) is among them when the API server had a say. A watch that ends for whatever
/// reason, once it has begun, is no failure.
#[derive(Clone)]
pub struct WatchErrorHandler(Arc<dyn Fn(&Error) + Send + Sync>);

// === impl WatchErrorHandler ===

impl WatchErrorHandler {
    /// Makes a handler of a function. It is called on the reflector's task and must be quick.
    pub fn new(function: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    pub(super) fn call(&self, error: &Error) {
        // It has been counted and logged.
        let _ = user_function::call(UserFunction::WatchErrorHandler, error, || (self.0)(error));
    }
}

impl fmt::Debug for WatchErrorHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatchErrorHandler")
    }
}
