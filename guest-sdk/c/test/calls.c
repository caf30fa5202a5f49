// Tests of the calls: those of the plugin to the host, and those of the host to a plugin.

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "fake_host.h"
#include "oarlock.h"

static const oarlock_gvr PODS = {"", "v1", "pods"};
static const oarlock_key WEB = {"home", "web"};

// What `on_add` returns, and what it saw.
static oarlock_error answer;
static int n_starts;

static oarlock_error start(void) {
    n_starts++;
    return n_starts == 1 ? oarlock_retry("not yet") : oarlock_ok();
}

static oarlock_error on_add(const oarlock_added *added) {
    CHECK_TEXT(added->subscription, "pods");
    CHECK_TEXT(added->object.ns, "");
    CHECK_TEXT(added->object.name, "web");
    CHECK(added->n_fields == 2);
    CHECK_TEXT(added->fields[0], "\"x\"");
    CHECK_TEXT(added->fields[1], NULL);
    return answer;
}

static oarlock_error on_update(const oarlock_updated *updated) {
    CHECK_TEXT(updated->old_uid, NULL);
    CHECK(updated->n_fields == 0 && updated->n_old_fields == 0);
    return oarlock_ok();
}

static oarlock_error reconcile(const oarlock_work_key *key, oarlock_outcome *outcome) {
    CHECK_TEXT(key->object.name, "web");
    outcome->requeue_after_ms = 500;
    return oarlock_ok();
}

static oarlock_error describe(oarlock_plugin *description) {
    const char *name;
    OARLOCK_TRY(oarlock_config("", &name));
    description->version = "2";
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
            {.target = {"", "v1", "pods"},
             .verbs = (const char *const[]){"patch", NULL},
             .subresource = "status"},
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
    .reconcile = reconcile,
};

static bool equals(oarlock_bindings_string_t string, const char *text) {
    return string.len == strlen(text) && memcmp(string.ptr, text, string.len) == 0;
}

static void description_is_converted(void) {
    exports_oarlock_plugin_metadata_description_t described;
    oarlock_bindings_string_t error;
    CHECK(exports_oarlock_plugin_metadata_describe(&described, &error));
    CHECK(equals(described.name, "tested") && equals(described.version, "2"));
    CHECK(described.subscriptions.len == 1 && described.reads.len == 1 && described.indices.len == 2);
    exports_oarlock_plugin_metadata_subscription_t *pods = described.subscriptions.ptr;
    CHECK(pods->namespaces.tag == OARLOCK_PLUGIN_TYPES_NAMESPACES_ONE &&
          equals(pods->namespaces.val.one, "home"));
    CHECK(pods->conditions.len == 2 && pods->conditions.ptr[0].test.val.in.len == 2);
    CHECK(equals(pods->conditions.ptr[1].test.val.equals, "true"));
    CHECK(pods->fields.len == 2 && equals(pods->fields.ptr[1], "/status"));
    CHECK(pods->content == EXPORTS_OARLOCK_PLUGIN_METADATA_CONTENT_FULL);
    CHECK(pods->enqueue.tag == EXPORTS_OARLOCK_PLUGIN_METADATA_ENQUEUE_LABEL);
    CHECK(equals(pods->enqueue.val.label.at, "owner") && pods->enqueue.val.label.scope == 1);
    CHECK(described.reads.ptr[0].wakes && described.reads.ptr[0].content == 0);
    CHECK(described.indices.ptr[0].source.tag == EXPORTS_OARLOCK_PLUGIN_METADATA_INDEX_SOURCE_POINTER);
    CHECK(described.indices.ptr[1].source.tag == EXPORTS_OARLOCK_PLUGIN_METADATA_INDEX_SOURCE_OWNER_UID);
    CHECK(described.requests.len == 1 && equals(described.requests.ptr[0].verbs.ptr[0], "patch"));
    CHECK(described.schedules.len == 2 && described.schedules.ptr[0].trigger.val.every_seconds == 60);
    CHECK(equals(described.schedules.ptr[1].trigger.val.at.cron, "0 3 * * *"));
    CHECK(described.schedules.ptr[1].key.is_some && !described.schedules.ptr[0].key.is_some);
    exports_oarlock_plugin_metadata_description_free(&described);
    CHECK_TEXT(take_requests(), "config.get \n");

    next_error = OARLOCK_PLUGIN_TYPES_ERROR_FORBIDDEN;
    CHECK(!exports_oarlock_plugin_metadata_describe(&described, &error));
    CHECK(equals(error, "as the test wants"));
    free(error.ptr);
    take_requests();
}

static bool add(exports_oarlock_plugin_handler_failure_t *failure) {
    oarlock_bindings_option_string_t fields[] = {{.is_some = true, .val = from_host("\"x\"")}, {0}};
    exports_oarlock_plugin_handler_added_t added = {
        .subscription = from_host("pods"),
        .object = {from_host(""), from_host("web"), from_host("uid-1"), from_host("7")},
        .fields = {.ptr = fields, .len = 2},
    };
    return exports_oarlock_plugin_handler_on_add(&added, failure);
}

static void results_of_the_plugin_are_converted(void) {
    exports_oarlock_plugin_handler_failure_t failure;
    // `start` fails, and is called again with the next call.
    CHECK(!add(&failure));
    CHECK(failure.tag == OARLOCK_PLUGIN_TYPES_FAILURE_RETRY && equals(failure.val.retry, "not yet"));
    free_failure(&failure);
    answer = oarlock_ok();
    CHECK(add(&failure) && add(&failure) && n_starts == 2);

    const struct {
        oarlock_error returned;
        uint8_t tag;
    } CASES[] = {
        {oarlock_retry("why"), OARLOCK_PLUGIN_TYPES_FAILURE_RETRY},
        {oarlock_retry_after("why", 9), OARLOCK_PLUGIN_TYPES_FAILURE_RETRY_AFTER},
        {oarlock_terminal("why"), OARLOCK_PLUGIN_TYPES_FAILURE_TERMINAL},
        {{.code = OARLOCK_INVALID, .message = "why"}, OARLOCK_PLUGIN_TYPES_FAILURE_TERMINAL},
        {{.code = OARLOCK_CONFLICT, .message = "why"}, OARLOCK_PLUGIN_TYPES_FAILURE_RETRY},
        {{.code = OARLOCK_THROTTLED, .message = "why"}, OARLOCK_PLUGIN_TYPES_FAILURE_RETRY},
        {{.code = OARLOCK_THROTTLED, .message = "why", .after_ms = 9},
         OARLOCK_PLUGIN_TYPES_FAILURE_RETRY_AFTER},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        answer = CASES[i].returned;
        CHECK(!add(&failure) && failure.tag == CASES[i].tag);
        CHECK(equals(failure.val.retry, "why"));
        if (failure.tag == OARLOCK_PLUGIN_TYPES_FAILURE_RETRY_AFTER)
            CHECK(failure.val.retry_after.after_ms == 9);
        free_failure(&failure);
    }
    exports_oarlock_plugin_handler_updated_t updated = {.subscription = from_host("pods")};
    CHECK(exports_oarlock_plugin_handler_on_update(&updated, &failure));
    exports_oarlock_plugin_handler_deleted_t deleted = {.subscription = from_host("pods")};
    CHECK(exports_oarlock_plugin_handler_on_delete(&deleted, &failure));
    exports_oarlock_plugin_handler_synced_t synced = {.subscription = from_host("pods")};
    CHECK(exports_oarlock_plugin_handler_on_synced(&synced, &failure));
    exports_oarlock_plugin_reconciler_work_key_t key = {.kind = from_host("k"),
                                                        .object.name = from_host("web")};
    exports_oarlock_plugin_reconciler_outcome_t outcome;
    CHECK(exports_oarlock_plugin_reconciler_reconcile(&key, &outcome, &failure));
    CHECK(outcome.tag == EXPORTS_OARLOCK_PLUGIN_RECONCILER_OUTCOME_REQUEUE_AFTER);
    CHECK(outcome.val.requeue_after == 500);
}

static void reads_are_converted(void) {
    const char *const fields[] = {"/a", "/b", NULL};
    oarlock_row row;
    bool found = false;
    CHECK(!oarlock_cache_get("pods", WEB, (oarlock_select){.fields = fields}, &row, &found).code && found);
    CHECK_TEXT(row.object.uid, "uid-1");
    CHECK_TEXT(row.fields[0], "\"x\"");
    CHECK_TEXT(row.fields[1], NULL);
    CHECK_TEXT(take_requests(), "cache.get pods home web fields /a /b\n");
    next_error = OARLOCK_PLUGIN_TYPES_ERROR_NOT_FOUND;
    CHECK(!oarlock_cache_get("pods", WEB, (oarlock_select){0}, &row, &found).code && !found);
    next_error = OARLOCK_PLUGIN_TYPES_ERROR_THROTTLED;
    oarlock_error error = oarlock_cache_get("pods", WEB, (oarlock_select){0}, &row, &found);
    CHECK(error.code == OARLOCK_THROTTLED && error.after_ms == 1500);
    CHECK_TEXT(error.message, "slower");
    take_requests();

    oarlock_rows rows = oarlock_cache_list("pods", NULL, "app=web", (oarlock_select){.json = true});
    CHECK(oarlock_next(&rows));
    CHECK_TEXT(rows.row.object.name, "a");
    CHECK_TEXT(rows.row.json, "{\"a\":1}");
    CHECK(oarlock_next(&rows));
    CHECK_TEXT(rows.row.object.name, "b");
    CHECK(!oarlock_next(&rows) && !rows.error.code && !oarlock_next(&rows));
    CHECK_TEXT(take_requests(), "cache.list pods * app=web json \ncache.list pods * app=web json more\n");
    rows = oarlock_cache_by_index("by-node", "n1", "home", (oarlock_select){0});
    CHECK(oarlock_next(&rows));
    next_error = OARLOCK_PLUGIN_TYPES_ERROR_GONE;
    CHECK(!oarlock_next(&rows) && rows.error.code == OARLOCK_GONE && !oarlock_next(&rows));
    take_requests();
    rows = oarlock_client_list(PODS, "home", NULL, "spec.nodeName=n1", (oarlock_select){0});
    CHECK(oarlock_next(&rows));
    CHECK_TEXT(take_requests(), "client.list  v1 pods home  spec.nodeName=n1 keys \n");

    const char *const *values;
    CHECK(!oarlock_cache_index_values("by-node", &values).code);
    CHECK_TEXT(values[0], "");
    CHECK_TEXT(values[1], "n1");
    CHECK_TEXT(values[2], NULL);
    bool synced = false;
    CHECK(!oarlock_cache_has_synced("pods", &synced).code && synced);
    CHECK(!oarlock_cache_wait_until_seen("pods", "7", 100).code);
    take_requests();

    const char *json;
    CHECK(!oarlock_event_field(OARLOCK_OLD, "/spec", &json).code);
    CHECK_TEXT(json, "\"value\"");
    CHECK(!oarlock_event_field(OARLOCK_NEW, "/x", &json).code && !json);
    const char *both[2];
    CHECK(!oarlock_event_fields(OARLOCK_NEW, fields, both).code);
    CHECK_TEXT(both[0], "1");
    CHECK_TEXT(both[1], NULL);
    CHECK(!oarlock_event_json(OARLOCK_NEW, &json).code);
    CHECK_TEXT(take_requests(),
               "event.field old /spec\nevent.field new /x\nevent.fields 1 /a /b\nevent.json 1\n");
}

static void writes_are_converted(void) {
    const char *json;
    CHECK(!oarlock_client_get(PODS, WEB, NULL, &json).code);
    CHECK_TEXT(json, "{\"b\":2}");
    next_error = OARLOCK_PLUGIN_TYPES_ERROR_NOT_FOUND;
    CHECK(!oarlock_client_get(PODS, WEB, NULL, &json).code && !json);
    take_requests();

    oarlock_written written;
    CHECK(!oarlock_client_create(PODS, "home", "{}", &written).code);
    CHECK_TEXT(written.resource_version, "8");
    oarlock_write unchanged = oarlock_if_unchanged((oarlock_object){.uid = "u", .resource_version = "7"});
    CHECK(!oarlock_client_patch(PODS, WEB, OARLOCK_MERGE_PATCH, "{}", &unchanged, NULL).code);
    CHECK(
        !oarlock_client_apply(PODS, WEB, "{}", &(oarlock_write){.subresource = "status", .force = true}, NULL)
             .code);
    CHECK(!oarlock_client_replace(PODS, WEB, NULL, "{}", NULL).code);
    CHECK(!oarlock_client_scale(PODS, WEB, 3).code);
    CHECK(!oarlock_client_delete(PODS, WEB, NULL).code);
    CHECK(!oarlock_client_delete_with(PODS, WEB, &unchanged, OARLOCK_ORPHAN, 0).code);
    CHECK_TEXT(take_requests(), "client.create  v1 pods home {}\n"
                                "client.patch 1  v1 pods web  {} uid u version 7\n"
                                "client.apply, forced  v1 pods web status {}\n"
                                "client.replace  v1 pods web  {}\n"
                                "client.patch 1  v1 pods web scale {\"spec\":{\"replicas\":3}}\n"
                                "client.delete  v1 pods web 0\n"
                                "client.delete  v1 pods web 2 0 uid u version 7\n");
    next_error = OARLOCK_PLUGIN_TYPES_ERROR_NOT_FOUND;
    CHECK(!oarlock_client_delete(PODS, WEB, NULL).code);
    next_error = OARLOCK_PLUGIN_TYPES_ERROR_SUSPENDED;
    CHECK(oarlock_client_create(PODS, "home", "{}", NULL).code == OARLOCK_SUSPENDED);
    take_requests();
}

static void other_calls_are_converted(void) {
    oarlock_info("copied", "name", "a", "skipped", (const char *)NULL, "to", "b");
    oarlock_log(OARLOCK_TRACE, "not written", (const char *)NULL);
    CHECK(!oarlock_counter_add("copies", 2, "to", "b", (const char *)NULL).code);
    CHECK(!oarlock_gauge_set("sources", 1.5, (const char *)NULL).code);
    CHECK(!oarlock_queue_add((oarlock_work_key){.kind = "k", .object = WEB}).code);
    CHECK(!oarlock_queue_add_after((oarlock_work_key){.kind = "k"}, 250).code);
    char note[2000];
    memset(note, 'x', sizeof note);
    // A character of two bytes on the limit is left out.
    memcpy(note + 1023, "é", 2);
    note[sizeof note - 1] = '\0';
    const oarlock_object object = {.ns = "home", .name = "web", .uid = "u", .resource_version = "7"};
    CHECK(!oarlock_event_record(PODS, "Pod", object, OARLOCK_WARNING, "Why", note).code);
    CHECK_TEXT(take_requests(), "log 2 copied name=a to=b\n"
                                "counter copies 2 to=b\n"
                                "gauge sources 1.5\n"
                                "work-queue.add k web\n"
                                "work-queue.add-after k 250\n"
                                "events.emit  v1 pods Pod web 1 Why 1023\n");
    CHECK(oarlock_now_ms() == 1767225600250.0 && oarlock_elapsed_ms() == 42);
}

void test_calls(void) {
    description_is_converted();
    results_of_the_plugin_are_converted();
    reads_are_converted();
    writes_are_converted();
    other_calls_are_converted();
}
