//! The API server of the kubeconfig, and the places of plugins in it.

use std::error::Error as _;
use std::ffi::OsString;
use std::time::Duration;

use http::{HeaderValue, header::USER_AGENT};
use kube::client::ClientBuilder;
use kube::core::{ApiResource, DynamicObject};
use kube::{Api, Client, Config};

use crate::args::{ClusterChoice, Environment, NamespaceName};
use crate::connect::{token_file, user_config};
use crate::control_client::{Names, SHADOW};
use crate::failure::Failure;

/// How long the API server may take to accept a connection, and to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// The API server, as the user.
pub(super) struct ApiServer {
    pub(super) client: Client,
    pub(super) config: Config,
    /// The files and the context with which kubectl reaches the same cluster.
    pub(super) kubeconfig: Option<OsString>,
    pub(super) context: Option<String>,
    namespace: String,
}

/// Where plugins are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    All,
    Namespace(String),
    Cluster,
}

/// Explains an error of the API server, or of the way to it.
pub(crate) fn failure(error: kube::Error) -> Failure {
    match error {
        kube::Error::Api(status) if status.code == 403 && status.message.contains("\"events\"") => {
            Failure::caller(anyhow::anyhow!("{}", status.message))
                .hint("bind the ClusterRole view to the user, which has events; docs/kubectl.md lists the rights")
        }
        kube::Error::Api(status) if status.code == 403 => {
            Failure::caller(anyhow::anyhow!("{}", status.message))
                .hint("bind the ClusterRole oarlock-plugins-view or oarlock-plugins-edit to the user; docs/kubectl.md lists the rights")
        }
        kube::Error::Api(status) if status.code == 401 => {
            Failure::caller(anyhow::anyhow!("the API server rejects the credentials: {}", status.message))
                .hint("log in to the cluster again; kubectl auth whoami shows whether the API server accepts the login")
        }
        kube::Error::Api(status) if status.code == 404 && !status.message.contains(".oarlock.dev \"") => {
            Failure::caller(anyhow::anyhow!("this cluster has no Plugins: the resource is not defined"))
                .hint("install Oarlock (`oarlock install --print`), or choose another cluster with --context")
        }
        kube::Error::Api(status) if status.code == 404 => {
            let hint = match status.message.starts_with("clusterplugins.") {
                true => "`kubectl oarlock plugins --cluster` lists the ClusterPlugins",
                false => "`kubectl oarlock plugins -A` lists the Plugins of all namespaces",
            };
            Failure::caller(anyhow::anyhow!("{}", status.message)).hint(hint)
        }
        kube::Error::Api(status) => Failure::running(anyhow::anyhow!("{} ({})", status.message, status.code)),
        kube::Error::Auth(error) => {
            Failure::caller(anyhow::Error::new(error).context("the kubeconfig provides no credentials"))
                .hint("run its login command by hand")
        }
        error => {
            let mut message = error.to_string();
            let mut cause = error.source();
            while let Some(inner) = cause {
                message = inner.to_string();
                cause = inner.source();
            }
            Failure::running(anyhow::anyhow!("the API server cannot be reached: {message}"))
                .hint("check the cluster with `kubectl get --raw /readyz`")
        }
    }
}

// === impl ApiServer ===

impl ApiServer {
    /// Reads the kubeconfig. Sends nothing.
    pub(super) async fn connect(choice: &ClusterChoice, environment: &Environment) -> Result<Self, Failure> {
        let ClusterChoice { kubeconfig, context, namespace } = choice;
        let (mut config, source) = user_config(kubeconfig.as_deref(), context.clone(), environment).await?;
        config.headers.push((
            USER_AGENT,
            HeaderValue::from_static(concat!("kubectl-oarlock/", env!("CARGO_PKG_VERSION"))),
        ));
        config.connect_timeout = Some(CONNECT_LIMIT);
        config.read_timeout = Some(ANSWER_LIMIT);
        let unusable = |error: kube::Error| {
            Failure::caller(anyhow::Error::new(error).context(format!("{source} cannot be used")))
        };
        let client = match token_file(&config)? {
            None => Client::try_from(config.clone()).map_err(unusable)?,
            Some(token_file) => {
                // kube does not trim the token. A login command would come after the file.
                let mut others = config.clone();
                (others.auth_info.token_file, others.auth_info.exec) = (None, None);
                let builder = ClientBuilder::try_from(others).map_err(unusable)?;
                builder.with_layer(&token_file.layer()).build()
            }
        };
        let namespace = match namespace {
            Some(NamespaceName(name)) => name.clone(),
            None => config.default_namespace.clone(),
        };
        Ok(Self { client, config, kubeconfig: kubeconfig.clone(), context: context.clone(), namespace })
    }

    /// Returns the place that the flags name.
    pub(super) fn place(&self, is_all: bool, is_cluster: bool) -> Place {
        match (is_all, is_cluster) {
            (true, _) => Place::All,
            (false, true) => Place::Cluster,
            (false, false) => Place::Namespace(self.namespace.clone()),
        }
    }

    /// Returns the objects of a place.
    pub(super) fn objects(&self, place: &Place) -> Api<DynamicObject> {
        let resource = resource(place);
        match place {
            Place::Namespace(name) => Api::namespaced_with(self.client.clone(), name, &resource),
            Place::All | Place::Cluster => Api::all_with(self.client.clone(), &resource),
        }
    }
}

fn resource(place: &Place) -> ApiResource {
    let (kind, plural) = match place {
        Place::Cluster => ("ClusterPlugin", "clusterplugins"),
        Place::All | Place::Namespace(_) => ("Plugin", "plugins"),
    };
    let (group, version) = ("oarlock.dev".to_owned(), "v1alpha1".to_owned());
    let api_version = format!("{group}/{version}");
    ApiResource { group, version, api_version, kind: kind.to_owned(), plural: plural.to_owned() }
}

// === impl Place ===

impl Place {
    /// Returns the kind of the objects.
    pub(super) fn kind(&self) -> &'static str {
        if *self == Self::Cluster { "ClusterPlugin" } else { "Plugin" }
    }

    /// Returns how kubectl prints the name of an object.
    pub(super) fn printed(&self, name: &str) -> String {
        format!("{}.oarlock.dev/{name}", self.kind().to_ascii_lowercase())
    }

    /// Returns how the host's answers name plugins.
    pub(super) fn names(&self) -> Names {
        match self {
            Self::All => Names::All,
            Self::Namespace(name) => Names::Namespace(name.clone()),
            Self::Cluster => Names::Cluster,
        }
    }

    /// Returns the name of an object, which may be given as `plugin/NAME`, as lists print it, or of its
    /// shadow.
    pub(super) fn object_name<'t>(&self, text: &'t str) -> Result<&'t str, Failure> {
        let (kind, name) = text.split_once('/').unwrap_or(("", text));
        let kind = kind.strip_suffix(".oarlock.dev").unwrap_or(kind);
        let is_kind = match self {
            Self::Cluster => ["", "clusterplugin", "clusterplugins", "ocpl"].contains(&kind),
            _ => ["", "plugin", "plugins", "opl"].contains(&kind),
        };
        if !is_kind {
            let error = anyhow::anyhow!("{text:?} does not name a {}", self.kind());
            return Err(Failure::caller(error).hint("a ClusterPlugin is named with --cluster NAME, a Plugin of another namespace with -n NAMESPACE NAME"));
        }
        // What cannot be a name must not become another path of a request.
        match name.strip_suffix(SHADOW).unwrap_or(name).parse::<NamespaceName>() {
            Ok(_) => Ok(name),
            Err(_) => Err(Failure::caller(anyhow::anyhow!("{text:?} is not the name of a {}", self.kind()))
                .hint(format!("`{}` lists the names", self.names().command("plugins", None)))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_its_kind_and_never_becomes_another_path() {
        let team = Place::Namespace("team-a".to_owned());
        for text in ["mirror", "plugin/mirror", "plugin.oarlock.dev/mirror", "opl/mirror"] {
            assert_eq!(team.object_name(text).unwrap(), "mirror");
        }
        assert_eq!(team.object_name("plugin/mirror.shadow").unwrap(), "mirror.shadow");
        assert_eq!(Place::Cluster.object_name("clusterplugin.oarlock.dev/census").unwrap(), "census");
        for wrong in ["", "a/b/c", "team-b/mirror", "../x", "a b", "a%2fb", "pod/mirror", "a.b"] {
            assert!(team.object_name(wrong).is_err(), "{wrong:?}");
        }
        assert!(Place::Cluster.object_name("plugin/mirror").is_err());
    }

    #[test]
    fn an_error_says_what_to_do() {
        let text = |code: u16, message: &str| {
            let status = kube::core::Status { code, message: message.to_owned(), ..Default::default() };
            failure(kube::Error::Api(Box::new(status))).text()
        };
        assert!(text(404, "404 page not found").contains("oarlock install --print"));
        assert!(text(404, "plugins.oarlock.dev \"x\" not found").contains("plugins -A"));
        assert!(text(404, "clusterplugins.oarlock.dev \"x\" not found").contains("plugins --cluster"));
        assert!(text(403, "no").contains("oarlock-plugins-view"));
        assert!(text(401, "Unauthorized").contains("log in"));
    }
}
