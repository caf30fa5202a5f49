//! What the author of a plugin may want to change.

use std::collections::BTreeSet;

use oarlock_plugin::contract::{Content, Description, Enqueue, Subscription};

use super::super::{super::examine::Examined, show};

/// The interfaces that a plugin may import.
const INTERFACES: [&str; 9] =
    ["event", "cache", "client", "work-queue", "events", "log", "clock", "config", "metrics"];

/// Returns one sentence for each.
pub(super) fn of(examined: &Examined) -> Vec<String> {
    let Examined { component, description, .. } = examined;
    let exports =
        Exports { handler: component.exports_handler(), reconciler: component.exports_reconciler() };
    let mut advice = of_description(description, exports);
    let n_requests = description.requests.len();
    // The bindings of some languages import everything, used or not.
    let imports_all = INTERFACES.iter().all(|interface| examined.imports(interface));
    if examined.imports("client") && !imports_all && n_requests == 0 {
        advice.push(
            "it imports `client` and declares no requests: its account has no right to send any, so they fail with \
             `forbidden`"
                .to_owned(),
        );
    }
    advice
}

#[derive(Clone, Copy)]
struct Exports {
    handler: bool,
    reconciler: bool,
}

fn of_description(description: &Description, exports: Exports) -> Vec<String> {
    let Description { subscriptions, reads, requests, schedules, stateless, .. } = description;
    let mut advice = vec![];
    for it in subscriptions {
        let Subscription { name, fields, conditions, content, enqueue, .. } = it;
        let is_handled = exports.handler && matches!(enqueue, Enqueue::Nothing);
        if is_handled && fields.is_empty() && conditions.is_empty() && *content == Content::Full {
            advice.push(format!(
                "the subscription {name} declares no fields: the plugin is called for every change of {}, also of its \
                 status. Declare the fields that it looks at",
                show::resource(&it.target)
            ));
        }
        if matches!(enqueue, Enqueue::Nothing) && !exports.handler {
            advice.push(format!(
                "the subscription {name} enqueues nothing, and the component exports no handler: its changes have no \
                 effect. Choose what it enqueues"
            ));
        }
    }
    let targets = (subscriptions.iter().map(|it| &it.target))
        .chain(reads.iter().map(|it| &it.target))
        .chain(requests.iter().map(|it| &it.target));
    let singular: BTreeSet<_> =
        targets.filter(|it| !it.plural.ends_with('s')).map(|it| (show::resource(it), &it.plural)).collect();
    for (resource, name) in singular {
        advice.push(format!(
            "{resource} may not exist: the API server names resources in the plural, such as {name}s. See `kubectl \
             api-resources`"
        ));
    }
    let wakes = reads.iter().any(|read| read.wakes);
    let enqueues = subscriptions.iter().any(|it| !matches!(it.enqueue, Enqueue::Nothing));
    if exports.reconciler && !exports.handler && !enqueues && !wakes && schedules.is_empty() {
        advice.push("nothing enqueues a key, so the reconciler is never called".to_owned());
    }
    if !stateless {
        advice.push(
            "it is not stateless: a new version, and an instance after a trap, receives every object again. Declare it \
             stateless if it keeps nothing between calls"
                .to_owned(),
        );
    }
    advice
}

#[cfg(test)]
mod tests {
    use oarlock_plugin::contract::{GroupVersionResource, Namespaces};

    use super::*;

    fn description(enqueue: Enqueue, fields: &[&str], stateless: bool) -> Description {
        let target = GroupVersionResource {
            group: String::new(),
            version: "v1".to_owned(),
            plural: "pods".to_owned(),
        };
        Description {
            name: "a".to_owned(),
            version: "1".to_owned(),
            subscriptions: vec![Subscription {
                name: "pods".to_owned(),
                target,
                namespaces: Namespaces::All,
                label_selector: String::new(),
                conditions: vec![],
                fields: fields.iter().map(|it| (*it).to_owned()).collect(),
                content: Content::Full,
                resync_seconds: 0,
                enqueue,
                ignore_own_writes: false,
            }],
            reads: vec![],
            indices: vec![],
            requests: vec![],
            schedules: vec![],
            stateless,
        }
    }

    #[test]
    fn what_costs_calls_or_has_no_effect_is_named() {
        let handler = Exports { handler: true, reconciler: false };
        let reconciler = Exports { handler: false, reconciler: true };
        let fields = ["/status/phase"].as_slice();
        let good = of_description(&description(Enqueue::Nothing, fields, true), handler);
        assert_eq!(good, Vec::<String>::new());
        let good = of_description(&description(Enqueue::Itself, &[], true), reconciler);
        assert_eq!(good, Vec::<String>::new());
        for (enqueue, fields, stateless, exports, expected) in [
            (Enqueue::Nothing, [].as_slice(), true, handler, "declares no fields"),
            (Enqueue::Nothing, fields, false, handler, "not stateless"),
            (Enqueue::Nothing, fields, true, reconciler, "exports no handler"),
            (Enqueue::Nothing, fields, true, reconciler, "never called"),
        ] {
            let advice = of_description(&description(enqueue, fields, stateless), exports).join("\n");
            assert!(advice.contains(expected), "{expected:?} is not in {advice:?}");
        }
        let mut singular = description(Enqueue::Itself, fields, true);
        singular.subscriptions[0].target.plural = "pod".to_owned();
        let advice = of_description(&singular, reconciler).join("\n");
        assert!(advice.contains("v1/pod may not exist") && advice.contains("such as pods"), "{advice}");
    }
}
