//! Label selectors of Kubernetes. The host has checked those that a plugin declares.

/// Returns whether labels match a selector such as `app=web,tier in (a,b),!legacy`. `label` returns the value
/// of a label.
pub(crate) fn matches<'a>(selector: &str, label: impl Fn(&str) -> Option<&'a str>) -> bool {
    requirements(selector).iter().all(|requirement| {
        if let Some((name, list)) = requirement.split_once('(') {
            let list = list.trim_end().trim_end_matches(')');
            let is_in = |name: &str| {
                label(name.trim()).is_some_and(|value| list.split(',').any(|other| other.trim() == value))
            };
            let name = name.trim_end();
            return match (name.strip_suffix("notin"), name.strip_suffix("in")) {
                (Some(name), _) => !is_in(name),
                (None, Some(name)) => is_in(name),
                (None, None) => false,
            };
        }
        if let Some((name, value)) = requirement.split_once("!=") {
            label(name.trim()) != Some(value.trim())
        } else if let Some((name, value)) = requirement.split_once('=') {
            label(name.trim()) == Some(value.trim_start_matches('=').trim())
        } else if let Some(name) = requirement.strip_prefix('!') {
            label(name.trim()).is_none()
        } else {
            label(requirement).is_some()
        }
    })
}

/// Returns the requirements, which are separated by the commas outside of parentheses.
pub(crate) fn requirements(selector: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = selector.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        character == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn selectors_are_those_of_kubernetes() {
        let labels = [("app", "web"), ("tier", "a"), ("built-in", ""), ("x", "notin")];
        let matches = |selector| {
            super::matches(selector, |name| {
                labels.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
            })
        };
        for selector in [
            "",
            "app=web",
            "app==web,tier in (a, b),!legacy",
            "app != db,app,tier notin (c,d)",
            "tier in(a)",
            "legacy notin(a),legacy!=a",
            "built-in,built-in=,built-in in (,x)",
            "x=notin",
        ] {
            assert!(matches(selector), "{selector}");
        }
        for selector in [
            "app=db",
            "legacy",
            "!app",
            "! app",
            "tier in (b,c)",
            "tier notin (a)",
            "app=web,app!=web",
            "legacy in (,a)",
            "built-in notin ()",
        ] {
            assert!(!matches(selector), "{selector}");
        }
    }
}
