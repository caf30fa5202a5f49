//! The object of a notification, as the guest sees it.

use oarlock_json::JsonPointer;

use oarlock_informer::{Object, object::Content};
use oarlock_plugin::contract;
use oarlock_plugin::kube_access::EventObject;

use crate::fields;
use crate::plan;

/// The object of a notification, as the guest reads it during the call: as much of it as the subscription
/// declares, however much other users make the cache hold.
#[derive(Clone)]
pub(crate) struct EventView {
    pub(super) object: Object,
    pub(super) content: Content,
}

// === impl EventView ===

impl EventView {
    fn covers(&self, pointer: &str) -> bool {
        match self.content {
            Content::Full => true,
            Content::Metadata => plan::covers(contract::Content::Metadata, pointer),
        }
    }
}

impl EventObject for EventView {
    fn field(&self, pointer: &str) -> Result<Option<String>, contract::Error> {
        let parsed = parse(pointer)?;
        Ok(if self.covers(pointer) { self.object.pointer(&parsed) } else { None })
    }

    fn fields(&self, pointers: &[String]) -> Result<Vec<Option<String>>, contract::Error> {
        let parsed = pointers.iter().map(|it| parse(it)).collect::<Result<Vec<_>, _>>()?;
        let mut found = fields::at(&self.object, &parsed)?;
        for (value, pointer) in found.iter_mut().zip(pointers) {
            if !self.covers(pointer) {
                *value = None;
            }
        }
        Ok(found)
    }

    fn json(&self) -> Result<String, contract::Error> {
        Ok(match self.content {
            Content::Full => self.object.json().to_string(),
            Content::Metadata => self.object.metadata_json(),
        })
    }

    fn name(&self) -> Option<String> {
        Some(self.object.key().to_string())
    }
}

fn parse(pointer: &str) -> Result<JsonPointer, contract::Error> {
    pointer.parse().map_err(|error: oarlock_json::PointerError| contract::Error::Invalid(error.to_string()))
}
