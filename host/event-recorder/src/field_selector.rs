//! Which Events are about an object, as a field selector.

/// Only two versions of the API have Events.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0:?} is no version of the API that has Events; v1 and events.k8s.io/v1 are")]
pub struct UnknownVersion(pub String);

/// Returns the selector of the Events about an object. What is empty is not asked for (EV-09).
pub fn field_selector(
    api_version: &str,
    kind: &str,
    name: &str,
    namespace: &str,
    uid: &str,
) -> Result<String, UnknownVersion> {
    let prefix = match api_version {
        "v1" => "involvedObject",
        "events.k8s.io/v1" => "regarding",
        other => return Err(UnknownVersion(other.to_owned())),
    };
    let fields = [("kind", kind), ("name", name), ("namespace", namespace), ("uid", uid)];
    let fields = fields.iter().filter(|(_, value)| !value.is_empty());
    Ok(fields.map(|(field, value)| format!("{prefix}.{field}={value}")).collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_object_as_the_version_does_ev_09() {
        assert_eq!(
            field_selector("v1", "Pod", "web", "team-a", "u-1").unwrap(),
            "involvedObject.kind=Pod,involvedObject.name=web,involvedObject.namespace=team-a,involvedObject.uid=u-1"
        );
        assert_eq!(field_selector("events.k8s.io/v1", "", "web", "", "").unwrap(), "regarding.name=web");
        assert_eq!(field_selector("v1", "", "", "", "").unwrap(), "");
        assert!(field_selector("events.k8s.io/v1beta1", "Pod", "", "", "").is_err());
    }
}
