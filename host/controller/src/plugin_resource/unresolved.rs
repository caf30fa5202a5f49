//! Why the newest spec of an object is not used, for the metrics. Most of these plugins were never loaded, or
//! an older version of them serves, so that the status registry does not know the reason.

use std::path::Path;

use super::controller::PluginResources;
use super::definitions::PluginKey;
use super::resolve::{Problem, Resolved};

/// Returns the reason for which the newest spec, or what its tag names now, is not used. A spec that was
/// resolved has the problem for which a component that was fetched before is used, if there is one.
fn reason(resolution: Result<Option<&Problem>, &Problem>) -> Option<&'static str> {
    match resolution {
        // A registry that is down says nothing about newer versions.
        Ok(stale) => stale.filter(|it| !it.is_unknown).map(|it| it.reason),
        Err(problem) => Some(problem.reason),
    }
}

// === impl PluginResources ===

impl PluginResources {
    /// Returns the reason for which the newest spec of an object is not used, if it is not.
    pub(super) fn why_unresolved(
        &self,
        key: &PluginKey,
        resolution: &Result<Resolved, Problem>,
    ) -> Option<&'static str> {
        reason(resolution.as_ref().map(|it| it.stale.as_ref()))
            .or_else(|| self.is_name_taken(key).then_some("NameTaken"))
    }

    /// Returns whether a plugin file has the name of the plugin.
    fn is_name_taken(&self, key: &PluginKey) -> bool {
        let path = key.path();
        let loaded = self.host.statuses.handle(&key.host_name());
        let is_loaded = loaded.is_some_and(|it| Path::new(&it.snapshot().file).starts_with(&path));
        !is_loaded && self.host.statuses.why_refused(&path).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::super::conditions::Stage;
    use super::*;

    #[test]
    fn a_spec_is_unresolved_unless_only_its_registry_is_down_and_the_component_was_fetched_before() {
        let problem = |reason, is_unknown| {
            let message = format!("{reason}!");
            Problem { stage: Stage::Fetched, reason, message, is_unknown }
        };
        assert_eq!(reason(Ok(None)), None);
        assert_eq!(reason(Ok(Some(&problem("Unavailable", true)))), None);
        assert_eq!(reason(Ok(Some(&problem("NotSigned", false)))), Some("NotSigned"));
        assert_eq!(reason(Err(&problem("NamespaceNotOptedIn", false))), Some("NamespaceNotOptedIn"));
        assert_eq!(reason(Err(&problem("Unavailable", true))), Some("Unavailable"));
    }
}
