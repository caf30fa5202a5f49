mod hostile;

use std::collections::BTreeSet;

use async_trait::async_trait;
use oarlock_informer::{
    list_watch::ListWatch,
    object::TypeMeta,
    testing::{Draft, FakeListWatch},
};
use oarlock_wait_until::{LIMIT, yield_until};
use tokio_util::sync::CancellationToken;

use std::time::Duration;

use super::*;
use crate::{
    access::testing::{FakeReviewer, Known},
    informers::{Informers, Limits, Purpose, ResourceSource},
    report,
    tasks::Tasks,
};

/// The cache of a plugin with the reads `pods` (all namespaces) and `ours` (namespace a), and indices over
/// Pods in the namespaces a, b and c.
struct Rig {
    cache: Cache,
    identity: Identity,
    api: FakeListWatch,
    reviewer: Arc<FakeReviewer>,
    // Dropping them ends the informer.
    _tasks: Tasks,
}

struct Source(FakeListWatch);

#[async_trait]
impl ResourceSource for Source {
    async fn type_of(&self, _: &GroupVersionResource) -> Result<Option<TypeMeta>, String> {
        Ok(Some(TypeMeta::new("v1", "Pod")))
    }

    fn list_watch(
        &self,
        _: &GroupVersionResource,
        _: &TypeMeta,
        _: oarlock_informer::object::Content,
    ) -> Arc<dyn ListWatch> {
        Arc::new(self.0.clone())
    }
}

impl Rig {
    async fn new(allowed: &[Option<&str>]) -> Self {
        let api = FakeListWatch::pods();
        for key in ["a/one", "a/two", "b/one", "c/one", "c/three"] {
            let app = if key.ends_with("one") { "web" } else { "db" };
            api.put(Draft::new(key).label("app", app));
        }
        let reviewer = Arc::new(FakeReviewer::default());
        for namespace in allowed {
            reviewer.allow("list", *namespace);
            reviewer.allow("watch", *namespace);
        }
        let gate =
            Gate::with_reviewer(reviewer.clone(), Arc::new(Known(Some(&["a", "b", "c"]))), reviewer.clone());
        let (tasks, _) = Tasks::new(CancellationToken::new());
        let (reporter, _) = report::channel(report::Config::default());
        let informers =
            Informers::new(tasks.clone(), reporter, Arc::new(Source(api.clone())), Limits::default());
        let reader = |namespaces| {
            let target = GroupVersionResource::new("", "v1", "pods");
            let handle = informers
                .acquire(&target, Purpose::Plugin("hello".into()), oarlock_informer::object::Content::Full)
                .unwrap();
            Reader { target, namespaces, content: Content::Full, handle }
        };
        let readers: Readers = [
            ("pods".to_owned(), Box::new(reader(Namespaces::All))),
            ("ours".to_owned(), Box::new(reader(Namespaces::One("a".to_owned())))),
        ]
        .into();
        readers["pods"].handle.synced().await;
        let index = |name: &str, source| Index { name: name.to_owned(), lister: "pods".to_owned(), source };
        let indices = vec![
            index("by-app", contract::IndexSource::Label("app".to_owned())),
            index("by-name", contract::IndexSource::Pointer("/metadata/name".to_owned())),
            index("by-part", contract::IndexSource::Pointer("/spec/parts/*".to_owned())),
        ];
        let identity = Identity::unfollowed("oarlock-plugins/hello".parse().unwrap());
        let cache = Cache::new("hello#1", identity.clone(), Arc::new(gate), readers, indices).unwrap();
        Self { cache, identity, api, reviewer, _tasks: tasks }
    }

    async fn list(
        &self,
        lister: &str,
        namespaces: Namespaces,
        limit: u32,
        token: &str,
    ) -> Result<Page, Error> {
        let page = PageRequest { limit, continue_token: token.to_owned() };
        self.cache.list(lister, &namespaces, "", &Projection::Keys, &page).await
    }

    /// Waits until the cache has so many objects.
    async fn has(&self, n_objects: usize) {
        let informer = self.cache.readers["pods"].handle.informer().unwrap();
        yield_until("objects in the cache", LIMIT, || match informer.indexer().len() {
            n_cached if n_cached < n_objects => Err(n_cached),
            n_cached => Ok(n_cached),
        })
        .await;
    }

    async fn by_app(&self, app: &str) -> Result<Vec<String>, Error> {
        self.by_index("by-app", app).await
    }

    async fn by_part(&self, part: &str) -> Result<Vec<String>, Error> {
        self.by_index("by-part", part).await
    }

    async fn by_index(&self, index: &str, value: &str) -> Result<Vec<String>, Error> {
        let page = PageRequest { limit: 1000, continue_token: String::new() };
        let found = self.cache.by_index(index, value, &Namespaces::All, &Projection::Keys, &page).await?;
        Ok(keys(&found))
    }
}

fn keys(page: &Page) -> Vec<String> {
    page.rows.iter().map(|row| format!("{}/{}", row.object.namespace, row.object.name)).collect()
}

fn one(namespace: &str) -> Namespaces {
    Namespaces::One(namespace.to_owned())
}

fn key(namespace: &str, name: &str) -> contract::ObjectKey {
    contract::ObjectKey { namespace: namespace.to_owned(), name: name.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn promise_5_reads_return_only_objects_that_the_account_may_read() {
    let rig = Rig::new(&[Some("a"), Some("c")]).await;
    let all = rig.list("pods", Namespaces::All, 100, "").await.unwrap();
    assert_eq!(keys(&all), ["a/one", "a/two", "c/one", "c/three"]);
    assert_eq!(rig.by_app("web").await.unwrap(), ["a/one", "c/one"]);
    assert!(matches!(rig.list("pods", one("b"), 100, "").await, Err(Error::Forbidden(_))));
    let get = rig.cache.get("pods", &key("b", "one"), &Projection::Keys).await;
    assert!(matches!(get, Err(Error::Forbidden(_))), "{get:?}");
    assert!(rig.cache.get("pods", &key("a", "one"), &Projection::Keys).await.is_ok());
    let get = rig.cache.get("pods", &key("a", "nine"), &Projection::Keys).await;
    assert!(matches!(get, Err(Error::NotFound(_))), "{get:?}");
}

#[tokio::test(start_paused = true)]
async fn promise_5_index_values_contain_no_values_of_forbidden_namespaces() {
    let rig = Rig::new(&[Some("b")]).await;
    assert_eq!(rig.cache.index_values("by-app").await.unwrap(), ["web"]);
    let rig = Rig::new(&[None]).await;
    assert_eq!(rig.cache.index_values("by-app").await.unwrap(), ["db", "web"]);
}

#[tokio::test(start_paused = true)]
async fn promise_5_reads_fail_while_access_is_unknown_or_forbidden() {
    let rig = Rig::new(&[None]).await;
    *rig.reviewer.down.lock() = true;
    assert!(matches!(rig.list("pods", Namespaces::All, 100, "").await, Err(Error::Unavailable(_))));
    *rig.reviewer.down.lock() = false;
    rig.reviewer.allowed.lock().clear();
    assert!(matches!(rig.list("pods", Namespaces::All, 100, "").await, Err(Error::Forbidden(_))));
}

/// The gate knows accounts by name, so it would allow what the account that has the name now may read.
#[tokio::test(start_paused = true)]
async fn promise_5_no_read_answers_while_the_account_is_missing_or_replaced() {
    let rig = Rig::new(&[None]).await;
    let page = || PageRequest { limit: 100, continue_token: String::new() };
    let names = Projection::Keys;
    let reads = async |lister| {
        let cache = &rig.cache;
        let (object, all) = (key("a", "one"), Namespaces::All);
        [
            ("get", cache.get(lister, &object, &names).await.map(drop)),
            ("list", cache.list(lister, &one("a"), "", &names, &page()).await.map(drop)),
            ("by-index", cache.by_index("by-app", "web", &all, &names, &page()).await.map(drop)),
            ("index-values", cache.index_values("by-app").await.map(drop)),
            ("wait-until-seen", cache.wait_until_seen(lister, "1", Duration::ZERO).await),
        ]
    };
    for (state, answers) in [
        (IdentityState::Present, true),
        (IdentityState::Missing, false),
        (IdentityState::Present, true),
        (IdentityState::Replaced, false),
    ] {
        rig.identity.set(state);
        for lister in ["pods", "ours"] {
            for (read, answer) in reads(lister).await {
                let is_right =
                    if answers { answer.is_ok() } else { matches!(answer, Err(Error::Unavailable(_))) };
                assert!(is_right, "{read} of {lister} while the account is {state:?}: {answer:?}");
            }
        }
    }
}

/// `get` keeps the columns of the last projection.
#[tokio::test(start_paused = true)]
async fn each_get_returns_the_fields_of_its_own_projection() {
    let rig = Rig::new(&[None]).await;
    let fields = async |lister, pointers: &[&str]| {
        let projection = Projection::Fields(pointers.iter().map(|&pointer| pointer.to_owned()).collect());
        rig.cache.get(lister, &key("a", "one"), &projection).await.map(|row| row.fields)
    };
    let (app, name) = (Some("\"web\"".to_owned()), Some("\"one\"".to_owned()));
    let long = format!("/spec/{}", "x".repeat(KEPT_POINTERS_BYTES));
    for lister in ["pods", "ours", "pods"] {
        assert_eq!(fields(lister, &["/metadata/labels/app"]).await, Ok(vec![app.clone()]));
        assert_eq!(fields(lister, &["/metadata/name"]).await, Ok(vec![name.clone()]));
        assert_eq!(
            fields(lister, &["/metadata/name", "/metadata/labels/app"]).await,
            Ok(vec![name.clone(), app.clone()])
        );
        assert_eq!(fields(lister, &[&long, "/metadata/name"]).await, Ok(vec![None, name.clone()]));
        assert_eq!(fields(lister, &["/metadata/labels/app"]).await, Ok(vec![app.clone()]));
        assert!(matches!(fields(lister, &["no-slash"]).await, Err(Error::Invalid(_))));
        assert_eq!(fields(lister, &["/metadata/labels/app"]).await, Ok(vec![app.clone()]));
        let whole = rig.cache.get(lister, &key("a", "one"), &Projection::Json).await.unwrap();
        assert!(whole.fields.is_empty() && whole.json.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn undeclared_reads_and_namespaces_are_errors() {
    let rig = Rig::new(&[None]).await;
    assert!(matches!(rig.list("secrets", Namespaces::All, 100, "").await, Err(Error::NotDeclared(_))));
    assert!(matches!(rig.cache.index_values("by-node").await, Err(Error::NotDeclared(_))));
    assert_eq!(keys(&rig.list("ours", Namespaces::All, 100, "").await.unwrap()), ["a/one", "a/two"]);
    assert!(matches!(rig.list("ours", one("b"), 100, "").await, Err(Error::NotDeclared(_))));
    let get = rig.cache.get("ours", &key("b", "one"), &Projection::Keys).await;
    assert!(matches!(get, Err(Error::NotDeclared(_))), "{get:?}");
}

#[tokio::test(start_paused = true)]
async fn the_pages_of_a_list_have_every_object_exactly_once() {
    let rig = Rig::new(&[None]).await;
    let mut seen = Vec::new();
    let mut token = String::new();
    loop {
        let page = rig.list("pods", Namespaces::All, 2, &token).await.unwrap();
        assert!(page.rows.len() <= 2);
        seen.extend(keys(&page));
        assert!(seen.len() < 100, "the pages do not end: {seen:?}");
        if page.continue_token.is_empty() {
            break;
        }
        token = page.continue_token;
    }
    assert_eq!(seen, ["a/one", "a/two", "b/one", "c/one", "c/three"]);
    assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len());
    assert!(matches!(rig.list("pods", Namespaces::All, 2, "x").await, Err(Error::Invalid(_))));
}

#[tokio::test(start_paused = true)]
async fn lists_use_label_selectors_and_a_malformed_one_is_an_error() {
    let rig = Rig::new(&[None]).await;
    let page = PageRequest { limit: 100, continue_token: String::new() };
    let select = async |selector: &str| {
        rig.cache.list("pods", &Namespaces::All, selector, &Projection::Keys, &page).await
    };
    assert_eq!(keys(&select("app notin (web)").await.unwrap()), ["a/two", "c/three"]);
    assert!(matches!(select("app in (").await, Err(Error::Invalid(_))));
}

#[tokio::test(start_paused = true)]
async fn a_plugin_waits_until_the_cache_has_its_own_write() {
    let rig = Rig::new(&[None]).await;
    let informer = rig.cache.readers["pods"].handle.informer().unwrap();
    let seen = informer.last_resource_version();
    rig.cache.wait_until_seen("pods", &seen, Duration::from_secs(1)).await.unwrap();
    let later = (seen.parse::<u64>().unwrap() + 1).to_string();
    let pods = contract::GroupVersionResource {
        group: String::new(),
        version: "v1".to_owned(),
        plural: "pods".to_owned(),
    };
    rig.cache.own_versions.record(&pods, &later);
    let timeout = rig.cache.wait_until_seen("pods", &later, Duration::from_secs(1)).await;
    assert!(matches!(timeout, Err(Error::Timeout(_))), "{timeout:?}");
    rig.api.put("a/four");
    rig.cache.wait_until_seen("pods", &later, Duration::from_secs(1)).await.unwrap();
    let wrong = rig.cache.wait_until_seen("pods", "soon", Duration::from_secs(1)).await;
    assert!(matches!(wrong, Err(Error::Invalid(_))), "{wrong:?}");
}

#[tokio::test(start_paused = true)]
async fn the_indices_are_removed_with_the_plugin() {
    let rig = Rig::new(&[None]).await;
    rig.cache.build_indices().await;
    let informer = rig.cache.readers["pods"].handle.informer().unwrap();
    let names = ["hello#1/by-app", "hello#1/by-name", "hello#1/by-part"];
    assert_eq!(informer.indexer().index_names(), names);
    drop(rig.cache);
    assert!(informer.indexer().index_names().is_empty());
}

#[test]
fn an_index_over_an_undeclared_read_is_an_error() {
    let reviewer = Arc::new(FakeReviewer::default());
    let gate = Gate::with_reviewer(reviewer.clone(), Arc::new(Known(None)), reviewer);
    let index = Index {
        name: "by-app".to_owned(),
        lister: "pods".to_owned(),
        source: contract::IndexSource::OwnerUid,
    };
    let identity = Identity::unfollowed("a/b".parse().unwrap());
    let made = Cache::new("hello#1", identity, Arc::new(gate), Readers::new(), vec![index]);
    assert!(matches!(made.err(), Some(Error::NotDeclared(_))));
}
