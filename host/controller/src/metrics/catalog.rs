//! Every metric of the host. `docs/reference/metrics.md` is made from this list.
//!
//! A metric that client-go, controller-runtime or Prometheus' client libraries have too has their name and
//! labels; all others begin with `oarlock_`. Labels have few values: names of plugins, subscriptions and
//! resources, and fixed words.

use super::description::{Description, Kind};

/// Declares one constant for each metric, and the list of all of them.
macro_rules! catalog {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(super) const $constant: Description = Description {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// All metrics, in the order of the documentation.
        pub const ALL: &[Description] = &[$($constant),*];
    };
}

catalog! {
    // The process.
    BUILD_INFO: Gauge "oarlock_build_info" ["version", "os", "arch"]
        "Always 1; the labels have the version and platform of the host.";
    CPU: Counter "process_cpu_seconds_total" [] "Total user and system CPU time spent in seconds.";
    START_TIME: Gauge "process_start_time_seconds" [] "Start time of the process since unix epoch in seconds.";
    VIRTUAL_MEMORY: Gauge "process_virtual_memory_bytes" [] "Virtual memory size in bytes.";
    RESIDENT_MEMORY: Gauge "process_resident_memory_bytes" [] "Resident memory size in bytes.";
    THREADS: Gauge "process_threads" [] "Number of OS threads in the process.";
    OPEN_FDS: Gauge "process_open_fds" [] "Number of open file descriptors.";
    MAX_FDS: Gauge "process_max_fds" [] "Maximum number of open file descriptors.";

    // Leader election and requests, as client-go has them.
    LEADER: Gauge "leader_election_master_status" ["name"]
        "1 while this host holds the Lease, 0 while another one does.";
    SLOW_PATH: Counter "leader_election_slowpath_total" ["name"]
        "Renewals of the Lease that had to read it first, since the update without reading it failed.";
    REQUESTS: Counter "rest_client_requests_total" ["code", "method", "host"]
        "Requests to the API server, by status code, method and host. The code of a request without an answer is <error>.";
    REQUEST_DURATION: Histogram "rest_client_request_duration_seconds" ["verb", "host"]
        "Time from a request to the API server to the head of its answer, by method and host.";

    // Work queues and reconcilers, as client-go and controller-runtime have them.
    QUEUE_DEPTH: Gauge "workqueue_depth" ["name", "controller"] "Keys that wait in the plugin's work queue.";
    QUEUE_ADDS: Counter "workqueue_adds_total" ["name", "controller"] "Keys that were added to the plugin's work queue.";
    QUEUE_WAIT: Histogram "workqueue_queue_duration_seconds" ["name", "controller"]
        "Time that keys waited in the plugin's work queue.";
    QUEUE_WORK: Histogram "workqueue_work_duration_seconds" ["name", "controller"]
        "Time from taking a key out of the plugin's work queue to the end of the work on it.";
    QUEUE_UNFINISHED: Gauge "workqueue_unfinished_work_seconds" ["name", "controller"]
        "Time of work on keys that is in progress, of all keys together.";
    QUEUE_LONGEST: Gauge "workqueue_longest_running_processor_seconds" ["name", "controller"]
        "Time of the longest work on a key that is in progress.";
    QUEUE_RETRIES: Counter "workqueue_retries_total" ["name", "controller"]
        "Keys that were added to the plugin's work queue with a delay.";
    RECONCILES: Counter "controller_runtime_reconcile_total" ["controller", "result"]
        "Calls of the plugin's function reconcile, by result: success, requeue_after, error.";
    RECONCILE_ERRORS: Counter "controller_runtime_reconcile_errors_total" ["controller"]
        "Calls of the plugin's function reconcile that failed.";
    RECONCILE_TERMINAL: Counter "controller_runtime_terminal_reconcile_errors_total" ["controller"]
        "Calls of the plugin's function reconcile that failed with a terminal error.";
    RECONCILE_PANICS: Counter "controller_runtime_reconcile_panics_total" ["controller"]
        "Calls of the plugin's function reconcile that ended in a trap of the guest.";
    RECONCILE_TIMEOUTS: Counter "controller_runtime_reconcile_timeouts_total" ["controller"]
        "Calls of the plugin's function reconcile that exceeded the plugin's deadline.";
    RECONCILE_TIME: Histogram "controller_runtime_reconcile_time_seconds" ["controller"]
        "Duration of the calls of the plugin's function reconcile that returned.";
    MAX_RECONCILES: Gauge "controller_runtime_max_concurrent_reconciles" ["controller"]
        "Calls of the plugin that may run at the same time.";
    ACTIVE_WORKERS: Gauge "controller_runtime_active_workers" ["controller"]
        "Calls of the plugin that run now.";

    // The state of plugins.
    PLUGIN_UP: Gauge "oarlock_plugin_up" ["plugin"] "1 while the plugin serves, otherwise 0.";
    PLUGIN_REFUSED: Gauge "oarlock_plugin_refused" ["plugin"]
        "1 while the host refuses the newest version of the plugin, otherwise 0.";
    OBJECT_UNRESOLVED: Gauge "oarlock_plugin_object_unresolved" ["plugin", "reason"]
        "1 while the newest spec of the Plugin or ClusterPlugin, or what its tag names now, is not used, for the reason that its conditions have; otherwise 0.";
    PLUGIN_GENERATION: Gauge "oarlock_plugin_generation" ["plugin"]
        "Number of the plugin's generation that serves, 0 while none does.";
    PLUGIN_STATE: Gauge "oarlock_plugin_generation_state" ["plugin", "state"]
        "1 for the state of the plugin's newest generation, 0 for the other states.";
    PLUGIN_TRANSITIONS: Counter "oarlock_plugin_generation_transitions_total" ["plugin", "state"]
        "Transitions of the plugin's generations into a state.";
    PLUGIN_COMPILE: Histogram "oarlock_plugin_compile_duration_seconds" ["plugin"]
        "Time to compile the plugin's component, or to find its compiled code.";
    PLUGIN_DESCRIBE: Counter "oarlock_plugin_describe_seconds_total" ["plugin"]
        "CPU time of the plugin's function describe.";
    PLUGIN_PANICS: Counter "oarlock_plugin_host_panics_total" ["plugin"]
        "Panics of the host in tasks that serve the plugin. Each is a bug of the host.";

    // The calls of plugins.
    CALLS: Counter "oarlock_plugin_calls_total" ["plugin", "function", "outcome"]
        "Calls of the plugin, by function and outcome.";
    CALL_DURATION: Histogram "oarlock_plugin_call_duration_seconds" ["plugin", "function"]
        "Duration of the plugin's calls, by function.";
    NOTIFICATION_WAIT: Histogram "oarlock_plugin_notification_wait_seconds" ["plugin"]
        "Time that notifications waited for their first call.";
    INSTANCES_LOST: Counter "oarlock_plugin_instances_lost_total" ["plugin", "reason"]
        "Instances of the plugin that were lost, by reason: trap, deadline, a limit.";
    RESTARTS: Counter "oarlock_plugin_restarts_total" ["plugin"]
        "Restarts of the plugin: a fresh instance replaced a lost one, or several that were lost together.";
    BACKLOG: Gauge "oarlock_plugin_backlog" ["plugin", "subscription"]
        "Notifications that wait in the backlog of a subscription.";
    BACKLOG_OLDEST: Gauge "oarlock_plugin_backlog_oldest_seconds" ["plugin", "subscription"]
        "Age of the oldest notification in the backlog of a subscription.";
    PARKED: Gauge "oarlock_plugin_parked" ["plugin", "subscription"] "Objects of a subscription that are parked.";
    FORBIDDEN: Gauge "oarlock_plugin_subscription_forbidden" ["plugin", "subscription"]
        "1 while the plugin's account may not watch the resource of a subscription, otherwise 0.";
    PAUSED: Gauge "oarlock_plugin_subscription_paused" ["plugin", "subscription"]
        "1 while a subscription delivers nothing, because the API server does not answer whether the plugin's account may watch its resource, otherwise 0.";
    QUEUE_OLDEST: Gauge "oarlock_plugin_work_queue_oldest_seconds" ["plugin"]
        "Age of the oldest key in the plugin's work queue that waits and is ready.";
    QUEUE_DELAYED: Gauge "oarlock_plugin_work_queue_delayed" ["plugin"]
        "Keys of the plugin's work queue that wait for a time.";
    QUEUE_PARKED: Gauge "oarlock_plugin_work_queue_parked" ["plugin"]
        "Keys of the plugin's work queue that are parked.";
    WAKES_BY_ANY: Gauge "oarlock_plugin_wakes_by_any_change" ["plugin"]
        "Keys that read too much through a lister that wakes, so that each of its changes queues them.";
    SHADOW_WRITES: Counter "oarlock_plugin_shadow_writes_total" ["plugin", "result"]
        "Writes that were compared with those of the plugin's shadow.";

    // What plugins use.
    PLUGIN_CPU: Counter "oarlock_plugin_cpu_seconds_total" ["plugin", "in"]
        "CPU time for the plugin's calls: in the guest, and in the host's imports for it.";
    CALL_WALL: Counter "oarlock_plugin_call_wall_seconds_total" ["plugin"]
        "Time from the begin of the plugin's calls to their end.";
    IMPORT_WAIT: Counter "oarlock_plugin_import_wait_seconds_total" ["plugin"]
        "Time in which the plugin's calls waited for an import, such as a write.";
    COPIED: Counter "oarlock_plugin_copied_bytes_total" ["plugin", "direction"]
        "Bytes copied between the host and the plugin's memory: to-guest and from-guest.";
    CACHE_READS: Counter "oarlock_plugin_cache_reads_total" ["plugin"] "Reads of the cache by the plugin.";
    PLUGIN_REQUESTS: Counter "oarlock_plugin_requests_total" ["plugin"]
        "Requests of the plugin to the API server, reads and writes.";
    WRITES: Counter "oarlock_plugin_writes_total" ["plugin", "verb", "code"]
        "Writes of the plugin, Events included, by verb and status code.";
    INSTANCES: Gauge "oarlock_plugin_instances" ["plugin"] "Instances of the plugin that exist.";
    INSTANCES_MADE: Counter "oarlock_plugin_instances_made_total" ["plugin"]
        "Instances of the plugin that were made.";
    MEMORY: Gauge "oarlock_plugin_linear_memory_bytes" ["plugin"] "Linear memory of the plugin's instances.";
    MEMORY_PEAK: Gauge "oarlock_plugin_linear_memory_peak_bytes" ["plugin"]
        "Largest linear memory of the plugin's instances together so far.";
    HOST_BYTES: Gauge "oarlock_plugin_host_bytes" ["plugin", "for"]
        "Bytes that the host keeps for the plugin, by use.";
    HOST_BYTES_LIMIT: Gauge "oarlock_plugin_host_bytes_limit" ["plugin"]
        "Limit of the bytes that the host keeps for the plugin.";
    HOST_BYTES_REFUSED: Counter "oarlock_plugin_host_bytes_refused_total" ["plugin"]
        "Charges of the plugin that were refused because of that limit.";

    // Caches and watches.
    CACHE_OBJECTS: Gauge "oarlock_cache_objects" ["resource"] "Objects in the cache of the resource.";
    CACHE_BYTES: Gauge "oarlock_cache_bytes" ["resource", "part"]
        "Memory of the cache, by part: plain texts, compressed texts, indices, dictionaries.";
    CACHE_TEXT: Gauge "oarlock_cache_text_bytes" ["resource"]
        "Length of the cached objects as JSON, before compression.";
    CACHE_CONTENT: Gauge "oarlock_cache_content" ["resource", "content"]
        "Always 1; the label says whether the cache holds full objects or metadata.";
    CACHE_LEFT_OUT: Gauge "oarlock_cache_index_left_out" ["resource", "index"]
        "Objects that an index left out because of its limits. Reads of their namespaces fail with limit-exceeded.";
    CACHE_HANDLES: Gauge "oarlock_cache_handles" ["resource"]
        "Subscriptions and declared reads that use the cache.";
    CACHE_OVER_BUDGET: Gauge "oarlock_cache_over_budget" ["resource"]
        "1 while the budget has no room for the objects that plugins want, otherwise 0.";
    CACHE_UNDECODABLE: Gauge "oarlock_cache_undecodable_objects" ["resource"]
        "Objects that cannot be decoded. The cache keeps the last state of each that could be.";
    WATCH_UP: Gauge "oarlock_watch_up" ["resource"]
        "1 while the informer is synced and its watch works, otherwise 0.";
    WATCH_TROUBLE: Gauge "oarlock_watch_trouble_seconds" ["resource"]
        "Time since the watch began to fail, 0 while it works.";
    WATCH_SIGN: Gauge "oarlock_watch_last_sign_of_life_seconds" ["resource"]
        "Time since the last event, bookmark or list.";
    WATCH_RELISTS: Counter "oarlock_watch_relists_total" ["resource"] "Lists after the first one.";
    WATCH_STARTS: Counter "oarlock_watch_starts_total" ["resource"] "Watches that were started.";
    WATCH_UNDECODABLE: Counter "oarlock_watch_undecodable_events_total" ["resource"]
        "Watch events whose object could not be decoded.";
    BUDGET_INFORMERS: Gauge "oarlock_budget_used_informers" [] "Informers in use.";
    BUDGET_INFORMERS_LIMIT: Gauge "oarlock_budget_limit_informers" [] "Informers that the budget allows.";
    BUDGET_OBJECTS: Gauge "oarlock_budget_used_objects" [] "Objects in all caches.";
    BUDGET_OBJECTS_LIMIT: Gauge "oarlock_budget_limit_objects" []
        "Objects that the budget allows in all caches.";
    BUDGET_BYTES: Gauge "oarlock_budget_used_bytes" [] "Memory of all caches.";
    BUDGET_BYTES_LIMIT: Gauge "oarlock_budget_limit_bytes" [] "Memory that the budget allows for all caches.";
    BUDGET_REFUSALS: Counter "oarlock_budget_refusals_total" []
        "Subscriptions and lists that were refused because the budget had no room.";

    // The host's own output and pages.
    TRACE_SPANS_DROPPED: Counter "oarlock_trace_spans_dropped_total" []
        "Spans of traces that were not exported, because the collector failed or was slow.";
    REPORTS_DROPPED: Counter "oarlock_reports_dropped_total" []
        "Lines of output that were dropped because standard output was read too slowly or closed.";
    REPORTS_WAITING: Gauge "oarlock_reports_waiting_bytes" [] "Bytes of the lines that wait to be printed.";
}
