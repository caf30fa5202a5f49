//! The two forms of an Event: the server stores the core/v1 form and converts it to and from
//! events.k8s.io/v1.

use crate::resource::View;
use serde_json::{Map, Value};

pub(crate) const VIEW: View = View { to_served, to_stored };

/// Each field of core/v1 with its name in events.k8s.io/v1.
const NAMES: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Returns the core/v1 name of a field path of events.k8s.io/v1.
pub(crate) fn stored_field(path: &str) -> String {
    for (stored, served) in NAMES {
        if let Some(rest) = path.strip_prefix(served)
            && (rest.is_empty() || rest.starts_with('.'))
        {
            return format!("{stored}{rest}");
        }
    }
    path.to_owned()
}

fn to_served(event: &mut Value) {
    rename(event, |name| NAMES.iter().find(|(stored, _)| *stored == name).map(|(_, served)| *served));
}

fn to_stored(event: &mut Value) {
    rename(event, |name| NAMES.iter().find(|(_, served)| *served == name).map(|(stored, _)| *stored));
}

fn rename(event: &mut Value, new_name: impl Fn(&str) -> Option<&'static str>) {
    if let Value::Object(fields) = event {
        let old: Map<String, Value> = std::mem::take(fields);
        *fields = old
            .into_iter()
            .map(|(name, value)| (new_name(&name).map_or(name.clone(), str::to_owned), value))
            .collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_survives_the_conversion_to_the_other_group_and_back() {
        let stored = json!({"involvedObject": {"name": "a"}, "message": "hello", "count": 2});
        let mut event = stored.clone();
        to_served(&mut event);
        assert_eq!(event, json!({"regarding": {"name": "a"}, "note": "hello", "deprecatedCount": 2}));
        to_stored(&mut event);
        assert_eq!(event, stored);
        assert_eq!(stored_field("regarding.name"), "involvedObject.name");
        assert_eq!(stored_field("reason"), "reason");
    }
}
