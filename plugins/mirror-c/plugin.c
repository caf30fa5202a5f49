// Keeps ConfigMaps and Secrets as copies in other namespaces: the plugin `mirror`, in C.
//
// Every change of a source, a copy or a namespace leads to the same comparison, with data from the cache: the
// copies that a source should have, and the copies that it has (reconcile.c). So the plugin keeps no state.

#include <string.h>

#include "mirror.h"

// The interval at which a source is reconciled without an event: an object that prevented a copy may be gone.
enum { RESYNC_SECONDS = 300 };

// The delay after which all sources are reconciled for Namespaces that are delivered as initial adds, of
// which many follow each other.
enum { ALL_SOURCES_AFTER_MS = 1000 };

const kind_t KINDS[N_KINDS] = {
    {
        .name = "ConfigMap",
        .target = {"", "v1", "configmaps"},
        .lister = "configmaps",
        .sources = "configmap-sources",
        .copies = "configmap-copies",
        .content = (const char *const[]){"data", "binaryData", NULL},
    },
    {
        .name = "Secret",
        .target = {"", "v1", "secrets"},
        .lister = "secrets",
        .sources = "secret-sources",
        .copies = "secret-copies",
        .content = (const char *const[]){"data", NULL},
    },
};

// === Notifications ===
//
// Each function logs the notification last, so that one that fails and is delivered again is logged once.

static void notified(const char *type, const char *subscription, oarlock_object object, const char *name,
                     const char *value) {
    oarlock_info("notified", "type", type, "subscription", subscription, "namespace", object.ns, "name",
                 object.name, "uid", object.uid, "resource-version", object.resource_version, name, value);
}

static bool is_namespaces(const char *subscription) { return strcmp(subscription, "namespaces") == 0; }

// Reconciles the source of a notification: the object itself, or the source that a copy names.
static oarlock_error changed(const char *subscription, oarlock_object object, oarlock_version which) {
    for (size_t i = 0; i < N_KINDS; i++) {
        if (strcmp(subscription, KINDS[i].sources) == 0) {
            return reconcile_source(&KINDS[i], oarlock_key_of(object));
        }
        if (strcmp(subscription, KINDS[i].copies) != 0) continue;
        const char *json;
        const char *from;
        oarlock_key source;
        OARLOCK_TRY(oarlock_event_field(which, MIRRORED_FROM, &json));
        if (!oarlock_json_string(json, &from) || !parse_source(from, &source)) return oarlock_ok();
        return reconcile_source(&KINDS[i], source);
    }
    return oarlock_ok();
}

// Reconciles all sources, for Namespaces that mirror did not know.
static oarlock_error reconcile_all_sources(void) {
    for (size_t i = 0; i < N_KINDS; i++) {
        const char *const *values;
        OARLOCK_TRY(oarlock_cache_index_values(KINDS[i].sources, &values));
        for (; *values; values++) {
            oarlock_rows rows = oarlock_cache_by_index(KINDS[i].sources, *values, NULL, (oarlock_select){0});
            while (oarlock_next(&rows)) {
                oarlock_scope scope = oarlock_scope_begin();
                OARLOCK_TRY(reconcile_source(&KINDS[i], oarlock_key_of(rows.row.object)));
                oarlock_scope_end(scope);
            }
            if (rows.error.code) return rows.error;
        }
    }
    return oarlock_ok();
}

// Deletes the copies of sources that were deleted while the plugin did not run.
static oarlock_error delete_orphans(void) {
    for (size_t i = 0; i < N_KINDS; i++) {
        const char *const *values;
        OARLOCK_TRY(oarlock_cache_index_values(KINDS[i].copies, &values));
        for (; *values; values++) {
            oarlock_scope scope = oarlock_scope_begin();
            oarlock_key source;
            if (parse_source(*values, &source)) OARLOCK_TRY(reconcile_source(&KINDS[i], source));
            oarlock_scope_end(scope);
        }
    }
    return oarlock_ok();
}

static oarlock_error on_add(const oarlock_added *added) {
    if (!is_namespaces(added->subscription)) {
        OARLOCK_TRY(changed(added->subscription, added->object, OARLOCK_NEW));
    } else if (added->is_in_initial_list) {
        // The account may see Namespaces only now, after it was notified of the sources.
        const oarlock_work_key all_sources = {.kind = "all-sources"};
        OARLOCK_TRY(oarlock_queue_add_after(all_sources, ALL_SOURCES_AFTER_MS));
    } else {
        OARLOCK_TRY(reconcile_all_sources());
    }
    const char *initial = added->is_in_initial_list ? "true" : "false";
    notified("add", added->subscription, added->object, "initial", initial);
    return oarlock_ok();
}

static oarlock_error on_update(const oarlock_updated *updated) {
    if (!is_namespaces(updated->subscription)) {
        // A copy whose annotation a user changed belongs to another source now: both sources are reconciled.
        OARLOCK_TRY(changed(updated->subscription, updated->object, OARLOCK_OLD));
        OARLOCK_TRY(changed(updated->subscription, updated->object, OARLOCK_NEW));
    }
    const char *old = updated->old_resource_version;
    notified("update", updated->subscription, updated->object, "old-resource-version", old);
    return oarlock_ok();
}

static oarlock_error on_delete(const oarlock_deleted *deleted) {
    if (!is_namespaces(deleted->subscription)) {
        OARLOCK_TRY(changed(deleted->subscription, deleted->object, OARLOCK_OLD));
    }
    const char *unknown = deleted->final_state_unknown ? "true" : "false";
    notified("delete", deleted->subscription, deleted->object, "unknown", unknown);
    return oarlock_ok();
}

static oarlock_error on_synced(const oarlock_synced *synced) {
    if (synced->remaining == 0) OARLOCK_TRY(delete_orphans());
    const char *remaining = oarlock_format("%d", (int)synced->remaining);
    oarlock_info("notified", "type", "synced", "subscription", synced->subscription, "remaining", remaining);
    return oarlock_ok();
}

// Its only key stands for all sources.
static oarlock_error reconcile(const oarlock_work_key *key, oarlock_outcome *outcome) {
    (void)key;
    (void)outcome;
    return reconcile_all_sources();
}

// === The description ===

// Refuses a configuration of another form.
static oarlock_error describe(oarlock_plugin *description) {
    (void)description;
    texts_t excluded = {0};
    return excluded_namespaces(&excluded);
}

#define CONFIGMAPS {"", "v1", "configmaps"}
#define SECRETS {"", "v1", "secrets"}
#define NAMESPACES {"", "v1", "namespaces"}

static const oarlock_condition IS_SOURCE[] = {{.pointer = MIRROR_TO, .test = OARLOCK_EXISTS}, {0}};
static const oarlock_condition IS_COPY[] = {{.pointer = MIRRORED_FROM, .test = OARLOCK_EXISTS}, {0}};

static const oarlock_subscription SUBSCRIPTIONS[] = {
    {.name = "configmap-sources",
     .target = CONFIGMAPS,
     .conditions = IS_SOURCE,
     .resync_seconds = RESYNC_SECONDS},
    {.name = "configmap-copies", .target = CONFIGMAPS, .conditions = IS_COPY},
    {.name = "secret-sources", .target = SECRETS, .conditions = IS_SOURCE, .resync_seconds = RESYNC_SECONDS},
    {.name = "secret-copies", .target = SECRETS, .conditions = IS_COPY},
    {.name = "namespaces", .target = NAMESPACES},
    {0},
};

static const oarlock_read READS[] = {
    {.name = "configmaps", .target = CONFIGMAPS},
    {.name = "secrets", .target = SECRETS},
    {.name = "namespaces", .target = NAMESPACES},
    {0},
};

static const oarlock_index INDICES[] = {
    {.name = "configmap-sources", .lister = "configmaps", .pointer = MIRROR_TO},
    {.name = "configmap-copies", .lister = "configmaps", .pointer = MIRRORED_FROM},
    {.name = "secret-sources", .lister = "secrets", .pointer = MIRROR_TO},
    {.name = "secret-copies", .lister = "secrets", .pointer = MIRRORED_FROM},
    {0},
};

static const char *const VERBS[] = {"get", "create", "patch", "delete", NULL};

static const oarlock_request REQUESTS[] = {
    {.target = CONFIGMAPS, .verbs = VERBS},
    {.target = SECRETS, .verbs = VERBS},
    {0},
};

OARLOCK_PLUGIN = {
    .name = "mirror-c",
    .version = "0.1.0",
    .stateless = true,
    .subscriptions = SUBSCRIPTIONS,
    .reads = READS,
    .indices = INDICES,
    .requests = REQUESTS,
    .describe = describe,
    .on_add = on_add,
    .on_update = on_update,
    .on_delete = on_delete,
    .on_synced = on_synced,
    .reconcile = reconcile,
};
