//! Discovery: the kind, scope and verbs of the resources that the API server serves.
//!
//! A resource that is not served is not an error, because its CustomResourceDefinition may be created later.
//! So presence is cached only for [`KNOWN_FOR`], and absence only for the question of the scope.

use std::{collections::HashMap, sync::Arc, time::Duration};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource, APIResourceList};
use oarlock_informer::GroupVersionResource;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::config::closest;

/// How long the resources of a group version are cached.
pub const KNOWN_FOR: Duration = Duration::from_secs(30);

/// The timeout of one discovery request.
pub const ASK_TIMEOUT: Duration = Duration::from_secs(10);

/// A resource that the API server serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    /// The kind, such as `Deployment`.
    pub kind: String,
    /// The API version, such as `apps/v1`.
    pub api_version: String,
    /// Whether the resource is namespaced.
    pub namespaced: bool,
    /// The verbs, such as `list`.
    pub verbs: Vec<String>,
    /// The subresources, such as `status`.
    pub subresources: Vec<String>,
}

/// Why discovery failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server is unreachable, fails, or does not answer in time.
    #[error("discovery of {group_version} failed: {reason}")]
    Unavailable {
        /// The group version, such as `apps/v1`.
        group_version: String,
        /// The error.
        reason: String,
    },
    /// The host's account may not use discovery.
    #[error(
        "the host's account may not discover {group_version}: {reason}. Fix: bind the ClusterRole system:discovery to it"
    )]
    Forbidden {
        /// The group version, such as `apps/v1`.
        group_version: String,
        /// The answer of the API server.
        reason: String,
    },
}

/// Discovers resources and caches them for a while. Shared by all plugins.
pub struct Discovery {
    client: kube::Client,
    known: Mutex<HashMap<String, KnownGroup>>,
}

/// The resources of one group version, by plural name.
struct KnownGroup {
    asked: Instant,
    resources: Arc<HashMap<String, Served>>,
}

// === impl Discovery ===

impl Discovery {
    /// Makes a discovery that uses `client`, with an empty cache.
    #[must_use]
    pub fn new(client: kube::Client) -> Self {
        Self { client, known: Mutex::default() }
    }

    /// Returns a resource, from the cache if possible; none if it is not served.
    pub async fn resolve(&self, resource: &GroupVersionResource) -> Result<Option<Served>, Error> {
        let group_version = resource.api_version().to_string();
        let plural: &str = &resource.resource;
        let known = self
            .known
            .lock()
            .get(&group_version)
            .filter(|known| known.asked.elapsed() < KNOWN_FOR)
            .and_then(|known| known.resources.get(plural).cloned());
        if known.is_some() {
            return Ok(known);
        }
        self.resolve_uncached(resource).await
    }

    /// Returns whether a resource is namespaced; none if it is not served.
    ///
    /// The answer may be [`KNOWN_FOR`] old. That a resource is namespaced may be older, since the answer then
    /// waits for no request: a resource that was made again in the other scope shows no objects. All answers
    /// may be older while discovery fails.
    pub async fn is_namespaced(&self, resource: &GroupVersionResource) -> Result<Option<bool>, Error> {
        let known = self.known.lock().get(&resource.api_version().to_string()).map(|known| {
            let served = known.resources.get(&*resource.resource);
            (known.asked.elapsed() < KNOWN_FOR, served.map(|it| it.namespaced))
        });
        match known {
            Some((true, namespaced) | (false, namespaced @ Some(true))) => Ok(namespaced),
            before => match (self.resolve_uncached(resource).await, before) {
                (Ok(served), _) => Ok(served.map(|it| it.namespaced)),
                (Err(_), Some((_, namespaced))) => Ok(namespaced),
                (Err(error), None) => Err(error),
            },
        }
    }

    /// Returns a resource without use of the cache; none if it is not served.
    pub async fn resolve_uncached(&self, resource: &GroupVersionResource) -> Result<Option<Served>, Error> {
        let group_version = resource.api_version().to_string();
        let asked = Instant::now();
        let list = self.ask(&group_version).await?;
        let resources = Arc::new(tabulate(&group_version, list.map(|it| it.resources).unwrap_or_default()));
        let served = resources.get(&*resource.resource).cloned();
        let mut known = self.known.lock();
        // Plugins can declare groups that do not exist, without end.
        known.retain(|_, known| !known.resources.is_empty() || known.asked.elapsed() < KNOWN_FOR);
        known.insert(group_version, KnownGroup { asked, resources });
        Ok(served)
    }

    /// Returns the resource of the same group version whose name is the closest, of those that were served
    /// when the API server was asked last.
    pub(crate) fn similar(&self, resource: &GroupVersionResource) -> Option<GroupVersionResource> {
        let known = self.known.lock();
        let served = &known.get(&resource.api_version().to_string())?.resources;
        let names: Vec<&str> = served.keys().map(String::as_str).collect();
        let plural = closest(&resource.resource, &names)?;
        Some(GroupVersionResource { resource: plural.to_owned(), ..resource.clone() })
    }

    /// Returns the other versions of the group that serve the resource, the preferred one first.
    pub async fn other_versions(&self, resource: &GroupVersionResource) -> Result<Vec<String>, Error> {
        if resource.group.is_empty() {
            return Ok(Vec::new());
        }
        let group: Option<APIGroup> = self.get(&resource.group, &format!("/apis/{}", resource.group)).await?;
        let mut found = Vec::new();
        for version in group.map(|group| group.versions).unwrap_or_default() {
            if version.version == *resource.version {
                continue;
            }
            let list = self.ask(&version.group_version).await?;
            if list.is_some_and(|list| list.resources.iter().any(|it| it.name == *resource.resource)) {
                found.push(version.group_version);
            }
        }
        Ok(found)
    }

    async fn ask(&self, group_version: &str) -> Result<Option<APIResourceList>, Error> {
        // A group version without a slash belongs to the core group.
        let root = if group_version.contains('/') { "/apis" } else { "/api" };
        self.get(group_version, &format!("{root}/{group_version}")).await
    }

    async fn get<T: DeserializeOwned>(&self, group_version: &str, path: &str) -> Result<Option<T>, Error> {
        let unavailable =
            |reason: String| Error::Unavailable { group_version: group_version.to_owned(), reason };
        let request =
            http::Request::get(path).body(Vec::new()).map_err(|error| unavailable(error.to_string()))?;
        let answer = tokio::time::timeout(ASK_TIMEOUT, self.client.request(request)).await;
        match answer {
            Ok(Ok(list)) => Ok(Some(list)),
            // For an unknown group the API server answers in plain text, so only the status code counts.
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(None),
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 401 | 403) => Err(Error::Forbidden {
                group_version: group_version.to_owned(),
                reason: status.message.clone(),
            }),
            Ok(Err(error)) => Err(unavailable(crate::chain::text(&error))),
            Err(_) => Err(unavailable(format!("no answer within {} s", ASK_TIMEOUT.as_secs()))),
        }
    }
}

fn tabulate(group_version: &str, list: Vec<APIResource>) -> HashMap<String, Served> {
    let (subresources, resources): (Vec<_>, Vec<_>) =
        list.into_iter().partition(|resource| resource.name.contains('/'));
    let mut served: HashMap<String, Served> = resources
        .into_iter()
        .map(|resource| {
            let APIResource { name, kind, namespaced, verbs, .. } = resource;
            let api_version = group_version.to_owned();
            (name, Served { kind, api_version, namespaced, verbs, subresources: Vec::new() })
        })
        .collect();
    for subresource in subresources {
        if let Some((parent, name)) = subresource.name.split_once('/')
            && let Some(served) = served.get_mut(parent)
        {
            served.subresources.push(name.to_owned());
        }
    }
    served
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use oarlock_fake_api::{FakeApi, Reply};

    const APPS: &str = r#"{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
        {"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["get","list","watch"]},
        {"name":"deployments/status","singularName":"","namespaced":true,"kind":"Deployment","verbs":["get","patch"]}]}"#;

    fn deployments() -> GroupVersionResource {
        GroupVersionResource::new("apps", "v1", "deployments")
    }

    #[tokio::test(start_paused = true)]
    async fn the_scope_is_cached_for_a_while_and_known_while_discovery_fails() {
        const IN_CLUSTER: usize = 201;
        let state = Arc::new(AtomicUsize::new(404));
        let api = FakeApi::new({
            let state = Arc::clone(&state);
            move |_| match state.load(Ordering::SeqCst) {
                200 => Reply::json(200, APPS),
                IN_CLUSTER => Reply::json(200, APPS.replace("true", "false")),
                404 => Reply::status(404, "NotFound", "not here"),
                _ => Reply::status(503, "ServiceUnavailable", "down"),
            }
        });
        let discovery = Discovery::new(api.client());
        let is_namespaced = async || discovery.is_namespaced(&deployments()).await.unwrap();
        assert_eq!(is_namespaced().await, None);
        state.store(IN_CLUSTER, Ordering::SeqCst);
        assert_eq!((is_namespaced().await, api.requests().len()), (None, 1));
        tokio::time::advance(KNOWN_FOR).await;
        assert_eq!((is_namespaced().await, api.requests().len()), (Some(false), 2));
        state.store(503, Ordering::SeqCst);
        tokio::time::advance(KNOWN_FOR).await;
        assert_eq!(is_namespaced().await, Some(false));
        state.store(200, Ordering::SeqCst);
        assert_eq!(is_namespaced().await, Some(true), "made again in the other scope");
        let n_requests = api.requests().len();
        state.store(503, Ordering::SeqCst);
        tokio::time::advance(KNOWN_FOR).await;
        assert_eq!((is_namespaced().await, api.requests().len()), (Some(true), n_requests));
        assert!(Discovery::new(api.client()).is_namespaced(&deployments()).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn presence_is_cached_for_a_while_and_absence_never() {
        let served = Arc::new(AtomicUsize::new(0));
        let api = FakeApi::new({
            let served = Arc::clone(&served);
            move |request| match (request.path.as_str(), served.load(Ordering::SeqCst)) {
                ("/apis/apps/v1", 1) => Reply::json(200, APPS),
                _ => Reply::status(404, "NotFound", "not here"),
            }
        });
        let discovery = Discovery::new(api.client());
        assert_eq!(discovery.resolve(&deployments()).await.unwrap(), None);
        assert_eq!(discovery.resolve(&deployments()).await.unwrap(), None);
        assert_eq!(api.requests().len(), 2);

        served.store(1, Ordering::SeqCst);
        let found = discovery.resolve(&deployments()).await.unwrap().unwrap();
        assert_eq!(found.kind, "Deployment");
        assert_eq!(found.subresources, ["status"]);
        assert!(found.namespaced);
        discovery.resolve(&deployments()).await.unwrap();
        assert_eq!(api.requests().len(), 3);

        served.store(0, Ordering::SeqCst);
        tokio::time::advance(KNOWN_FOR).await;
        assert_eq!(discovery.resolve(&deployments()).await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_resource_that_is_not_served_may_be_another_one_misspelled() {
        let api = FakeApi::new(|_| Reply::json(200, APPS));
        let discovery = Discovery::new(api.client());
        let similar = async |plural: &str| {
            let resource = GroupVersionResource::new("apps", "v1", plural);
            assert_eq!(discovery.resolve_uncached(&resource).await.unwrap(), None);
            discovery.similar(&resource)
        };
        assert_eq!(discovery.similar(&deployments()), None, "nothing is known yet");
        for misspelled in ["deployment", "Deployments", "delpoyments"] {
            assert_eq!(similar(misspelled).await, Some(deployments()), "{misspelled}");
        }
        assert_eq!(similar("boats").await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_core_group_is_discovered_at_its_own_path() {
        let api = FakeApi::new(|_| Reply::status(404, "NotFound", "not here"));
        let pods = GroupVersionResource::new("", "v1", "pods");
        assert_eq!(Discovery::new(api.client()).resolve(&pods).await.unwrap(), None);
        assert_eq!(api.requests()[0].path, "/api/v1");
    }

    #[tokio::test(start_paused = true)]
    async fn a_404_in_plain_text_means_that_the_group_is_not_served() {
        let api = FakeApi::new(|_| Reply::json(404, "404 page not found\n"));
        assert_eq!(Discovery::new(api.client()).resolve(&deployments()).await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_403_and_a_timeout_are_different_errors() {
        let api = FakeApi::new(|_| Reply::status(403, "Forbidden", "no"));
        let error = Discovery::new(api.client()).resolve(&deployments()).await.unwrap_err();
        insta::assert_snapshot!(error, @"the host's account may not discover apps/v1: no. Fix: bind the ClusterRole system:discovery to it");
        let api = FakeApi::new(|_| Reply::Never);
        let error = Discovery::new(api.client()).resolve(&deployments()).await.unwrap_err();
        insta::assert_snapshot!(error, @"discovery of apps/v1 failed: no answer within 10 s");
    }
}
