// Tests of the calls: those of the plugin to the host, and those of the host to a plugin.

#include <stdlib.h>
#include <string.h>

#include "../src/exports.h"
#include "oarlock_testing.h"
#include "tests.h"

static const oarlock_gvr PODS = {"", "v1", "pods"};
static const oarlock_key WEB = {"home", "web"};

// What `on_add` returns, and what it saw.
static oarlock_error answer;
static int n_starts;
static bool sees_initial;

static oarlock_error start(void) {
    n_starts++;
    return n_starts == 1 ? oarlock_retry("not yet") : oarlock_ok();
}

static oarlock_error on_add(const oarlock_added *added) {
    OARLOCK_CHECK_TEXT(added->subscription, "pods");
    OARLOCK_CHECK_TEXT(added->object.ns, "home");
    OARLOCK_CHECK_TEXT(added->object.name, "web");
    OARLOCK_CHECK_TEXT(added->object.uid, "uid-1");
    OARLOCK_CHECK(added->n_fields == 2);
    OARLOCK_CHECK_TEXT(added->fields[0], "{\"nodeName\":\"n1\"}");
    OARLOCK_CHECK_TEXT(added->fields[1], NULL);
    OARLOCK_CHECK(added->is_in_initial_list == sees_initial);
    return answer;
}

static oarlock_error on_update(const oarlock_updated *updated) {
    OARLOCK_CHECK_TEXT(updated->old_uid, NULL);
    OARLOCK_CHECK_TEXT(updated->old_resource_version, "1");
    OARLOCK_CHECK_TEXT(updated->object.resource_version, "2");
    OARLOCK_CHECK(updated->n_fields == 2 && updated->n_old_fields == 2);
    OARLOCK_CHECK_TEXT(updated->fields[1], "7");
    OARLOCK_CHECK_TEXT(updated->old_fields[1], NULL);
    const char *json;
    OARLOCK_TRY(oarlock_event_field(OARLOCK_OLD, "/spec/nodeName", &json));
    OARLOCK_CHECK_TEXT(json, "\"n1\"");
    OARLOCK_TRY(oarlock_event_field(OARLOCK_NEW, "/x", &json));
    OARLOCK_CHECK_TEXT(json, NULL);
    const char *both[2];
    OARLOCK_TRY(oarlock_event_fields(OARLOCK_NEW, (const char *const[]){"/status", "/x", NULL}, both));
    OARLOCK_CHECK_TEXT(both[0], "7");
    OARLOCK_CHECK_TEXT(both[1], NULL);
    OARLOCK_TRY(oarlock_event_json(OARLOCK_NEW, &json));
    OARLOCK_CHECK_TEXT(oarlock_json_at(json, "/metadata/uid"), "\"uid-1\"");
    oarlock_error error = oarlock_event_field(OARLOCK_NEW, "spec", &json);
    OARLOCK_CHECK(error.code == OARLOCK_INVALID);
    OARLOCK_CHECK_TEXT(error.message, "malformed pointer \"spec\"");
    return oarlock_ok();
}

static oarlock_error on_delete(const oarlock_deleted *deleted) {
    OARLOCK_CHECK(!deleted->final_state_unknown);
    OARLOCK_CHECK_TEXT(deleted->fields[1], "7");
    const char *json;
    OARLOCK_CHECK(oarlock_event_json(OARLOCK_NEW, &json).code == OARLOCK_NOT_FOUND);
    return oarlock_event_json(OARLOCK_OLD, &json);
}

static oarlock_error on_synced(const oarlock_synced *synced) {
    OARLOCK_CHECK(synced->remaining == 3);
    return oarlock_ok();
}

static oarlock_error reconcile(const oarlock_work_key *key, oarlock_outcome *outcome) {
    OARLOCK_CHECK_TEXT(key->kind, "k");
    OARLOCK_CHECK_TEXT(key->object.name, "web");
    outcome->requeue_after_ms = 500;
    return oarlock_ok();
}

static oarlock_error describe(oarlock_plugin *description) {
    const char *version;
    const char *json;
    OARLOCK_TRY(oarlock_config("/version", &json));
    if (json && !oarlock_json_string(json, &version)) return oarlock_terminal("the version is no text");
    if (json) description->version = version;
    return oarlock_ok();
}

OARLOCK_PLUGIN = {
    .name = "tested",
    .version = "1",
    .subscriptions =
        (const oarlock_subscription[]){
            {
                .name = "pods",
                .target = {"", "v1", "pods"},
                .ns = "home",
                .label_selector = "app",
                .conditions =
                    (const oarlock_condition[]){
                        {.pointer = "/a",
                         .test = OARLOCK_IN,
                         .values = (const char *const[]){"1", "2", NULL}},
                        {.pointer = "/b", .test = OARLOCK_EQUALS, .value = "true"},
                        {0},
                    },
                .fields = (const char *const[]){"/spec", "/status", NULL},
                .enqueue = {.rule = OARLOCK_ENQUEUE_LABEL, .at = "owner", .cluster_scoped = true},
            },
            {0},
        },
    .reads =
        (const oarlock_read[]){
            {.name = "pods", .target = {"", "v1", "pods"}, .metadata_only = true, .wakes = true},
            {0},
        },
    .indices =
        (const oarlock_index[]){
            {.name = "by-node", .lister = "pods", .pointer = "/spec/nodeName"},
            {.name = "by-owner", .lister = "pods"},
            {0},
        },
    .requests =
        (const oarlock_request[]){
            {
                .target = {"", "v1", "pods"},
                .verbs = (const char *const[]){"create", "patch", "update", "delete", NULL},
            },
            {
                .target = {"", "v1", "pods"},
                .verbs = (const char *const[]){"patch", NULL},
                .subresource = "status",
            },
            {
                .target = {"", "v1", "pods"},
                .verbs = (const char *const[]){"patch", NULL},
                .subresource = "scale",
            },
            {0},
        },
    .schedules =
        (const oarlock_schedule[]){
            {.name = "often", .every_seconds = 60},
            {.name = "nightly",
             .cron = "0 3 * * *",
             .at_start = true,
             .key = &(oarlock_work_key){.kind = "all"}},
            {0},
        },
    .describe = describe,
    .start = start,
    .on_add = on_add,
    .on_update = on_update,
    .on_delete = on_delete,
    .on_synced = on_synced,
    .reconcile = reconcile,
};

static bool equals(oarlock_bindings_string_t string, const char *text) {
    return string.len == strlen(text) && memcmp(string.ptr, text, string.len) == 0;
}

static void description_is_converted(void) {
    exports_oarlock_plugin_metadata_description_t described;
    oarlock_bindings_string_t error;
    OARLOCK_CHECK_OK(oarlock_host_configure(OARLOCK_JSON({"version": "2"})));
    OARLOCK_CHECK(exports_oarlock_plugin_metadata_describe(&described, &error));
    OARLOCK_CHECK(equals(described.name, "tested") && equals(described.version, "2"));
    OARLOCK_CHECK(described.subscriptions.len == 1 && described.reads.len == 1 && described.indices.len == 2);
    exports_oarlock_plugin_metadata_subscription_t *pods = described.subscriptions.ptr;
    OARLOCK_CHECK(pods->namespaces.tag == OARLOCK_PLUGIN_TYPES_NAMESPACES_ONE &&
                  equals(pods->namespaces.val.one, "home"));
    OARLOCK_CHECK(pods->conditions.len == 2 && pods->conditions.ptr[0].test.val.in.len == 2);
    OARLOCK_CHECK(equals(pods->conditions.ptr[1].test.val.equals, "true"));
    OARLOCK_CHECK(pods->fields.len == 2 && equals(pods->fields.ptr[1], "/status"));
    OARLOCK_CHECK(pods->content == EXPORTS_OARLOCK_PLUGIN_METADATA_CONTENT_FULL);
    OARLOCK_CHECK(pods->enqueue.tag == EXPORTS_OARLOCK_PLUGIN_METADATA_ENQUEUE_LABEL);
    OARLOCK_CHECK(equals(pods->enqueue.val.label.at, "owner") && pods->enqueue.val.label.scope == 1);
    OARLOCK_CHECK(described.reads.ptr[0].wakes && described.reads.ptr[0].content == 0);
    OARLOCK_CHECK(described.indices.ptr[0].source.tag ==
                  EXPORTS_OARLOCK_PLUGIN_METADATA_INDEX_SOURCE_POINTER);
    OARLOCK_CHECK(described.indices.ptr[1].source.tag ==
                  EXPORTS_OARLOCK_PLUGIN_METADATA_INDEX_SOURCE_OWNER_UID);
    OARLOCK_CHECK(described.requests.len == 3 && equals(described.requests.ptr[0].verbs.ptr[1], "patch"));
    OARLOCK_CHECK(described.schedules.len == 2 && described.schedules.ptr[0].trigger.val.every_seconds == 60);
    OARLOCK_CHECK(equals(described.schedules.ptr[1].trigger.val.at.cron, "0 3 * * *"));
    OARLOCK_CHECK(described.schedules.ptr[1].key.is_some && !described.schedules.ptr[0].key.is_some);
    exports_oarlock_plugin_metadata_description_free(&described);

    oarlock_error refused = oarlock_host_configure(OARLOCK_JSON({"version": 2}));
    OARLOCK_CHECK_TEXT(refused.message, "the version is no text");
    OARLOCK_CHECK_OK(oarlock_host_configure("{}"));
}

static const char WEB_POD[] = OARLOCK_JSON({
    "metadata": {"namespace": "home", "name": "web", "labels": {"app": "web"}},
    "spec": {"nodeName": "n1"}
});

static void results_of_the_plugin_are_converted(void) {
    // `start` fails, and is called again with the next call.
    oarlock_error error = oarlock_host_add("pods", WEB_POD);
    OARLOCK_CHECK(error.code == OARLOCK_RETRY);
    OARLOCK_CHECK_TEXT(error.message, "not yet");
    answer = oarlock_ok();
    OARLOCK_CHECK_OK(oarlock_host_add("pods", WEB_POD));
    sees_initial = true;
    OARLOCK_CHECK_OK(oarlock_host_add_initial("pods", WEB_POD));
    sees_initial = false;
    OARLOCK_CHECK(n_starts == 2);

    const struct {
        oarlock_error returned;
        oarlock_code code;
    } CASES[] = {
        {oarlock_retry("why"), OARLOCK_RETRY},
        {oarlock_retry_after("why", 9), OARLOCK_RETRY_AFTER},
        {oarlock_terminal("why"), OARLOCK_TERMINAL},
        {{.code = OARLOCK_INVALID, .message = "why"}, OARLOCK_TERMINAL},
        {{.code = OARLOCK_CONFLICT, .message = "why"}, OARLOCK_RETRY},
        {{.code = OARLOCK_THROTTLED, .message = "why"}, OARLOCK_RETRY},
        {{.code = OARLOCK_THROTTLED, .message = "why", .after_ms = 9}, OARLOCK_RETRY_AFTER},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        answer = CASES[i].returned;
        error = oarlock_host_add("pods", WEB_POD);
        OARLOCK_CHECK(error.code == CASES[i].code);
        OARLOCK_CHECK_TEXT(error.message, "why");
        OARLOCK_CHECK(error.after_ms == (error.code == OARLOCK_RETRY_AFTER ? 9 : 0));
    }
    OARLOCK_CHECK_OK(oarlock_host_synced("pods", 3));
    oarlock_outcome outcome;
    OARLOCK_CHECK_OK(oarlock_host_reconcile((oarlock_work_key){.kind = "k", .object = WEB}, &outcome));
    OARLOCK_CHECK(outcome.requeue_after_ms == 500);
}

static void notifications_are_converted(void) {
    oarlock_host_reset();
    answer = oarlock_ok();
    OARLOCK_CHECK_OK(oarlock_host_add("pods", WEB_POD));
    const char *changed = OARLOCK_JSON({"metadata": {"namespace": "home", "name": "web"}, "status": 7});
    OARLOCK_CHECK_OK(oarlock_host_update("pods", changed));
    OARLOCK_CHECK_OK(oarlock_host_delete("pods", WEB));
    OARLOCK_CHECK_TEXT(oarlock_host_object(PODS, WEB), NULL);
}

static void reads_are_converted(void) {
    oarlock_host_reset();
    oarlock_host_insert(PODS, WEB_POD);
    oarlock_host_insert(PODS, OARLOCK_JSON({"metadata": {"namespace": "home", "name": "api"}}));
    oarlock_host_insert(PODS, OARLOCK_JSON({"metadata": {"namespace": "away", "name": "web"}}));
    const char *const fields[] = {"/spec/nodeName", "/b", NULL};
    oarlock_row row;
    bool found = false;
    OARLOCK_CHECK_OK(oarlock_cache_get("pods", WEB, (oarlock_select){.fields = fields}, &row, &found));
    OARLOCK_CHECK(found && !row.json);
    OARLOCK_CHECK_TEXT(row.object.uid, "uid-1");
    OARLOCK_CHECK_TEXT(row.object.resource_version, "1");
    OARLOCK_CHECK_TEXT(row.fields[0], "\"n1\"");
    OARLOCK_CHECK_TEXT(row.fields[1], NULL);
    const oarlock_key absent = {"home", "absent"};
    OARLOCK_CHECK_OK(oarlock_cache_get("pods", absent, (oarlock_select){0}, &row, &found));
    OARLOCK_CHECK(!found);
    oarlock_error error = oarlock_cache_get("nodes", WEB, (oarlock_select){0}, &row, &found);
    OARLOCK_CHECK(error.code == OARLOCK_NOT_DECLARED && !found);
    OARLOCK_CHECK_TEXT(error.message, "the plugin declares no lister nodes");

    // Two pages.
    oarlock_host_set_page_size(1);
    oarlock_rows rows = oarlock_cache_list("pods", "home", NULL, (oarlock_select){.json = true});
    OARLOCK_CHECK(oarlock_next(&rows));
    OARLOCK_CHECK_TEXT(rows.row.object.name, "api");
    OARLOCK_CHECK_TEXT(oarlock_json_at(rows.row.json, "/metadata/name"), "\"api\"");
    OARLOCK_CHECK(oarlock_next(&rows));
    OARLOCK_CHECK_TEXT(rows.row.object.name, "web");
    OARLOCK_CHECK(!oarlock_next(&rows) && !rows.error.code && !oarlock_next(&rows));
    rows = oarlock_cache_list("pods", NULL, "app=web", (oarlock_select){0});
    OARLOCK_CHECK(oarlock_next(&rows) && !oarlock_next(&rows) && !rows.error.code);
    rows = oarlock_cache_by_index("by-node", "n1", "home", (oarlock_select){0});
    OARLOCK_CHECK(oarlock_next(&rows) && !oarlock_next(&rows) && !rows.error.code);
    rows = oarlock_client_list(PODS, NULL, NULL, "metadata.name=web", (oarlock_select){0});
    OARLOCK_CHECK(oarlock_next(&rows));
    OARLOCK_CHECK_TEXT(rows.row.object.ns, "away");
    // The second page fails.
    oarlock_host_fail_next("list", (oarlock_error){.code = OARLOCK_GONE});
    OARLOCK_CHECK(!oarlock_next(&rows) && rows.error.code == OARLOCK_GONE && !oarlock_next(&rows));

    const char *const *values;
    OARLOCK_CHECK_OK(oarlock_cache_index_values("by-node", &values));
    OARLOCK_CHECK_TEXT(values[0], "n1");
    OARLOCK_CHECK_TEXT(values[1], NULL);
    bool synced = false;
    OARLOCK_CHECK_OK(oarlock_cache_has_synced("pods", &synced));
    OARLOCK_CHECK(synced);
    OARLOCK_CHECK_OK(oarlock_cache_wait_until_seen("pods", "7", 100));

    const char *json;
    OARLOCK_CHECK_OK(oarlock_client_get(PODS, WEB, NULL, &json));
    OARLOCK_CHECK_TEXT(oarlock_json_at(json, "/spec/nodeName"), "\"n1\"");
    OARLOCK_CHECK_OK(oarlock_client_get(PODS, absent, NULL, &json));
    OARLOCK_CHECK(!json);
    oarlock_host_fail_next("get",
                           (oarlock_error){.code = OARLOCK_THROTTLED, .message = "slower", .after_ms = 9});
    error = oarlock_client_get(PODS, WEB, NULL, &json);
    OARLOCK_CHECK(error.code == OARLOCK_THROTTLED && error.after_ms == 9);
    OARLOCK_CHECK_TEXT(error.message, "slower");
}

static void writes_are_converted(void) {
    oarlock_host_reset();
    oarlock_written written;
    OARLOCK_CHECK_OK(
        oarlock_client_create(PODS, "home", OARLOCK_JSON({"metadata": {"name": "web"}}), &written));
    OARLOCK_CHECK_TEXT(written.ns, "home");
    OARLOCK_CHECK_TEXT(written.name, "web");
    OARLOCK_CHECK_TEXT(written.uid, "uid-1");
    OARLOCK_CHECK_TEXT(written.resource_version, "1");
    oarlock_object object = {"home", "web", written.uid, written.resource_version};
    oarlock_write unchanged = oarlock_if_unchanged(object);
    const char *patch = OARLOCK_JSON({"spec": {"nodeName": "n2"}});
    OARLOCK_CHECK_OK(oarlock_client_patch(PODS, WEB, OARLOCK_MERGE_PATCH, patch, &unchanged, &written));
    OARLOCK_CHECK_TEXT(written.ns, "home");
    OARLOCK_CHECK(oarlock_client_patch(PODS, WEB, OARLOCK_MERGE_PATCH, patch, &unchanged, NULL).code ==
                  OARLOCK_CONFLICT);
    const oarlock_write other = {.uid = "other"};
    OARLOCK_CHECK(oarlock_client_delete(PODS, WEB, &other).code == OARLOCK_CONFLICT);
    const oarlock_write status = {.subresource = "status", .force = true};
    OARLOCK_CHECK_OK(oarlock_client_apply(PODS, WEB, OARLOCK_JSON({"status": 1, "spec": 2}), &status, NULL));
    const char *json;
    OARLOCK_CHECK_OK(oarlock_client_get(PODS, WEB, NULL, &json));
    OARLOCK_CHECK_OK(oarlock_client_replace(PODS, WEB, NULL, json, NULL));
    OARLOCK_CHECK(oarlock_client_replace(PODS, WEB, NULL, json, NULL).code == OARLOCK_CONFLICT);
    OARLOCK_CHECK_OK(oarlock_client_scale(PODS, WEB, 3));
    OARLOCK_CHECK_TEXT(oarlock_json_at(oarlock_host_object(PODS, WEB), "/spec"),
                       "{\"nodeName\":\"n2\",\"replicas\":3}");
    OARLOCK_CHECK_OK(oarlock_client_delete_with(PODS, WEB, NULL, OARLOCK_ORPHAN, 0));
    // The object is gone, which is what a delete wants.
    OARLOCK_CHECK_OK(oarlock_client_delete(PODS, WEB, NULL));
    oarlock_host_fail_next("create", (oarlock_error){.code = OARLOCK_SUSPENDED});
    OARLOCK_CHECK(oarlock_client_create(PODS, "home", "{}", NULL).code == OARLOCK_SUSPENDED);
    OARLOCK_CHECK_TEXT(oarlock_host_writes(), "create v1/pods home/web\n"
                                              "patch v1/pods home/web\n"
                                              "patch v1/pods home/web failed: conflict\n"
                                              "delete v1/pods home/web failed: conflict\n"
                                              "apply v1/pods/status home/web force\n"
                                              "replace v1/pods home/web\n"
                                              "replace v1/pods home/web failed: conflict\n"
                                              "patch v1/pods/scale home/web\n"
                                              "delete v1/pods home/web\n"
                                              "delete v1/pods home/web failed: not-found\n"
                                              "create v1/pods home/ failed: suspended\n");
    OARLOCK_CHECK_TEXT(oarlock_host_body(1), "{\"spec\":{\"nodeName\":\"n2\"}}");
    OARLOCK_CHECK_TEXT(oarlock_host_body(7), "{\"spec\":{\"replicas\":3}}");
    OARLOCK_CHECK_TEXT(oarlock_host_body(8), "{\"propagationPolicy\":\"Orphan\",\"gracePeriodSeconds\":0}");
    OARLOCK_CHECK_TEXT(oarlock_host_body(9), "{\"propagationPolicy\":\"Background\"}");
    OARLOCK_CHECK_TEXT(oarlock_host_body(11), NULL);
}

static void other_calls_are_converted(void) {
    oarlock_host_reset();
    oarlock_info("copied", "name", "a", "skipped", (const char *)NULL, "to", "b");
    oarlock_log(OARLOCK_TRACE, "seen", (const char *)NULL);
    OARLOCK_CHECK_TEXT(oarlock_host_logs(), "info copied name=a to=b\ntrace seen\n");
    OARLOCK_CHECK_OK(oarlock_counter_add("copies", 2, "to", "b", (const char *)NULL));
    OARLOCK_CHECK_OK(oarlock_counter_add("copies", 1, "to", "b", (const char *)NULL));
    OARLOCK_CHECK_OK(oarlock_gauge_set("sources", 1.5, (const char *)NULL));
    OARLOCK_CHECK_TEXT(oarlock_host_metrics(), "copies{to=\"b\"} 3\nsources 1.5\n");
    OARLOCK_CHECK_OK(oarlock_queue_add((oarlock_work_key){.kind = "k", .object = WEB}));
    OARLOCK_CHECK_OK(oarlock_queue_add_after((oarlock_work_key){.kind = "k"}, 250));
    OARLOCK_CHECK_TEXT(oarlock_host_queue(), "k home/web\nk  after 250 ms\n");
    char note[2000];
    memset(note, 'x', sizeof note);
    // A character of two bytes on the limit is left out.
    memcpy(note + 1023, "é", 2);
    note[sizeof note - 1] = '\0';
    const oarlock_object object = {.ns = "home", .name = "web", .uid = "u", .resource_version = "7"};
    OARLOCK_CHECK_OK(oarlock_event_record(PODS, "Pod", object, OARLOCK_WARNING, "Why", note));
    oarlock_host_fail_next("event", (oarlock_error){.code = OARLOCK_FORBIDDEN});
    OARLOCK_CHECK(oarlock_event_record(PODS, "Pod", object, OARLOCK_WARNING, "Why", note).code ==
                  OARLOCK_FORBIDDEN);
    note[1023] = '\0';
    OARLOCK_CHECK_TEXT(oarlock_host_events(), oarlock_format("Warning Why Pod home/web: %s\n", note));
    oarlock_host_advance(250);
    OARLOCK_CHECK(oarlock_now_ms() == 1767225600250.0 && oarlock_elapsed_ms() == 250);
}

void calls_are_converted(void) {
    description_is_converted();
    results_of_the_plugin_are_converted();
    notifications_are_converted();
    reads_are_converted();
    writes_are_converted();
    other_calls_are_converted();
}
