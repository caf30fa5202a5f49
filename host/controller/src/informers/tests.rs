use std::sync::Arc;

use async_trait::async_trait;
use oarlock_informer::testing::FakeListWatch;
use oarlock_informer::{GroupVersionResource, ListWatch, ListenerConfig, TypeMeta};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::{Informers, Purpose, ResourceSource};
use crate::report::{self, Event, Reports};
use crate::tasks::Tasks;

#[derive(Clone)]
struct FakeSource {
    api: FakeListWatch,
    is_served: Arc<Mutex<bool>>,
}

#[async_trait]
impl ResourceSource for FakeSource {
    async fn type_of(&self, _: &GroupVersionResource) -> Result<Option<TypeMeta>, String> {
        Ok(self.is_served.lock().then(|| TypeMeta::new("v1", "Pod")))
    }

    fn list_watch(&self, _: &GroupVersionResource, _: &TypeMeta) -> Arc<dyn ListWatch> {
        Arc::new(self.api.clone())
    }
}

fn rig(is_served: bool) -> (Informers, FakeSource, Reports, Tasks) {
    let (tasks, _) = Tasks::new(CancellationToken::new());
    let (reporter, reports) = report::channel(report::Config::default());
    let source = FakeSource { api: FakeListWatch::pods(), is_served: Arc::new(Mutex::new(is_served)) };
    (Informers::new(tasks.clone(), reporter, Arc::new(source.clone())), source, reports, tasks)
}

fn pods() -> GroupVersionResource {
    GroupVersionResource::new("", "v1", "pods")
}

fn plugin(name: &str) -> Purpose {
    Purpose::Plugin(name.into())
}

#[tokio::test(start_paused = true)]
async fn promise_1_one_watch_however_many_want_it() {
    let (informers, source, _reports, tasks) = rig(true);
    source.api.put("n/a");
    let leases: Vec<_> = ["p", "q", "r"].iter().map(|name| informers.lease(&pods(), plugin(name))).collect();
    for lease in &leases {
        let informer = lease.synced().await;
        let _listener = informer.add_listener(ListenerConfig::default()).unwrap();
    }
    source.api.until_watches(1).await;
    assert_eq!(
        (source.api.lists().len(), source.api.watches().len()),
        (0, 1),
        "one watch, which began with all there is"
    );
    assert_eq!(informers.views()[0].wanted_by, ["p", "q", "r"]);
    drop(leases);
    assert!(informers.views().is_empty());
    while !tasks.names().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(source.api.n_open_watches(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_not_served_is_looked_for_until_it_is() {
    let (informers, source, mut reports, _tasks) = rig(false);
    let lease = informers.lease(&pods(), plugin("p"));
    let absent = reports.next().await.unwrap().event;
    assert!(matches!(absent, Event::ResourceAbsent { wanted_by, .. } if wanted_by == ["p"]));
    assert_eq!(lease.waits_for().unwrap(), "v1/pods, which the API server does not serve (yet)");
    assert_eq!(informers.views()[0].phase, "absent");
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    *source.is_served.lock() = true;
    lease.synced().await;
    // An hour without it was worth one line.
    assert!(matches!(reports.next().await.unwrap().event, Event::ResourceServed { .. }));
    assert_eq!(lease.waits_for(), None);
}
