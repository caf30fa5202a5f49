//! Events as lines of text, for logs.

use std::fmt;

use k8s_openapi::api::core::v1::Event;
use tokio_util::sync::CancellationToken;

use crate::broadcaster::Watch;

/// An Event as one line of text.
pub struct Plain<'a>(pub &'a Event);

/// An Event as one line of names and values.
pub struct Structured<'a>(pub &'a Event);

/// Calls a function with each Event of a watch, until the watch ends or the token is cancelled. The function
/// must not block.
pub async fn follow<E>(mut watch: Watch<E>, token: CancellationToken, mut each: impl FnMut(&E)) {
    while let Some(Some(event)) = token.run_until_cancelled(watch.next()).await {
        each(&event);
    }
}

fn text(field: &Option<String>) -> &str {
    field.as_deref().unwrap_or_default()
}

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { involved_object: about, type_, reason, message, .. } = self.0;
        write!(
            f,
            "Event(v1.ObjectReference{{Kind:{:?}, Namespace:{:?}, Name:{:?}, UID:{:?}, APIVersion:{:?}, ResourceVersion:{:?}, FieldPath:{:?}}}): ",
            text(&about.kind),
            text(&about.namespace),
            text(&about.name),
            text(&about.uid),
            text(&about.api_version),
            text(&about.resource_version),
            text(&about.field_path)
        )?;
        write!(f, "type: '{}' reason: '{}' {}", text(type_), text(reason), text(message))
    }
}

impl fmt::Display for Structured<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { involved_object: about, type_, reason, message, .. } = self.0;
        let (namespace, name) = (text(&about.namespace), text(&about.name));
        let object = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
        write!(f, "\"Event occurred\" object={object:?} fieldPath={:?}", text(&about.field_path))?;
        write!(f, " kind={:?} apiVersion={:?}", text(&about.kind), text(&about.api_version))?;
        write!(f, " type={:?} reason={:?} message={:?}", text(type_), text(reason), text(message))
    }
}
