//! The field selector of the Events about an object.

/// The API version has no Events.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0:?} has no Events; use v1 or events.k8s.io/v1")]
pub struct UnknownVersion(pub String);

/// Returns the field selector of the Events about an object. It leaves out empty fields (EV-09).
///
/// # Errors
///
/// When the API version has no Events.
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
    fn the_selector_has_the_field_names_of_the_version_ev_09() {
        assert_eq!(
            field_selector("v1", "Pod", "web", "team-a", "u-1").unwrap(),
            "involvedObject.kind=Pod,involvedObject.name=web,involvedObject.namespace=team-a,involvedObject.uid=u-1"
        );
        assert_eq!(field_selector("events.k8s.io/v1", "", "web", "", "").unwrap(), "regarding.name=web");
        assert_eq!(field_selector("v1", "", "", "", "").unwrap(), "");
        assert!(field_selector("events.k8s.io/v1beta1", "Pod", "", "", "").is_err());
    }
}
