//! How a command names plugins: as the host does, or as objects in a cluster; and the paths of the operations
//! about them.

/// The end of the name of a plugin's shadow.
pub(crate) const SHADOW: &str = ".shadow";

/// The plugins that a command is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// Those of a host, with the host's names.
    OfHost,
    /// Plugins of a namespace.
    Namespace(String),
    /// ClusterPlugins.
    Cluster,
    /// Plugins of all namespaces, and ClusterPlugins.
    All,
}

// === impl Names ===

impl Names {
    /// Returns the path for what one plugin uses, or all.
    pub(crate) fn usage(&self, plugin: Option<&str>) -> String {
        match self {
            Self::OfHost => "/v1/plugins".to_owned(),
            _ => self.of_objects(plugin, "metrics"),
        }
    }

    /// Returns the path for what one plugin has parked, or all.
    pub(crate) fn parked(&self, plugin: Option<&str>) -> String {
        match (self, plugin) {
            (Self::OfHost, Some(plugin)) => format!("/v1/parked?plugin={plugin}"),
            (Self::OfHost, None) => "/v1/parked".to_owned(),
            _ => self.of_objects(plugin, "deadletters"),
        }
    }

    /// Returns the path of an operation about one plugin.
    pub(crate) fn operation(&self, plugin: &str, operation: &str) -> String {
        match self {
            Self::OfHost => format!("/v1/plugins/{plugin}/{operation}"),
            _ => self.of_objects(Some(plugin), operation),
        }
    }

    fn of_objects(&self, plugin: Option<&str>, operation: &str) -> String {
        match (self, plugin) {
            (Self::Namespace(namespace), Some(name)) => {
                format!("/v1/namespaces/{namespace}/plugins/{name}/{operation}")
            }
            (Self::Namespace(namespace), None) => format!("/v1/namespaces/{namespace}/{operation}"),
            (Self::Cluster, None) => format!("/v1/clusterplugins/{operation}"),
            (Self::Cluster | Self::OfHost | Self::All, Some(name)) => {
                format!("/v1/clusterplugins/{name}/{operation}")
            }
            (Self::OfHost | Self::All, None) => format!("/v1/all/{operation}"),
        }
    }

    /// Returns whether plugins of several namespaces are shown.
    pub(crate) fn is_all(&self) -> bool {
        *self == Self::All
    }

    /// Returns how a plugin is shown, by its name in the host.
    pub(crate) fn shown(&self, host_name: &str) -> String {
        // The shadow of a ClusterPlugin is in no namespace.
        let object = host_name.strip_suffix(SHADOW).unwrap_or(host_name);
        let of_namespace = host_name.split_once('.').filter(|_| object.contains('.'));
        match (self, of_namespace) {
            (Self::Namespace(namespace), Some((of, name))) if of == namespace => name.to_owned(),
            (Self::All, Some((namespace, name))) => format!("{namespace}/{name}"),
            _ => host_name.to_owned(),
        }
    }

    /// Returns how the object of a plugin is named in a message.
    pub(crate) fn object(&self, plugin: &str) -> String {
        match self {
            Self::OfHost => format!("plugin/{plugin}"),
            Self::Namespace(_) | Self::All => format!("plugin.oarlock.dev/{plugin}"),
            Self::Cluster => format!("clusterplugin.oarlock.dev/{plugin}"),
        }
    }

    /// Returns a message of the host with the names that the user of this command knows.
    pub(crate) fn localized(&self, message: &str) -> String {
        let Self::Namespace(namespace) = self else { return message.to_owned() };
        let prefix = format!("{namespace}.");
        let mut parts = message.split(&prefix);
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            // Within a longer name it is not the namespace.
            if text.ends_with(|it: char| it.is_ascii_alphanumeric() || "-._/".contains(it)) {
                text += &prefix;
            }
            text += part;
        }
        text
    }

    /// Returns a command about these plugins, or about one of them.
    pub(crate) fn command(&self, command: &str, plugin: Option<&str>) -> String {
        let (program, place) = match self {
            Self::OfHost => ("oarlock", String::new()),
            Self::Namespace(namespace) => ("kubectl oarlock", format!(" -n {namespace}")),
            Self::Cluster => ("kubectl oarlock", " --cluster".to_owned()),
            Self::All => ("kubectl oarlock", " -A".to_owned()),
        };
        let plugin = plugin.map(|plugin| format!(" {plugin}")).unwrap_or_default();
        format!("{program} {command}{place}{plugin}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_the_namespace_that_kubernetes_decides_about() {
        let team = Names::Namespace("team-a".to_owned());
        assert_eq!(team.usage(None), "/v1/namespaces/team-a/metrics");
        assert_eq!(team.usage(Some("mirror")), "/v1/namespaces/team-a/plugins/mirror/metrics");
        assert_eq!(team.parked(None), "/v1/namespaces/team-a/deadletters");
        assert_eq!(team.operation("mirror", "logs"), "/v1/namespaces/team-a/plugins/mirror/logs");
        assert_eq!(Names::Cluster.usage(None), "/v1/clusterplugins/metrics");
        assert_eq!(Names::Cluster.operation("a", "rollback"), "/v1/clusterplugins/a/rollback");
        assert_eq!(Names::All.parked(None), "/v1/all/deadletters");
        assert_eq!(Names::OfHost.usage(Some("a.b")), "/v1/plugins");
    }

    #[test]
    fn plugins_are_shown_as_their_objects_are_named() {
        let team = Names::Namespace("team-a".to_owned());
        assert_eq!(
            (team.shown("team-a.mirror"), Names::All.shown("team-a.mirror")),
            ("mirror".to_owned(), "team-a/mirror".to_owned())
        );
        assert_eq!(
            (Names::Cluster.shown("census"), Names::OfHost.shown("a.b")),
            ("census".to_owned(), "a.b".to_owned())
        );
        assert_eq!(
            (team.shown("team-a.mirror.shadow"), Names::All.shown("census.shadow")),
            ("mirror.shadow".to_owned(), "census.shadow".to_owned())
        );
        let message = "plugin team-a.mirror of other-team-a.mirror: \"team-a.mirror\"";
        assert_eq!(team.localized(message), "plugin mirror of other-team-a.mirror: \"mirror\"");
        assert_eq!(
            team.command("dead-letters", Some("mirror")),
            "kubectl oarlock dead-letters -n team-a mirror"
        );
        assert_eq!(Names::Cluster.command("plugins", None), "kubectl oarlock plugins --cluster");
        assert_eq!(Names::OfHost.command("plugins", Some("a")), "oarlock plugins a");
    }
}
