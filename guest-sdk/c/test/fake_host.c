// A host for tests.

#include "fake_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef oarlock_bindings_string_t string_t;
typedef oarlock_plugin_types_error_t error_t;

void *cabi_realloc(void *old, size_t old_size, size_t align, size_t size);

uint8_t next_error = 255;

static char requests[8192];

const char *take_requests(void) {
    static char taken[sizeof requests];
    memcpy(taken, requests, sizeof taken);
    requests[0] = '\0';
    return taken;
}

string_t from_host(const char *text) {
    string_t string = {.len = strlen(text)};
    // The host allocates nothing for an empty string.
    string.ptr = string.len ? cabi_realloc(NULL, 0, 1, string.len) : (uint8_t *)1;
    if (string.len) memcpy(string.ptr, text, string.len);
    return string;
}

void free_failure(oarlock_plugin_types_failure_t *failure) {
    string_t *text = failure->tag == OARLOCK_PLUGIN_TYPES_FAILURE_RETRY_AFTER
                         ? &failure->val.retry_after.message
                         : &failure->val.retry;
    if (text->len) free(text->ptr);
    *text = (string_t){0};
}

static void add(const char *text, size_t len) {
    size_t used = strlen(requests);
    if (used + len + 1 > sizeof requests) abort();
    if (len) memcpy(requests + used, text, len);
    requests[used + len] = '\0';
}

static void word(const char *text) {
    size_t used = strlen(requests);
    if (used && requests[used - 1] != '\n') add(" ", 1);
    add(text, strlen(text));
}

static void string(const string_t *text) {
    word("");
    add((const char *)text->ptr, text->len);
}

static void optional(const char *name, const oarlock_bindings_option_string_t *text) {
    if (!text->is_some) return;
    word(name);
    string(&text->val);
}

static void number(double value) {
    char text[32];
    snprintf(text, sizeof text, "%g", value);
    word(text);
}

static void resource(const oarlock_plugin_types_group_version_resource_t *target) {
    string(&target->group);
    string(&target->version);
    string(&target->plural);
}

static void namespaces(const oarlock_plugin_types_namespaces_t *chosen) {
    if (chosen->tag == OARLOCK_PLUGIN_TYPES_NAMESPACES_ALL) word("*");
    else string(&chosen->val.one);
}

static void projection(const oarlock_plugin_types_projection_t *wanted) {
    static const char *const KINDS[] = {"keys", "fields", "json"};
    word(KINDS[wanted->tag]);
    if (wanted->tag != OARLOCK_PLUGIN_TYPES_PROJECTION_FIELDS) return;
    for (size_t i = 0; i < wanted->val.fields.len; i++) string(&wanted->val.fields.ptr[i]);
}

// Ends the request; it succeeds unless the test wants an error.
static bool done(error_t *error) {
    add("\n", 1);
    if (next_error == 255) return true;
    *error = (error_t){.tag = next_error};
    if (next_error == OARLOCK_PLUGIN_TYPES_ERROR_THROTTLED) {
        error->val.throttled.message = from_host("slower");
        error->val.throttled.retry_after_ms = (oarlock_bindings_option_u32_t){.is_some = true, .val = 1500};
    } else {
        error->val.invalid = from_host("as the test wants");
    }
    next_error = 255;
    return false;
}

static oarlock_bindings_option_string_t some(const char *text) {
    if (!text) return (oarlock_bindings_option_string_t){0};
    return (oarlock_bindings_option_string_t){.is_some = true, .val = from_host(text)};
}

static oarlock_plugin_types_row_t row_of(const char *name) {
    oarlock_plugin_types_row_t row = {
        .object = {from_host("home"), from_host(name), from_host("uid-1"), from_host("7")},
        .json = some("{\"a\":1}"),
    };
    row.fields.len = 2;
    row.fields.ptr = cabi_realloc(NULL, 0, 8, 2 * sizeof *row.fields.ptr);
    row.fields.ptr[0] = some("\"x\"");
    row.fields.ptr[1] = some(NULL);
    return row;
}

// Two pages, of one row each.
static bool page_of(const oarlock_plugin_types_page_request_t *request, oarlock_plugin_types_page_t *ret,
                    error_t *err) {
    string(&request->continue_token);
    if (!done(err)) return false;
    bool is_first = request->continue_token.len == 0;
    ret->rows.ptr = cabi_realloc(NULL, 0, 8, sizeof *ret->rows.ptr);
    ret->rows.len = 1;
    ret->rows.ptr[0] = row_of(is_first ? "a" : "b");
    ret->continue_token = from_host(is_first ? "more" : "");
    return true;
}

bool oarlock_plugin_event_field(uint8_t which, string_t *pointer, oarlock_bindings_option_string_t *ret,
                                error_t *err) {
    word("event.field");
    word(which == OARLOCK_PLUGIN_EVENT_VERSION_OLD ? "old" : "new");
    string(pointer);
    *ret = some(pointer->len > 2 ? "\"value\"" : NULL);
    return done(err);
}

bool oarlock_plugin_event_fields(uint8_t which, oarlock_bindings_list_string_t *pointers,
                                 oarlock_bindings_list_option_string_t *ret, error_t *err) {
    word("event.fields");
    number(which);
    ret->len = pointers->len;
    ret->ptr = cabi_realloc(NULL, 0, 8, ret->len * sizeof *ret->ptr);
    for (size_t i = 0; i < pointers->len; i++) {
        string(&pointers->ptr[i]);
        ret->ptr[i] = some(i ? NULL : "1");
    }
    return done(err);
}

bool oarlock_plugin_event_json(uint8_t which, string_t *ret, error_t *err) {
    word("event.json");
    number(which);
    *ret = from_host("{}");
    return done(err);
}

bool oarlock_plugin_cache_get(string_t *lister, oarlock_plugin_types_object_key_t *key,
                              oarlock_plugin_types_projection_t *wanted, oarlock_plugin_types_row_t *ret,
                              error_t *err) {
    word("cache.get");
    string(lister);
    string(&key->namespace_);
    string(&key->name);
    projection(wanted);
    *ret = row_of("a");
    return done(err);
}

bool oarlock_plugin_cache_list(string_t *lister, oarlock_plugin_types_namespaces_t *chosen,
                               string_t *selector, oarlock_plugin_types_projection_t *wanted,
                               oarlock_plugin_types_page_request_t *request, oarlock_plugin_types_page_t *ret,
                               error_t *err) {
    word("cache.list");
    string(lister);
    namespaces(chosen);
    string(selector);
    projection(wanted);
    return page_of(request, ret, err);
}

bool oarlock_plugin_cache_by_index(string_t *index, string_t *value,
                                   oarlock_plugin_types_namespaces_t *chosen,
                                   oarlock_plugin_types_projection_t *wanted,
                                   oarlock_plugin_types_page_request_t *request,
                                   oarlock_plugin_types_page_t *ret, error_t *err) {
    word("cache.by-index");
    string(index);
    string(value);
    namespaces(chosen);
    projection(wanted);
    return page_of(request, ret, err);
}

bool oarlock_plugin_cache_index_values(string_t *index, oarlock_bindings_list_string_t *ret, error_t *err) {
    word("cache.index-values");
    string(index);
    ret->len = 2;
    ret->ptr = cabi_realloc(NULL, 0, 8, 2 * sizeof *ret->ptr);
    ret->ptr[0] = from_host("");
    ret->ptr[1] = from_host("n1");
    return done(err);
}

bool oarlock_plugin_cache_has_synced(string_t *lister, bool *ret, error_t *err) {
    word("cache.has-synced");
    string(lister);
    *ret = true;
    return done(err);
}

bool oarlock_plugin_cache_wait_until_seen(string_t *lister, string_t *version, uint32_t timeout_ms,
                                          error_t *err) {
    word("cache.wait-until-seen");
    string(lister);
    string(version);
    number(timeout_ms);
    return done(err);
}

bool oarlock_plugin_client_get(oarlock_plugin_types_group_version_resource_t *target,
                               oarlock_plugin_types_object_key_t *key, string_t *subresource, string_t *ret,
                               error_t *err) {
    word("client.get");
    resource(target);
    string(&key->namespace_);
    string(&key->name);
    string(subresource);
    *ret = from_host("{\"b\":2}");
    return done(err);
}

bool oarlock_plugin_client_list(oarlock_plugin_types_group_version_resource_t *target,
                                oarlock_plugin_types_namespaces_t *chosen, string_t *labels, string_t *fields,
                                oarlock_plugin_types_projection_t *wanted,
                                oarlock_plugin_types_page_request_t *request,
                                oarlock_plugin_types_page_t *ret, error_t *err) {
    word("client.list");
    resource(target);
    namespaces(chosen);
    string(labels);
    string(fields);
    projection(wanted);
    return page_of(request, ret, err);
}

static bool written(oarlock_plugin_client_preconditions_t *preconditions,
                    oarlock_plugin_client_written_t *ret, error_t *err) {
    if (preconditions) {
        optional("uid", &preconditions->uid);
        optional("version", &preconditions->resource_version);
    }
    if (ret) *ret = (oarlock_plugin_client_written_t){from_host("a"), from_host("uid-1"), from_host("8")};
    return done(err);
}

bool oarlock_plugin_client_create(oarlock_plugin_types_group_version_resource_t *target, string_t *ns,
                                  string_t *json, oarlock_plugin_client_written_t *ret, error_t *err) {
    word("client.create");
    resource(target);
    string(ns);
    string(json);
    return written(NULL, ret, err);
}

bool oarlock_plugin_client_apply(oarlock_plugin_types_group_version_resource_t *target,
                                 oarlock_plugin_types_object_key_t *key, string_t *subresource,
                                 string_t *json, bool force,
                                 oarlock_plugin_client_preconditions_t *preconditions,
                                 oarlock_plugin_client_written_t *ret, error_t *err) {
    word(force ? "client.apply, forced" : "client.apply");
    resource(target);
    string(&key->name);
    string(subresource);
    string(json);
    return written(preconditions, ret, err);
}

bool oarlock_plugin_client_patch(oarlock_plugin_types_group_version_resource_t *target,
                                 oarlock_plugin_types_object_key_t *key, string_t *subresource, uint8_t kind,
                                 string_t *body, oarlock_plugin_client_preconditions_t *preconditions,
                                 oarlock_plugin_client_written_t *ret, error_t *err) {
    word("client.patch");
    number(kind);
    resource(target);
    string(&key->name);
    string(subresource);
    string(body);
    return written(preconditions, ret, err);
}

bool oarlock_plugin_client_replace(oarlock_plugin_types_group_version_resource_t *target,
                                   oarlock_plugin_types_object_key_t *key, string_t *subresource,
                                   string_t *json, oarlock_plugin_client_written_t *ret, error_t *err) {
    word("client.replace");
    resource(target);
    string(&key->name);
    string(subresource);
    string(json);
    return written(NULL, ret, err);
}

bool oarlock_plugin_client_delete(oarlock_plugin_types_group_version_resource_t *target,
                                  oarlock_plugin_types_object_key_t *key, uint8_t propagation,
                                  uint32_t *grace_period,
                                  oarlock_plugin_client_preconditions_t *preconditions, error_t *err) {
    word("client.delete");
    resource(target);
    string(&key->name);
    number(propagation);
    if (grace_period) number(*grace_period);
    return written(preconditions, NULL, err);
}

bool oarlock_plugin_work_queue_add(oarlock_plugin_work_queue_work_key_t *key, error_t *err) {
    word("work-queue.add");
    string(&key->kind);
    string(&key->object.name);
    return done(err);
}

bool oarlock_plugin_work_queue_add_after(oarlock_plugin_work_queue_work_key_t *key, uint32_t delay_ms,
                                         error_t *err) {
    word("work-queue.add-after");
    string(&key->kind);
    number(delay_ms);
    return done(err);
}

bool oarlock_plugin_events_emit(oarlock_plugin_types_group_version_resource_t *target,
                                oarlock_plugin_types_object_ref_t *regarding, string_t *kind, uint8_t type,
                                string_t *reason, string_t *note, error_t *err) {
    word("events.emit");
    resource(target);
    string(kind);
    string(&regarding->name);
    number(type);
    string(reason);
    number((double)note->len);
    return done(err);
}

static void pairs(const oarlock_plugin_types_entry_t *list, size_t len) {
    for (size_t i = 0; i < len; i++) {
        string(&list[i].name);
        add("=", 1);
        add((const char *)list[i].value.ptr, list[i].value.len);
    }
}

bool oarlock_plugin_log_enabled(uint8_t level) { return level >= OARLOCK_PLUGIN_LOG_LEVEL_DEBUG; }

void oarlock_plugin_log_log(uint8_t level, string_t *message, oarlock_plugin_log_list_entry_t *list) {
    word("log");
    number(level);
    string(message);
    pairs(list->ptr, list->len);
    add("\n", 1);
}

void oarlock_plugin_clock_now(oarlock_plugin_clock_datetime_t *ret) {
    *ret = (oarlock_plugin_clock_datetime_t){.seconds = 1767225600, .nanoseconds = 250000000};
}

double oarlock_plugin_clock_elapsed_ms(void) { return 42; }

bool oarlock_plugin_config_get(string_t *pointer, oarlock_bindings_option_string_t *ret, error_t *err) {
    word("config.get");
    string(pointer);
    *ret = some(pointer->len ? NULL : "{}");
    return done(err);
}

bool oarlock_plugin_metrics_counter_add(string_t *name, double by,
                                        oarlock_plugin_metrics_list_entry_t *labels, error_t *err) {
    word("counter");
    string(name);
    number(by);
    pairs(labels->ptr, labels->len);
    return done(err);
}

bool oarlock_plugin_metrics_gauge_set(string_t *name, double value,
                                      oarlock_plugin_metrics_list_entry_t *labels, error_t *err) {
    word("gauge");
    string(name);
    number(value);
    pairs(labels->ptr, labels->len);
    return done(err);
}
