//! client-go's spam filter: 25 Events about one object at once, then one in five minutes.

use std::{collections::HashMap, time::Duration};

use oarlock_plugin::contract::ObjectRef;

use crate::kube_access::rate::{Bucket, Rate};

/// The rate for each object.
const RATE: Rate = Rate { per_second: 1.0 / 300.0, burst: 25.0 };

/// How many objects are kept count of. Beyond it, all counts start anew.
const OBJECTS: usize = 4_096;

/// One bucket for each object.
#[derive(Default)]
pub(super) struct SpamFilter {
    buckets: HashMap<String, Bucket>,
}

// === impl SpamFilter ===

impl SpamFilter {
    pub(super) fn passes(&mut self, regarding: &ObjectRef) -> bool {
        let ObjectRef { namespace, name, uid, .. } = regarding;
        let object = format!("{namespace}/{name}/{uid}");
        if self.buckets.len() >= OBJECTS && !self.buckets.contains_key(&object) {
            self.buckets.clear();
        }
        self.buckets.entry(object).or_insert_with(|| Bucket::full(RATE)).take(Duration::ZERO).is_ok()
    }
}
