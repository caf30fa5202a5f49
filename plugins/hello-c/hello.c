// Logs every notification about ConfigMaps.
//
// The same plugin exists in five languages. Each uses the contract in `wit/` directly, without an SDK, and
// shows one example of each kind: declared fields, a field that it reads itself, a read of the cache, the
// configuration and the log.
//
// Ownership of memory: this file frees the arguments of its exports and the results of imports. The bindings
// free the results of exports, which must be on the heap. Arguments of imports are borrowed.

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "handler_plugin.h"
#include "json.h"

// Short names for types of the bindings.
typedef handler_plugin_string_t string_t;
typedef handler_plugin_option_string_t option_t;
typedef handler_plugin_list_option_string_t fields_t;
typedef oarlock_plugin_types_entry_t entry_t;
typedef oarlock_plugin_types_error_t error_t;
typedef exports_oarlock_plugin_handler_failure_t failure_t;
typedef exports_oarlock_plugin_handler_object_ref_t object_ref_t;
typedef exports_oarlock_plugin_metadata_description_t description_t;
typedef exports_oarlock_plugin_metadata_group_version_resource_t resource_t;
typedef exports_oarlock_plugin_metadata_read_t read_t;
typedef exports_oarlock_plugin_metadata_subscription_t subscription_t;

#define NAME "configmaps"

// The fields that every notification carries. The host skips updates that change none of them. Every update
// changes the resourceVersion, so the host skips none.
static const char *const FIELDS[] = {"/metadata/resourceVersion", "/data/greeting"};
enum { RESOURCE_VERSION, GREETING, N_FIELDS };

// Returns a string constant, borrowed.
static string_t lend(const char *text) {
    string_t string;
    handler_plugin_string_set(&string, text);
    return string;
}

// Returns a copy of a string constant, owned by the caller.
static string_t give(const char *text) {
    string_t string;
    handler_plugin_string_dup(&string, text);
    return string;
}

static bool equal(string_t a, string_t b) {
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

// Returns the text of the error, owned by the caller, and frees the error.
static string_t describe_error(error_t *error) {
    string_t said = error->tag == OARLOCK_PLUGIN_TYPES_ERROR_THROTTLED ? error->val.throttled.message
                                                                       : error->val.not_found;
    string_t text;
    handler_plugin_string_dup_n(&text, (const char *)said.ptr, said.len);
    oarlock_plugin_types_error_free(error);
    return text;
}

// === the configuration ===

// Returns whether the configuration has this JSON text at the pointer.
static bool is_configured(const char *pointer, const char *json) {
    string_t at = lend(pointer);
    option_t found;
    error_t error;
    if (!oarlock_plugin_config_get(&at, &found, &error)) {
        oarlock_plugin_types_error_free(&error);
        return false;
    }
    bool same = found.is_some && equal(found.val, lend(json));
    handler_plugin_option_string_free(&found);
    return same;
}

// `quiet: true` turns the log off.
static bool is_quiet(void) {
    static enum { UNKNOWN, NO, YES } quiet;
    if (quiet == UNKNOWN) quiet = is_configured("/quiet", "true") ? YES : NO;
    return quiet == YES;
}

// Returns the label selector, owned by the caller.
static bool label_selector(string_t *selector, string_t *err) {
    string_t at = lend("/labelSelector");
    option_t found;
    error_t error;
    if (!oarlock_plugin_config_get(&at, &found, &error)) {
        *err = describe_error(&error);
        return false;
    }
    if (!found.is_some) {
        *selector = give("app=hello");
        return true;
    }
    string_t text = found.val;
    bool is_text = json_text(&text);
    if (is_text) handler_plugin_string_dup_n(selector, (const char *)text.ptr, text.len);
    else *err = give("labelSelector in the configuration is not a string");
    handler_plugin_option_string_free(&found);
    return is_text;
}

// === the description of the plugin ===

static resource_t configmaps(void) {
    return (resource_t){.group = give(""), .version = give("v1"), .plural = give("configmaps")};
}

bool exports_oarlock_plugin_metadata_describe(description_t *ret, string_t *err) {
    string_t selector;
    if (!label_selector(&selector, err)) return false;

    string_t *fields = malloc(N_FIELDS * sizeof *fields);
    for (int i = 0; i < N_FIELDS; i++) fields[i] = give(FIELDS[i]);

    subscription_t *subscription = malloc(sizeof *subscription);
    *subscription = (subscription_t){
        .name = give(NAME),
        .target = configmaps(),
        .namespaces.tag = OARLOCK_PLUGIN_TYPES_NAMESPACES_ALL,
        .label_selector = selector,
        .fields = {.ptr = fields, .len = N_FIELDS},
        .content = EXPORTS_OARLOCK_PLUGIN_METADATA_CONTENT_FULL,
        .enqueue.tag = EXPORTS_OARLOCK_PLUGIN_METADATA_ENQUEUE_NOTHING,
    };
    read_t *read = malloc(sizeof *read);
    *read = (read_t){
        .name = give(NAME),
        .target = configmaps(),
        .namespaces.tag = OARLOCK_PLUGIN_TYPES_NAMESPACES_ALL,
        .content = EXPORTS_OARLOCK_PLUGIN_METADATA_CONTENT_FULL,
    };
    *ret = (description_t){
        .name = give("hello-c"),
        .version = give("0.1.0"),
        .subscriptions = {.ptr = subscription, .len = 1},
        .reads = {.ptr = read, .len = 1},
    };
    return true;
}

// === the log line ===

// The pairs of the line. Values are borrowed until it is logged.
typedef struct {
    entry_t pairs[12];
    size_t n_pairs;
} notice_t;

static void pair(notice_t *notice, const char *name, string_t value) {
    notice->pairs[notice->n_pairs++] = (entry_t){.name = lend(name), .value = value};
}

static void bool_pair(notice_t *notice, const char *name, bool value) {
    pair(notice, name, lend(value ? "true" : "false"));
}

// Adds the string value of a field, if it has one. Unescapes it where it lies.
static void text_pair(notice_t *notice, const char *name, option_t *json) {
    string_t text = json->val;
    if (json->is_some && json_text(&text)) pair(notice, name, text);
}

static notice_t begin(const char *type, string_t subscription, const object_ref_t *object) {
    notice_t notice = {.n_pairs = 0};
    pair(&notice, "type", lend(type));
    pair(&notice, "subscription", subscription);
    pair(&notice, "namespace", object->namespace_);
    pair(&notice, "name", object->name);
    pair(&notice, "uid", object->uid);
    pair(&notice, "resource-version", object->resource_version);
    return notice;
}

static void write_log(notice_t *notice) {
    if (is_quiet()) return;
    string_t message = lend("notified");
    oarlock_plugin_log_list_entry_t pairs = {.ptr = notice->pairs, .len = notice->n_pairs};
    oarlock_plugin_log_log(OARLOCK_PLUGIN_LOG_LEVEL_INFO, &message, &pairs);
}

// === the event and the cache ===

static bool retry(error_t *error, failure_t *err) {
    *err = (failure_t){.tag = OARLOCK_PLUGIN_TYPES_FAILURE_RETRY, .val.retry = describe_error(error)};
    return false;
}

// Returns whether the cache has the object with this uid, and not a later object of the same name.
static bool is_cached(const object_ref_t *object, bool *cached, failure_t *err) {
    string_t lister = lend(NAME);
    oarlock_plugin_types_object_key_t key = {.namespace_ = object->namespace_, .name = object->name};
    string_t pointer = lend("/metadata/uid");
    oarlock_plugin_types_projection_t projection = {
        .tag = OARLOCK_PLUGIN_TYPES_PROJECTION_FIELDS,
        .val.fields = {.ptr = &pointer, .len = 1},
    };
    oarlock_plugin_types_row_t row;
    error_t error;
    *cached = false;
    if (!oarlock_plugin_cache_get(&lister, &key, &projection, &row, &error)) {
        if (error.tag != OARLOCK_PLUGIN_TYPES_ERROR_NOT_FOUND) return retry(&error, err);
        oarlock_plugin_types_error_free(&error);
        return true;
    }
    string_t uid = row.fields.ptr[0].val;
    *cached = row.fields.ptr[0].is_some && json_text(&uid) && equal(uid, object->uid);
    oarlock_plugin_types_row_free(&row);
    return true;
}

// Adds values from the declared fields, the event and the cache, and logs the line.
static bool finish(notice_t *notice, oarlock_plugin_event_version_t which, const object_ref_t *object, fields_t *fields,
                   failure_t *err) {
    // The message of an assertion goes to standard error, which the host shows with the trap.
    assert(fields->len == N_FIELDS);
    text_pair(notice, "greeting", &fields->ptr[GREETING]);
    string_t pointer = lend("/metadata/creationTimestamp");
    option_t created;
    error_t error;
    if (!oarlock_plugin_event_field(which, &pointer, &created, &error)) return retry(&error, err);
    text_pair(notice, "created", &created);
    bool cached;
    bool done = is_cached(object, &cached, err);
    if (done) {
        bool_pair(notice, "cached", cached);
        write_log(notice);
    }
    handler_plugin_option_string_free(&created);
    return done;
}

// === the notifications ===

bool exports_oarlock_plugin_handler_on_add(exports_oarlock_plugin_handler_added_t *added, failure_t *err) {
    notice_t notice = begin("add", added->subscription, &added->object);
    bool_pair(&notice, "initial", added->is_in_initial_list);
    bool done = finish(&notice, OARLOCK_PLUGIN_EVENT_VERSION_NEW, &added->object, &added->fields, err);
    exports_oarlock_plugin_handler_added_free(added);
    return done;
}

bool exports_oarlock_plugin_handler_on_update(exports_oarlock_plugin_handler_updated_t *updated, failure_t *err) {
    notice_t notice = begin("update", updated->subscription, &updated->object);
    pair(&notice, "old-resource-version", updated->old_resource_version);
    text_pair(&notice, "old-greeting", &updated->old_fields.ptr[GREETING]);
    bool done = finish(&notice, OARLOCK_PLUGIN_EVENT_VERSION_NEW, &updated->object, &updated->fields, err);
    exports_oarlock_plugin_handler_updated_free(updated);
    return done;
}

bool exports_oarlock_plugin_handler_on_delete(exports_oarlock_plugin_handler_deleted_t *deleted, failure_t *err) {
    notice_t notice = begin("delete", deleted->subscription, &deleted->object);
    bool_pair(&notice, "unknown", deleted->final_state_unknown);
    bool done = finish(&notice, OARLOCK_PLUGIN_EVENT_VERSION_OLD, &deleted->object, &deleted->fields, err);
    exports_oarlock_plugin_handler_deleted_free(deleted);
    return done;
}

bool exports_oarlock_plugin_handler_on_synced(exports_oarlock_plugin_handler_synced_t *synced, failure_t *err) {
    (void)err;
    notice_t notice = {.n_pairs = 0};
    pair(&notice, "type", lend("synced"));
    pair(&notice, "subscription", synced->subscription);
    uint8_t digits[10];
    uint8_t *first = digits + sizeof digits;
    uint32_t remaining = synced->remaining;
    do *--first = (uint8_t)('0' + remaining % 10);
    while ((remaining /= 10) > 0);
    pair(&notice, "remaining", (string_t){.ptr = first, .len = (size_t)(digits + sizeof digits - first)});
    write_log(&notice);
    exports_oarlock_plugin_handler_synced_free(synced);
    return true;
}
