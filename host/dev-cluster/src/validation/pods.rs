//! Validates Pods and Pod templates.

use super::{at, duplicate, fields, list, names, not_supported, text};
use crate::status::Cause;
use serde_json::{Value, json};

/// The rules of a Pod's spec at `path`.
pub(super) fn spec(spec: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut volumes = Vec::new();
    for (index, volume) in list(spec, "/volumes").iter().enumerate() {
        let here = at(path, format!("volumes[{index}]"));
        match text(volume, "/name") {
            "" => causes.push(Cause::required(format!("{here}.name"), "")),
            name if volumes.contains(&name) => causes.push(duplicate(format!("{here}.name"), &json!(name))),
            name => {
                for why in names::label_faults(name) {
                    causes.push(Cause::invalid(format!("{here}.name"), &json!(name), why));
                }
                volumes.push(name);
            }
        }
    }
    if list(spec, "/containers").is_empty() {
        causes.push(Cause::required(at(path, "containers"), ""));
    }
    let mut seen = Vec::new();
    for kind in ["containers", "initContainers"] {
        for (index, container) in list(spec, &format!("/{kind}")).iter().enumerate() {
            let here = at(path, format!("{kind}[{index}]"));
            causes.extend(self::container(container, &here, &volumes));
            let name = text(container, "/name");
            if seen.contains(&name) && !name.is_empty() {
                causes.push(duplicate(format!("{here}.name"), &json!(name)));
            }
            seen.push(name);
        }
    }
    for (field, supported) in [
        ("restartPolicy", &["Always", "OnFailure", "Never"][..]),
        ("dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]),
    ] {
        let value = text(spec, &format!("/{field}"));
        if !value.is_empty() && !supported.contains(&value) {
            causes.push(not_supported(at(path, field), value, supported));
        }
    }
    causes
}

fn container(container: &Value, path: &str, volumes: &[&str]) -> Vec<Cause> {
    let mut causes = Vec::new();
    match text(container, "/name") {
        "" => causes.push(Cause::required(format!("{path}.name"), "")),
        name => causes.extend(
            names::label_faults(name)
                .into_iter()
                .map(|why| Cause::invalid(format!("{path}.name"), &json!(name), why)),
        ),
    }
    if text(container, "/image").is_empty() {
        causes.push(Cause::required(format!("{path}.image"), ""));
    }
    for (index, port) in list(container, "/ports").iter().enumerate() {
        let here = format!("{path}.ports[{index}]");
        let number = port.get("containerPort").and_then(Value::as_i64).unwrap_or_default();
        if number == 0 {
            causes.push(Cause::required(format!("{here}.containerPort"), ""));
        } else if !(1..=65535).contains(&number) {
            causes.push(Cause::invalid(
                format!("{here}.containerPort"),
                &json!(number),
                "must be between 1 and 65535, inclusive",
            ));
        }
        let protocol = text(port, "/protocol");
        if !["TCP", "UDP", "SCTP"].contains(&protocol) {
            causes.push(not_supported(format!("{here}.protocol"), protocol, &["SCTP", "TCP", "UDP"]));
        }
    }
    for (index, variable) in list(container, "/env").iter().enumerate() {
        if text(variable, "/name").is_empty() {
            causes.push(Cause::required(format!("{path}.env[{index}].name"), ""));
        }
    }
    for (index, mount) in list(container, "/volumeMounts").iter().enumerate() {
        let here = format!("{path}.volumeMounts[{index}]");
        match text(mount, "/name") {
            "" => causes.push(Cause::required(format!("{here}.name"), "")),
            name if !volumes.contains(&name) => causes.push(Cause::new(
                "FieldValueNotFound",
                format!("{here}.name"),
                format!("Not found: {name:?}"),
            )),
            _ => {}
        }
        if text(mount, "/mountPath").is_empty() {
            causes.push(Cause::required(format!("{here}.mountPath"), ""));
        }
    }
    causes
}

/// An update of a Pod's spec may change only images, the deadline, tolerations and gates.
pub(super) fn update(new: &Value, old: &Value) -> Vec<Cause> {
    let fixed = |pod: &Value| {
        let mut spec = fields(pod.get("spec").unwrap_or(&Value::Null));
        for field in
            ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"]
        {
            spec.shift_remove(field);
        }
        // Bindings and admission set these fields if they are empty.
        if old.pointer("/spec/nodeName").is_none() {
            spec.shift_remove("nodeName");
        }
        for kind in ["containers", "initContainers"] {
            let containers = spec.get_mut(kind).and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
                container.shift_remove("image");
                container.shift_remove("imagePullPolicy");
            }
        }
        spec
    };
    if fixed(new) == fixed(old) {
        return Vec::new();
    }
    vec![Cause::forbidden(
        "spec",
        "pod updates may not change fields other than `spec.containers[*].image`,\
         `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
         tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )]
}

/// Ephemeral containers can be added, but neither changed nor removed.
pub(crate) fn ephemeral_containers(new: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let containers = |pod: &'_ Value| -> Vec<Value> { list(pod, "/spec/ephemeralContainers").to_vec() };
    let volumes: Vec<&str> = list(new, "/spec/volumes").iter().map(|volume| text(volume, "/name")).collect();
    let mut seen: Vec<String> = ["/spec/containers", "/spec/initContainers"]
        .iter()
        .flat_map(|kind| list(new, kind).iter().map(|container| text(container, "/name").to_owned()))
        .collect();
    let wanted = containers(new);
    for (index, one) in wanted.iter().enumerate() {
        let here = format!("spec.ephemeralContainers[{index}]");
        causes.extend(container(one, &here, &volumes));
        let name = text(one, "/name");
        if !name.is_empty() && seen.iter().any(|known| known == name) {
            causes.push(duplicate(format!("{here}.name"), &json!(name)));
        }
        seen.push(name.to_owned());
        let target = text(one, "/targetContainerName");
        if !target.is_empty() && !seen.iter().any(|known| known == target) {
            causes.push(Cause::new(
                "FieldValueNotFound",
                format!("{here}.targetContainerName"),
                format!("Not found: {target:?}"),
            ));
        }
    }
    for before in containers(old) {
        let name = text(&before, "/name");
        let after = wanted.iter().find(|one| text(one, "/name") == name);
        let what = match after {
            None => "removed",
            Some(after) if *after != before => "changed",
            Some(_) => continue,
        };
        let why = format!("existing ephemeral containers {name:?} may not be {what}\n");
        causes.push(Cause::forbidden("spec.ephemeralContainers", why));
    }
    causes
}
