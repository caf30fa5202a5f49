//! The informer as the host configures it: its transport, its source, the default configuration.

use std::sync::Arc;

use anyhow::{Result, bail};
use kube::Client;
use oarlock_informer::object::{Content, Pruning};
use oarlock_informer::shared_informer::Config;
use oarlock_informer::{
    GroupVersionResource, SharedInformer,
    list_watch::{
        api::{self, ApiListWatch},
        transport,
    },
    object::TypeMeta,
};

/// The content of the cached objects.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Kept {
    /// The default of the host.
    Default,
    /// Full objects without pruning, with managedFields.
    Everything,
    /// Metadata only.
    Metadata,
}

/// Returns a client for an API server without authentication.
pub(crate) fn client(server: &str) -> Result<Client> {
    Ok(transport::client(kube::Config::new(server.parse()?))?)
}

/// Returns an informer with the default configuration.
pub(crate) fn informer(client: Client, resource: &str, kept: Kept) -> Result<SharedInformer> {
    informer_with(client, resource, kept, |_| {})
}

/// Returns an informer with a changed configuration.
pub(crate) fn informer_with(
    client: Client,
    resource: &str,
    kept: Kept,
    change: impl FnOnce(&mut Config),
) -> Result<SharedInformer> {
    let type_meta = match resource {
        "pods" => TypeMeta::new("v1", "Pod"),
        "configmaps" => TypeMeta::new("v1", "ConfigMap"),
        other => bail!("the server has no {other}"),
    };
    let resource = GroupVersionResource::new("", "v1", resource);
    let mut source = api::Config::new(resource.clone(), Some(type_meta.clone()));
    match kept {
        Kept::Default => {}
        Kept::Everything => source.pruning = Pruning::none(),
        Kept::Metadata => source.content = Content::Metadata,
    }
    let mut config = Config::new(resource);
    config.reflector.type_meta = Some(type_meta);
    change(&mut config);
    Ok(SharedInformer::new(Arc::new(ApiListWatch::new(client, source)), config))
}
