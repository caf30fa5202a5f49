//! The real page, checked with strict parsers and the rules of promtool.

mod lint;
mod strict;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use http::{Method, StatusCode};
use oarlock_informer::list_watch::transport::RequestMetrics;
use oarlock_informer::toolkit::workqueue::WorkQueueMetrics;
use oarlock_informer::{
    GroupVersionResource,
    list_watch::ListWatch,
    object::{Content, TypeMeta},
};
use oarlock_plugin::contract::Entry;
use oarlock_plugin::guest::metrics::{Kind, shown};
use oarlock_plugin::guest::text::is_escaped;
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::generations::{GenerationState, Generations, Purpose};
use crate::informers::{Limits, ResourceSource};
use crate::report;
use crate::status::{BacklogStats, PluginStatus, QueueStats, ReadBacklog, SubscriptionStatus};
use crate::tasks::Tasks;
use crate::traces::Traces;

struct NoSource;

#[async_trait]
impl ResourceSource for NoSource {
    async fn type_of(&self, _: &GroupVersionResource) -> Result<Option<TypeMeta>, String> {
        Ok(None)
    }

    fn list_watch(&self, _: &GroupVersionResource, _: &TypeMeta, _: Content) -> Arc<dyn ListWatch> {
        unreachable!("nothing is served")
    }
}

const OPEN: Exposition = Exposition::OpenMetrics("1.0.0");

fn metrics() -> (Metrics, StatusRegistry) {
    let (tasks, _) = Tasks::new(CancellationToken::new());
    let (reporter, _) = report::channel(report::Config::default());
    let informers = Informers::new(tasks, reporter.clone(), Arc::new(NoSource), Limits::default());
    let statuses = StatusRegistry::default();
    let requests = ClientMetrics::new("https://api:6443");
    for code in [Some(StatusCode::OK), None] {
        requests.answered(&Method::GET, code, Duration::from_millis(2));
    }
    (Metrics::new(statuses.clone(), informers, reporter, requests, Traces::default()), statuses)
}

/// Returns metrics in which every family has a series, except those that need a watch.
fn busy() -> Metrics {
    let (metrics, statuses) = metrics();
    let plugin: Arc<str> = "p".into();
    statuses.register(PluginStatus::loading(plugin.clone(), "p.yaml".into(), "p.wasm".into(), "ns/p".into()));
    let queue = QueueStats { ready: 2, oldest_ms: 1_500, lanes: 3, ..QueueStats::default() };
    let status = statuses.handle("p").unwrap();
    status.set_subscriptions(Vec::new(), Some(Arc::new(move || queue.clone())));
    let calls = metrics.plugin(&plugin);
    calls.called("on-add", "done", Duration::from_millis(1));
    calls.waited(Duration::from_millis(3));
    WorkQueueMetrics::waited(&*calls, Duration::from_secs(4000));
    calls.lost("reconcile", "trap");
    calls.restarted();
    metrics.compiled(&plugin, Duration::from_secs(137));
    metrics.leads("lease", true);
    metrics.slow_path("lease");
    metrics.object("p", None);
    let writes = metrics.writes(&plugin);
    writes.count(&Method::PATCH, "application/apply-patch+yaml", Some(StatusCode::CONFLICT));
    writes.count(&Method::PATCH, "application/merge-patch+json", Some(StatusCode::OK));
    writes.count(&Method::POST, "application/json", None);
    writes.count(&Method::GET, "application/json", Some(StatusCode::OK));
    metrics
}

#[tokio::test]
async fn the_page_follows_the_rules_of_promtool() {
    let page = busy().page(Exposition::Text).unwrap().into_text();
    let families = strict::text(&page).unwrap_or_else(|error| panic!("{error}:\n{page}"));
    let problems: Vec<_> = families.iter().flat_map(lint::problems).collect();
    assert!(problems.is_empty(), "{problems:#?}");
}

#[tokio::test]
async fn every_family_of_the_page_is_in_the_catalog_with_its_type_labels_and_help() {
    let metrics = busy();
    metrics.panicked(&"p".into());
    metrics.described(&"p".into(), Duration::from_secs(1));
    let families = strict::text(&metrics.page(Exposition::Text).unwrap().into_text()).unwrap();
    for family in &families {
        let described = ALL.iter().find(|it| it.name == family.name);
        let Description { name, kind, labels, help } =
            described.unwrap_or_else(|| panic!("{} is not in the catalog", family.name));
        let kind = match kind {
            description::Kind::Counter => "counter",
            description::Kind::Gauge => "gauge",
            description::Kind::Histogram => "histogram",
        };
        assert_eq!((&*family.kind, &*family.help), (kind, *help), "{name}");
        for sample in &family.samples {
            let of_sample: BTreeSet<_> =
                sample.labels.keys().map(String::as_str).filter(|it| *it != "le").collect();
            assert_eq!(of_sample, labels.iter().copied().collect(), "{name}");
        }
    }
    // The others need an informer or a subscription, which this host does not have.
    let shown: BTreeSet<_> = families.iter().map(|family| &*family.name).collect();
    let absent: Vec<_> = ALL.iter().map(|it| it.name).filter(|name| !shown.contains(name)).collect();
    let needs_more = |name: &&str| {
        ["oarlock_cache_", "oarlock_watch_"].iter().any(|it| name.starts_with(it))
            || [
                "backlog",
                "backlog_oldest_seconds",
                "parked",
                "subscription_forbidden",
                "subscription_paused",
                "shadow_writes_total",
            ]
            .iter()
            .any(|it| **name == format!("oarlock_plugin_{it}"))
    };
    assert!(absent.iter().all(needs_more), "{absent:?}");
    let names: BTreeSet<_> = ALL.iter().map(|it| it.name).collect();
    assert_eq!(names.len(), ALL.len(), "a name is used twice");
}

#[tokio::test]
async fn a_subscription_that_delivers_nothing_has_a_series_that_says_why() {
    let (metrics, statuses) = metrics();
    statuses.register(PluginStatus::loading("p".into(), "p.yaml".into(), "p.wasm".into(), "ns/p".into()));
    let subscription = |name: &str, forbidden: Option<&str>, paused: Option<&str>| SubscriptionStatus {
        name: name.to_owned(),
        resource: "v1/pods".to_owned(),
        namespaces: None,
        forbidden: forbidden.map(str::to_owned),
        paused: paused.map(str::to_owned),
        synced: true,
        backlog: BacklogStats::default(),
    };
    let backlog = || -> ReadBacklog { Arc::new(BacklogStats::default) };
    let subscriptions =
        [("open", None, None), ("no", Some("no"), None), ("unknown", None, Some("no answer"))];
    let subscriptions = subscriptions.map(|(name, no, why)| (subscription(name, no, why), backlog()));
    statuses.handle("p").unwrap().set_subscriptions(subscriptions.into(), None);
    let page = metrics.page(Exposition::Text).unwrap().into_text();
    let series = page.lines().filter(|it| it.starts_with("oarlock_plugin_subscription_"));
    insta::assert_snapshot!(series.collect::<Vec<_>>().join("\n"), @r#"
    oarlock_plugin_subscription_forbidden{plugin="p",subscription="open"} 0.0
    oarlock_plugin_subscription_forbidden{plugin="p",subscription="no"} 1.0
    oarlock_plugin_subscription_forbidden{plugin="p",subscription="unknown"} 0.0
    oarlock_plugin_subscription_paused{plugin="p",subscription="open"} 0.0
    oarlock_plugin_subscription_paused{plugin="p",subscription="no"} 0.0
    oarlock_plugin_subscription_paused{plugin="p",subscription="unknown"} 1.0
    "#);
}

#[test]
fn each_rule_of_promtool_finds_a_page_that_breaks_it() {
    for (family, problem) in [
        ("# HELP a b\n# TYPE a gauge\na 1\n", "full stop"),
        ("# HELP a_total B.\n# TYPE a_total gauge\na_total 1\n", "_total"),
        ("# HELP a B.\n# TYPE a counter\na 1\n", "_total"),
        ("# HELP a_gauge B.\n# TYPE a_gauge gauge\na_gauge 1\n", "type"),
        ("# HELP a_ms B.\n# TYPE a_ms gauge\na_ms 1\n", "abbreviat"),
        ("# HELP a_milliseconds B.\n# TYPE a_milliseconds gauge\na_milliseconds 1\n", "base unit"),
        ("# HELP a_minutes B.\n# TYPE a_minutes gauge\na_minutes 1\n", "base unit"),
        ("# HELP a_count B.\n# TYPE a_count gauge\na_count 1\n", "_count"),
        ("# HELP aB B.\n# TYPE aB gauge\naB 1\n", "camelCase"),
        ("# HELP a B.\n# TYPE a gauge\na{le=\"1\"} 1\n", "le"),
    ] {
        let families = strict::text(family).unwrap_or_else(|error| panic!("{error}: {family}"));
        let problems: Vec<_> = families.iter().flat_map(lint::problems).collect();
        assert!(problems.iter().any(|it| it.contains(problem)), "{family}: {problems:?}");
    }
}

#[tokio::test]
async fn both_formats_have_the_same_samples_until_the_plugin_is_forgotten() {
    let metrics = busy();
    let page = metrics.page(Exposition::Text).unwrap().into_text();
    let open = metrics.page(OPEN).unwrap().into_text();
    let n_samples = |page: Result<Vec<strict::Family>, String>| {
        page.unwrap().iter().map(|family| family.samples.len()).sum::<usize>()
    };
    assert_eq!(n_samples(strict::text(&page)), n_samples(strict::open(&open)));
    for series in [
        r#"oarlock_plugin_call_duration_seconds_count{plugin="p",function="on-add"} 1"#,
        r#"oarlock_plugin_notification_wait_seconds_count{plugin="p"} 1"#,
        r#"workqueue_queue_duration_seconds_count{name="p",controller="p"} 1"#,
        r#"workqueue_depth{name="p",controller="p"} 2"#,
        r#"oarlock_plugin_work_queue_oldest_seconds{plugin="p"} 1.5"#,
        r#"controller_runtime_reconcile_total{controller="p",result="error"} 1"#,
        r#"controller_runtime_reconcile_panics_total{controller="p"} 1"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="p"} 3"#,
        r#"leader_election_master_status{name="lease"} 1"#,
        r#"leader_election_slowpath_total{name="lease"} 1"#,
        r#"rest_client_requests_total{code="200",method="GET",host="api:6443"} 1"#,
        r#"rest_client_requests_total{code="<error>",method="GET",host="api:6443"} 1"#,
        r#"rest_client_request_duration_seconds_count{verb="GET",host="api:6443"} 2"#,
        r#"oarlock_plugin_compile_duration_seconds_sum{plugin="p"} 137.0"#,
        r#"oarlock_plugin_restarts_total{plugin="p"} 1.0"#,
        r#"oarlock_plugin_writes_total{plugin="p",verb="apply",code="409"} 1"#,
        r#"oarlock_plugin_writes_total{plugin="p",verb="patch",code="200"} 1"#,
        r#"oarlock_plugin_writes_total{plugin="p",verb="create",code="<error>"} 1"#,
        "oarlock_build_info{version=",
        "oarlock_budget_limit_bytes ",
    ] {
        assert!(page.contains(series) && open.contains(series), "{series} is not in\n{page}");
    }
    assert!(!page.contains("verb=\"get\""), "a read is not a write");
    #[cfg(target_os = "linux")]
    for series in ["process_cpu_seconds_total ", "process_resident_memory_bytes ", "process_open_fds "] {
        assert!(page.contains(series), "{series} is not in\n{page}");
    }
    metrics.forget(&"p".into());
    let page = metrics.page(Exposition::Text).unwrap().into_text();
    for gone in [
        "writes_total{",
        "restarts_total{",
        "compile_duration_seconds_count{",
        "wait_seconds_count{",
        "workqueue_queue_duration_seconds_count{",
        "controller_runtime_reconcile_total{",
    ] {
        assert!(!page.contains(gone), "{gone} is still in\n{page}");
    }
}

#[tokio::test]
async fn a_plugin_is_in_the_state_of_its_newest_generation_and_all_transitions_are_counted() {
    let (metrics, statuses) = metrics();
    statuses.register(PluginStatus::loading("p".into(), "p.yaml".into(), "p.wasm".into(), "ns/p".into()));
    let (reporter, _reports) = report::channel(report::Config::default());
    let generations = Generations::new("p".into(), reporter);
    statuses.handle("p").unwrap().set_generations(generations.clone());
    let series = || {
        let page = metrics.page(Exposition::Text).unwrap().into_text();
        let is_it = |line: &&str| line.starts_with("oarlock_plugin_generation_") && !line.ends_with("} 0.0");
        page.lines().filter(is_it).map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    let first = generations.begin(Purpose::Newest);
    first.compiled("sha256:1".into());
    first.checked("1.0.0".into());
    first.warming();
    first.serving();
    insta::assert_snapshot!(series(), @r#"
    oarlock_plugin_generation_state{plugin="p",state="serving"} 1.0
    oarlock_plugin_generation_transitions_total{plugin="p",state="fetched"} 1.0
    oarlock_plugin_generation_transitions_total{plugin="p",state="compiled"} 1.0
    oarlock_plugin_generation_transitions_total{plugin="p",state="checked"} 1.0
    oarlock_plugin_generation_transitions_total{plugin="p",state="warming"} 1.0
    oarlock_plugin_generation_transitions_total{plugin="p",state="serving"} 1.0
    "#);
    generations.fail(GenerationState::Failed, "it is no component");
    insta::assert_snapshot!(series(), @r#"
    oarlock_plugin_generation_state{plugin="p",state="failed"} 1.0
    oarlock_plugin_generation_transitions_total{plugin="p",state="fetched"} 1.0
    oarlock_plugin_generation_transitions_total{plugin="p",state="compiled"} 1.0
    oarlock_plugin_generation_transitions_total{plugin="p",state="checked"} 1.0
    oarlock_plugin_generation_transitions_total{plugin="p",state="warming"} 1.0
    oarlock_plugin_generation_transitions_total{plugin="p",state="serving"} 1.0
    oarlock_plugin_generation_transitions_total{plugin="p",state="failed"} 1.0
    "#);
}

#[tokio::test]
async fn an_object_has_one_series_until_it_is_deleted() {
    let (metrics, _) = metrics();
    let series = || {
        let page = metrics.page(Exposition::Text).unwrap().into_text();
        let lines = page.lines().filter(|line| line.starts_with("oarlock_plugin_object_unresolved{"));
        lines.map(str::to_owned).collect::<Vec<_>>().join("\n")
    };
    metrics.object("team-a.hello", Some("NamespaceNotOptedIn"));
    metrics.object("mirror", None);
    insta::assert_snapshot!(series(), @r#"
    oarlock_plugin_object_unresolved{plugin="mirror",reason="AsExpected"} 0.0
    oarlock_plugin_object_unresolved{plugin="team-a.hello",reason="NamespaceNotOptedIn"} 1.0
    "#);
    metrics.object("team-a.hello", None);
    metrics.forget_object("mirror");
    // A plugin that is unloaded still has its object.
    metrics.forget(&"team-a.hello".into());
    insta::assert_snapshot!(series(), @r#"oarlock_plugin_object_unresolved{plugin="team-a.hello",reason="AsExpected"} 0.0"#);
}

/// Names that conflict in one format or the other.
const NAMES: [&str; 14] = [
    "x",
    "x_total",
    "x_total_total",
    "x_created",
    "x_created_total",
    "x_bucket",
    "x_sum",
    "x_count",
    "x_info",
    "x_gauge",
    "_",
    "_total",
    "total",
    "X",
];

/// One call of a guest that changes a series.
#[derive(Clone, Debug)]
struct Used {
    plugin: usize,
    kind: Kind,
    name: &'static str,
    labels: Vec<(&'static str, String)>,
    value: f64,
}

fn used() -> impl Strategy<Value = Used> {
    let label = prop_oneof![Just("a"), Just("b"), Just("le"), Just("quantile"), Just("code"), Just("_")];
    let text = prop_oneof![any::<String>(), Just("\"} 1\n# EOF\n".to_owned()), Just("\\".to_owned()), "[ab]"];
    let labels = prop::collection::vec((label, text), 0..3);
    let value = prop_oneof![prop::num::f64::ANY, Just(1.0), Just(f64::INFINITY), Just(f64::NAN)];
    let kind = prop_oneof![Just(Kind::Counter), Just(Kind::Gauge)];
    (0..3_usize, kind, prop::sample::select(&NAMES[..]), labels, value)
        .prop_map(|(plugin, kind, name, labels, value)| Used { plugin, kind, name, labels, value })
}

proptest! {
    #[test]
    fn no_names_and_labels_of_guests_make_the_page_invalid(calls in prop::collection::vec(used(), 1..24)) {
        let (metrics, _) = metrics();
        // The value of each series, by the calls that succeeded.
        let mut model: BTreeMap<(String, BTreeMap<String, String>), f64> = BTreeMap::new();
        for Used { plugin, kind, name, labels, value } in calls {
            let plugin = format!("p{plugin}");
            let guest = metrics.guest(&plugin.as_str().into(), &HostBytes::default());
            let entries: Vec<_> = labels
                .iter()
                .map(|(name, value)| Entry { name: (*name).to_owned(), value: value.clone() })
                .collect();
            let done = match kind {
                Kind::Counter => guest.counter_add(name, value, entries),
                Kind::Gauge => guest.gauge_set(name, value, entries),
            };
            if done.is_ok() {
                let name = match kind {
                    Kind::Counter => format!("{}_total", name.strip_suffix("_total").unwrap_or(name)),
                    Kind::Gauge => name.to_owned(),
                };
                let mut all: BTreeMap<_, _> =
                    labels.into_iter().map(|(name, value)| (name.to_owned(), shown(&value).into_owned())).collect();
                all.insert("plugin".to_owned(), plugin);
                let now = model.entry((format!("oarlock_guest_{name}"), all)).or_default();
                *now = if kind == Kind::Counter { *now + value } else { value };
            }
        }
        for exposition in [Exposition::Text, OPEN] {
            let page = metrics.page(exposition).unwrap().into_text();
            prop_assert!(!page.contains(|it| it != '\n' && is_escaped(it)), "{:?}", page);
            let families = match exposition {
                Exposition::Text => strict::text(&page),
                Exposition::OpenMetrics(_) => strict::open(&page),
            };
            let families = families.unwrap_or_else(|error| panic!("{exposition:?}: {error}:\n{page}"));
            let shown: BTreeMap<_, _> = families
                .into_iter()
                .flat_map(|family| family.samples)
                .filter(|sample| sample.name.starts_with("oarlock_guest_"))
                .map(|sample| ((sample.name, sample.labels), sample.value))
                .collect();
            prop_assert_eq!(shown.keys().collect::<Vec<_>>(), model.keys().collect::<Vec<_>>());
            for (series, value) in &model {
                let shown = shown[series];
                prop_assert!(shown == *value || shown.is_nan() && value.is_nan(), "{:?}: {} for {}", series, shown, value);
            }
        }
    }
}

/// How much of a page is about one plugin, beside what its series are charged: the host's own series, and
/// what is around each series.
const PLUGIN: usize = 256 << 10;

#[tokio::test]
async fn promise_4_the_length_of_a_page_is_bounded_by_what_series_are_charged() {
    let (metrics, _) = metrics();
    let empty = metrics.page(Exposition::Text).unwrap().bytes();
    let mut charged = 0;
    for name in ["a", "b"] {
        let account = HostBytes::default();
        let plugin: Arc<str> = format!("{name}{}.{}", "n".repeat(62), "p".repeat(253)).into();
        let guest = metrics.guest(&plugin, &account);
        for n in 0..256 {
            // The longest names, and characters that are escaped or not.
            let name = format!("{n:0>128}").replace('0', "m");
            let value = ["\u{1}", "\\", "\"", "x"][n % 4].repeat(256);
            let label = |l: usize| Entry { name: format!("{}{l}", "l".repeat(127)), value: value.clone() };
            let _ = guest.gauge_set(&name, f64::MIN_POSITIVE, (0..8).map(label).collect());
        }
        charged += account.view().metrics as usize;
        assert!(account.view().metrics > 1_900_000, "{}", account.view().metrics);
    }
    for exposition in [Exposition::Text, OPEN] {
        let page = metrics.page(exposition).unwrap();
        let bytes = page.bytes();
        assert!(bytes <= empty + charged + 2 * PLUGIN, "{bytes} bytes, {charged} charged");
        assert!(page.into_text().matches("\noarlock_guest_m").count() > 300);
    }
}

#[tokio::test]
async fn a_counter_and_a_gauge_of_two_plugins_with_one_name_keep_their_names() {
    let (metrics, _) = metrics();
    metrics.guest(&"one".into(), &HostBytes::default()).counter_add("x", 1.0, Vec::new()).unwrap();
    for gauge in ["x", "x_total"] {
        metrics.guest(&"other".into(), &HostBytes::default()).gauge_set(gauge, 2.0, Vec::new()).unwrap();
    }
    for exposition in [Exposition::Text, OPEN] {
        let page = metrics.page(exposition).unwrap().into_text();
        for series in [
            r#"oarlock_guest_x_total{plugin="one"} 1.0"#,
            r#"oarlock_guest_x{plugin="other"} 2.0"#,
            r#"oarlock_guest_x_total{plugin="other"} 2.0"#,
        ] {
            assert!(page.contains(series), "{series} is not in\n{page}");
        }
    }
}
