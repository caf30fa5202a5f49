// The host in memory: its state, and its calls of the plugin.

#include "fake.h"

#include <stdlib.h>
#include <string.h>

#include "../src/exports.h"

// 2026-01-01T00:00:00Z.
static const double START_MS = 1767225600000;

state_t oarlock_fake;

static description_t described;

// === The state ===

static const char *normalized(const char *function, const char *json) {
    const char *text = oarlock_fake_normalized(json);
    if (!text || *text != '{') oarlock_fake_misuse("%s: this is not a JSON object: %s", function, json);
    return text;
}

// Has the plugin describe itself, before which it declares nothing.
static oarlock_error describe(void) {
    if (oarlock_fake.description) exports_oarlock_plugin_metadata_description_free(&described);
    oarlock_fake.description = NULL;
    oarlock_fake.describe_error = NULL;
    string_t error = {0};
    if (exports_oarlock_plugin_metadata_describe(&described, &error)) {
        oarlock_fake.description = &described;
        return oarlock_ok();
    }
    oarlock_fake.describe_error = oarlock_fake_text(error);
    if (error.len) free(error.ptr);
    return oarlock_terminal(oarlock_fake.describe_error);
}

void oarlock_host_reset(void) {
    if (oarlock_fake.description) exports_oarlock_plugin_metadata_description_free(&described);
    oarlock_fake_free();
    oarlock_fake = (state_t){.config = "{}", .now_ms = START_MS, .started_ms = START_MS, .page_size = 1000};
    text_t *texts[] = {&oarlock_fake.writes, &oarlock_fake.events, &oarlock_fake.logs, &oarlock_fake.queue};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) oarlock_fake_write(texts[i], "%s", "");
    oarlock_is_started = false;
    describe();
}

oarlock_error oarlock_host_configure(const char *json) {
    oarlock_fake.config = normalized("oarlock_host_configure", json);
    return describe();
}

static object_t *insert(const char *function, const char *target, const char *json) {
    const char *object = normalized(function, json);
    if (!*oarlock_fake_string_at(object, "/metadata/name")) {
        oarlock_fake_misuse("%s: the object has no /metadata/name: %s", function, object);
    }
    return oarlock_fake_put(target, object);
}

oarlock_object oarlock_host_insert(oarlock_gvr target, const char *json) {
    const object_t *object = insert("oarlock_host_insert", oarlock_fake_target(target), json);
    return (oarlock_object){
        .ns = object->key.ns,
        .name = object->key.name,
        .uid = oarlock_fake_string_at(object->json, "/metadata/uid"),
        .resource_version = oarlock_fake_string_at(object->json, "/metadata/resourceVersion"),
    };
}

void oarlock_host_remove(oarlock_gvr target, oarlock_key key) {
    const object_t *object = oarlock_fake_find(oarlock_fake_target(target), key);
    if (object) oarlock_fake_remove(object);
}

const char *oarlock_host_object(oarlock_gvr target, oarlock_key key) {
    const object_t *object = oarlock_fake_find(oarlock_fake_target(target), key);
    return object ? object->json : NULL;
}

void oarlock_host_set_page_size(size_t n_objects) { oarlock_fake.page_size = n_objects ? n_objects : 1; }

void oarlock_host_set_time(double ms) { oarlock_fake.now_ms = ms; }

void oarlock_host_advance(double ms) { oarlock_fake.now_ms += ms; }

const char *oarlock_host_writes(void) { return oarlock_fake.writes.at; }
const char *oarlock_host_events(void) { return oarlock_fake.events.at; }
const char *oarlock_host_logs(void) { return oarlock_fake.logs.at; }
const char *oarlock_host_queue(void) { return oarlock_fake.queue.at; }

// === Calls of the plugin ===

static const description_t *description(void) {
    if (!oarlock_fake.description && !oarlock_fake.describe_error) {
        oarlock_fake_misuse("the host is not reset: run the test with OARLOCK_RUN_TEST");
    }
    if (!oarlock_fake.description) {
        oarlock_fake_misuse("the plugin does not describe itself: %s", oarlock_fake.describe_error);
    }
    return oarlock_fake.description;
}

static const exports_oarlock_plugin_metadata_subscription_t *subscription_of(const char *name) {
    const exports_oarlock_plugin_metadata_list_subscription_t *declared = &description()->subscriptions;
    text_t names = {0};
    for (size_t i = 0; i < declared->len; i++) {
        const char *other = oarlock_fake_text(declared->ptr[i].name);
        if (!strcmp(other, name)) return &declared->ptr[i];
        oarlock_fake_write(&names, "%s%s", i ? ", " : "", other);
    }
    oarlock_fake_misuse("the plugin declares no subscription %s; it declares %s", name,
                        names.at ? names.at : "none");
}

// Returns the result of a call, and frees what the bindings would free.
static oarlock_error result(bool succeeded, oarlock_plugin_types_failure_t *failure) {
    oarlock_fake.event[OARLOCK_OLD] = oarlock_fake.event[OARLOCK_NEW] = NULL;
    if (succeeded) return oarlock_ok();
    oarlock_error error = {0};
    string_t message = failure->val.retry;
    switch (failure->tag) {
    case OARLOCK_PLUGIN_TYPES_FAILURE_RETRY_AFTER:
        message = failure->val.retry_after.message;
        error = oarlock_retry_after(oarlock_fake_text(message), failure->val.retry_after.after_ms);
        break;
    case OARLOCK_PLUGIN_TYPES_FAILURE_TERMINAL:
        message = failure->val.terminal;
        error = oarlock_terminal(oarlock_fake_text(message));
        break;
    default: error = oarlock_retry(oarlock_fake_text(message)); break;
    }
    if (message.len) free(message.ptr);
    return error;
}

static const object_t *existing(const char *function, const char *target, oarlock_key key) {
    const object_t *object = oarlock_fake_find(target, key);
    if (!object) oarlock_fake_misuse("%s: there is no %s %s", function, target, oarlock_fake_place(key));
    return object;
}

static oarlock_error add(const char *name, const char *json, bool is_initial) {
    const exports_oarlock_plugin_metadata_subscription_t *subscription = subscription_of(name);
    const object_t *object = insert("oarlock_host_add", oarlock_fake_target_of(&subscription->target), json);
    oarlock_fake.event[OARLOCK_NEW] = object->json;
    exports_oarlock_plugin_handler_added_t added = {
        .subscription = oarlock_fake_string(name),
        .object = oarlock_fake_ref(object->json),
        .is_in_initial_list = is_initial,
        .fields = oarlock_fake_fields(object->json, &subscription->fields),
    };
    oarlock_plugin_types_failure_t failure;
    return result(exports_oarlock_plugin_handler_on_add(&added, &failure), &failure);
}

oarlock_error oarlock_host_add(const char *subscription, const char *json) {
    return add(subscription, json, false);
}

oarlock_error oarlock_host_add_initial(const char *subscription, const char *json) {
    return add(subscription, json, true);
}

oarlock_error oarlock_host_update(const char *name, const char *json) {
    const char *function = "oarlock_host_update";
    const exports_oarlock_plugin_metadata_subscription_t *subscription = subscription_of(name);
    const char *target = oarlock_fake_target_of(&subscription->target);
    const char *old = existing(function, target, oarlock_fake_key_of(normalized(function, json)))->json;
    const char *new = insert(function, target, json)->json;
    oarlock_fake.event[OARLOCK_OLD] = old;
    oarlock_fake.event[OARLOCK_NEW] = new;
    const char *old_uid = oarlock_fake_string_at(old, "/metadata/uid");
    bool is_another = strcmp(old_uid, oarlock_fake_string_at(new, "/metadata/uid")) != 0;
    exports_oarlock_plugin_handler_updated_t updated = {
        .subscription = oarlock_fake_string(name),
        .object = oarlock_fake_ref(new),
        .old_resource_version = oarlock_fake_ref(old).resource_version,
        .old_uid = oarlock_fake_option(is_another ? old_uid : NULL),
        .fields = oarlock_fake_fields(new, &subscription->fields),
        .old_fields = oarlock_fake_fields(old, &subscription->fields),
    };
    oarlock_plugin_types_failure_t failure;
    return result(exports_oarlock_plugin_handler_on_update(&updated, &failure), &failure);
}

oarlock_error oarlock_host_delete(const char *name, oarlock_key key) {
    const exports_oarlock_plugin_metadata_subscription_t *subscription = subscription_of(name);
    const char *target = oarlock_fake_target_of(&subscription->target);
    const object_t *object = existing("oarlock_host_delete", target, key);
    oarlock_fake_remove(object);
    oarlock_fake.event[OARLOCK_OLD] = object->json;
    exports_oarlock_plugin_handler_deleted_t deleted = {
        .subscription = oarlock_fake_string(name),
        .object = oarlock_fake_ref(object->json),
        .fields = oarlock_fake_fields(object->json, &subscription->fields),
    };
    oarlock_plugin_types_failure_t failure;
    return result(exports_oarlock_plugin_handler_on_delete(&deleted, &failure), &failure);
}

oarlock_error oarlock_host_synced(const char *subscription, uint32_t remaining) {
    subscription_of(subscription);
    exports_oarlock_plugin_handler_synced_t synced = {
        .subscription = oarlock_fake_string(subscription),
        .remaining = remaining,
    };
    oarlock_plugin_types_failure_t failure;
    return result(exports_oarlock_plugin_handler_on_synced(&synced, &failure), &failure);
}

oarlock_error oarlock_host_reconcile(oarlock_work_key key, oarlock_outcome *outcome) {
    description();
    if (!oarlock_plugin_definition.reconcile) oarlock_fake_misuse("the plugin has no function reconcile");
    exports_oarlock_plugin_reconciler_work_key_t work_key = {
        .kind = oarlock_fake_string(key.kind),
        .object = {.namespace_ = oarlock_fake_string(key.object.ns ? key.object.ns : ""),
                   .name = oarlock_fake_string(key.object.name ? key.object.name : "")},
    };
    exports_oarlock_plugin_reconciler_outcome_t answer;
    oarlock_plugin_types_failure_t failure;
    bool succeeded = exports_oarlock_plugin_reconciler_reconcile(&work_key, &answer, &failure);
    bool is_requeued = succeeded && answer.tag == EXPORTS_OARLOCK_PLUGIN_RECONCILER_OUTCOME_REQUEUE_AFTER;
    if (outcome) outcome->requeue_after_ms = is_requeued ? answer.val.requeue_after : 0;
    return result(succeeded, &failure);
}
