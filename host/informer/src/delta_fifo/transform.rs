//! The transformer: a user's function that changes each object before it is queued.

use std::sync::Arc;

use crate::object::{EditError, Object};
use crate::user_function::{self, UserFunction};

/// Changes each object before it is queued, for example by pruning it. The object keeps its uid and
/// resourceVersion, whatever the transformer does to its text.
///
/// [`Object::with`], [`Object::without`] and [`Object::pruned`] change single fields:
///
/// ```
/// # use std::sync::Arc;
/// # use oarlock_informer::delta_fifo::{TransformError, Transformer};
/// # use oarlock_informer::Object;
/// # use oarlock_json::JsonPointer;
/// let env = JsonPointer::from(["spec", "containers", "0", "env"]);
/// let transformer: Transformer = Arc::new(move |pod: Object| Ok(pod.without(&env)?));
/// # drop(transformer);
/// ```
///
/// A transformer should not change namespace and name: the cache stores the object under the name that the
/// transformer returns, but a delete has the name that the API server knows, and finds no object (as in
/// client-go).
pub type Transformer = Arc<dyn Fn(Object) -> Result<Object, TransformError> + Send + Sync>;

/// The transformer failed or panicked, so the object was not queued.
#[derive(Debug, thiserror::Error)]
#[error("transforming: {0}")]
pub struct TransformError(pub Box<dyn std::error::Error + Send + Sync>);

/// Transforms an object; returns it unchanged if no transformer is set.
pub(crate) fn transform(transformer: Option<&Transformer>, object: Object) -> Result<Object, TransformError> {
    let Some(transformer) = transformer else { return Ok(object) };
    let transformed =
        user_function::call(UserFunction::Transformer, object.key(), || transformer(object.clone()));
    Ok(transformed.map_err(|panic| TransformError(panic.into()))??.identified_as(&object))
}

// === impl TransformError ===

impl From<EditError> for TransformError {
    fn from(error: EditError) -> Self {
        Self(error.into())
    }
}
