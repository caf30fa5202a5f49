// The description of the plugin, as the bindings want it: on the heap, since they free it.

#include <stdlib.h>
#include <string.h>

#include "exports.h"

typedef exports_oarlock_plugin_metadata_subscription_t subscription_t;
typedef exports_oarlock_plugin_metadata_field_condition_t condition_t;
typedef exports_oarlock_plugin_metadata_enqueue_t enqueue_t;

string_t oarlock_give(const char *text) {
    string_t string = {.len = text ? strlen(text) : 0};
    // The bindings free only strings that are not empty.
    if (string.len) {
        string.ptr = malloc(string.len);
        if (!string.ptr) abort();
        memcpy(string.ptr, text, string.len);
    }
    return string;
}

// Returns a list on the heap; NULL if it is empty.
static void *list_of(size_t len, size_t size) {
    if (len == 0) return NULL;
    void *list = calloc(len, size);
    if (!list) abort();
    return list;
}

static oarlock_bindings_list_string_t give_list(const char *const *texts) {
    oarlock_bindings_list_string_t list = {0};
    while (texts && texts[list.len]) list.len++;
    list.ptr = list_of(list.len, sizeof *list.ptr);
    for (size_t i = 0; i < list.len; i++) list.ptr[i] = oarlock_give(texts[i]);
    return list;
}

static oarlock_plugin_types_group_version_resource_t give_gvr(oarlock_gvr target) {
    return (oarlock_plugin_types_group_version_resource_t){
        .group = oarlock_give(target.group),
        .version = oarlock_give(target.version),
        .plural = oarlock_give(target.plural),
    };
}

static oarlock_plugin_types_namespaces_t give_namespaces(const char *ns) {
    if (!ns) return (oarlock_plugin_types_namespaces_t){.tag = OARLOCK_PLUGIN_TYPES_NAMESPACES_ALL};
    return (oarlock_plugin_types_namespaces_t){
        .tag = OARLOCK_PLUGIN_TYPES_NAMESPACES_ONE,
        .val.one = oarlock_give(ns),
    };
}

static oarlock_plugin_work_queue_work_key_t give_work_key(oarlock_work_key key) {
    return (oarlock_plugin_work_queue_work_key_t){
        .kind = oarlock_give(key.kind),
        .object = {.namespace_ = oarlock_give(key.object.ns), .name = oarlock_give(key.object.name)},
    };
}

static uint8_t content(bool metadata_only) {
    return metadata_only ? EXPORTS_OARLOCK_PLUGIN_METADATA_CONTENT_METADATA
                         : EXPORTS_OARLOCK_PLUGIN_METADATA_CONTENT_FULL;
}

static condition_t give_condition(const oarlock_condition *declared) {
    condition_t condition = {.pointer = oarlock_give(declared->pointer), .test.tag = (uint8_t)declared->test};
    switch (declared->test) {
    case OARLOCK_EXISTS:
    case OARLOCK_ABSENT: break;
    case OARLOCK_IN:
    case OARLOCK_NOT_IN: condition.test.val.in = give_list(declared->values); break;
    default: condition.test.val.equals = oarlock_give(declared->value); break;
    }
    return condition;
}

static enqueue_t give_enqueue(const oarlock_enqueue *declared) {
    enqueue_t enqueue = {.tag = (uint8_t)declared->rule};
    uint8_t scope = declared->cluster_scoped ? EXPORTS_OARLOCK_PLUGIN_METADATA_SCOPE_CLUSTER
                                             : EXPORTS_OARLOCK_PLUGIN_METADATA_SCOPE_SAME_NAMESPACE;
    switch (declared->rule) {
    case OARLOCK_ENQUEUE_NOTHING:
    case OARLOCK_ENQUEUE_ITSELF: break;
    case OARLOCK_ENQUEUE_CONTROLLER_OWNER:
        enqueue.val.controller_owner = (exports_oarlock_plugin_metadata_owner_kind_t){
            .group = oarlock_give(declared->group),
            .kind = oarlock_give(declared->at),
            .scope = scope,
        };
        break;
    case OARLOCK_ENQUEUE_POINTER:
    case OARLOCK_ENQUEUE_LABEL:
        enqueue.val.pointer =
            (exports_oarlock_plugin_metadata_named_at_t){.at = oarlock_give(declared->at), .scope = scope};
        break;
    case OARLOCK_ENQUEUE_KEY: enqueue.val.key = give_work_key(declared->key); break;
    }
    return enqueue;
}

static subscription_t give_subscription(const oarlock_subscription *declared) {
    subscription_t subscription = {
        .name = oarlock_give(declared->name),
        .target = give_gvr(declared->target),
        .namespaces = give_namespaces(declared->ns),
        .label_selector = oarlock_give(declared->label_selector),
        .fields = give_list(declared->fields),
        .content = content(declared->metadata_only),
        .resync_seconds = declared->resync_seconds,
        .enqueue = give_enqueue(&declared->enqueue),
        .ignore_own_writes = declared->ignore_own_writes,
    };
    const oarlock_condition *conditions = declared->conditions;
    while (conditions && conditions[subscription.conditions.len].pointer) subscription.conditions.len++;
    subscription.conditions.ptr = list_of(subscription.conditions.len, sizeof *subscription.conditions.ptr);
    for (size_t i = 0; i < subscription.conditions.len; i++) {
        subscription.conditions.ptr[i] = give_condition(&conditions[i]);
    }
    return subscription;
}

static exports_oarlock_plugin_metadata_index_t give_index(const oarlock_index *declared) {
    exports_oarlock_plugin_metadata_index_t index = {
        .name = oarlock_give(declared->name),
        .lister = oarlock_give(declared->lister),
        .source.tag = EXPORTS_OARLOCK_PLUGIN_METADATA_INDEX_SOURCE_OWNER_UID,
    };
    if (declared->label) {
        index.source.tag = EXPORTS_OARLOCK_PLUGIN_METADATA_INDEX_SOURCE_LABEL;
        index.source.val.label = oarlock_give(declared->label);
    } else if (declared->pointer) {
        index.source.tag = EXPORTS_OARLOCK_PLUGIN_METADATA_INDEX_SOURCE_POINTER;
        index.source.val.pointer = oarlock_give(declared->pointer);
    }
    return index;
}

static exports_oarlock_plugin_metadata_schedule_t give_schedule(const oarlock_schedule *declared) {
    exports_oarlock_plugin_metadata_schedule_t schedule = {
        .name = oarlock_give(declared->name),
        .trigger = {.tag = EXPORTS_OARLOCK_PLUGIN_METADATA_TRIGGER_EVERY_SECONDS,
                    .val.every_seconds = declared->every_seconds},
        .at_start = declared->at_start,
    };
    if (declared->cron) {
        schedule.trigger.tag = EXPORTS_OARLOCK_PLUGIN_METADATA_TRIGGER_AT;
        schedule.trigger.val.at = (exports_oarlock_plugin_metadata_wall_times_t){
            .cron = oarlock_give(declared->cron),
            .time_zone = oarlock_give(declared->time_zone),
        };
    }
    if (declared->key) {
        schedule.key.is_some = true;
        schedule.key.val = give_work_key(*declared->key);
    }
    return schedule;
}

void oarlock_give_description(const oarlock_plugin *plugin,
                              exports_oarlock_plugin_metadata_description_t *ret) {
    *ret = (exports_oarlock_plugin_metadata_description_t){
        .name = oarlock_give(plugin->name),
        .version = oarlock_give(plugin->version),
        .stateless = plugin->stateless,
    };
    while (plugin->subscriptions && plugin->subscriptions[ret->subscriptions.len].name)
        ret->subscriptions.len++;
    ret->subscriptions.ptr = list_of(ret->subscriptions.len, sizeof *ret->subscriptions.ptr);
    for (size_t i = 0; i < ret->subscriptions.len; i++) {
        ret->subscriptions.ptr[i] = give_subscription(&plugin->subscriptions[i]);
    }
    while (plugin->reads && plugin->reads[ret->reads.len].name) ret->reads.len++;
    ret->reads.ptr = list_of(ret->reads.len, sizeof *ret->reads.ptr);
    for (size_t i = 0; i < ret->reads.len; i++) {
        const oarlock_read *read = &plugin->reads[i];
        ret->reads.ptr[i] = (exports_oarlock_plugin_metadata_read_t){
            .name = oarlock_give(read->name),
            .target = give_gvr(read->target),
            .namespaces = give_namespaces(read->ns),
            .content = content(read->metadata_only),
            .wakes = read->wakes,
        };
    }
    while (plugin->indices && plugin->indices[ret->indices.len].name) ret->indices.len++;
    ret->indices.ptr = list_of(ret->indices.len, sizeof *ret->indices.ptr);
    for (size_t i = 0; i < ret->indices.len; i++) ret->indices.ptr[i] = give_index(&plugin->indices[i]);
    while (plugin->requests && plugin->requests[ret->requests.len].verbs) ret->requests.len++;
    ret->requests.ptr = list_of(ret->requests.len, sizeof *ret->requests.ptr);
    for (size_t i = 0; i < ret->requests.len; i++) {
        const oarlock_request *request = &plugin->requests[i];
        ret->requests.ptr[i] = (exports_oarlock_plugin_metadata_request_t){
            .target = give_gvr(request->target),
            .namespaces = give_namespaces(request->ns),
            .verbs = give_list(request->verbs),
            .subresource = oarlock_give(request->subresource),
        };
    }
    while (plugin->schedules && plugin->schedules[ret->schedules.len].name) ret->schedules.len++;
    ret->schedules.ptr = list_of(ret->schedules.len, sizeof *ret->schedules.ptr);
    for (size_t i = 0; i < ret->schedules.len; i++)
        ret->schedules.ptr[i] = give_schedule(&plugin->schedules[i]);
}

_Static_assert(OARLOCK_LESS == EXPORTS_OARLOCK_PLUGIN_METADATA_TEST_LESS, "the order of tests");
_Static_assert(OARLOCK_IN == EXPORTS_OARLOCK_PLUGIN_METADATA_TEST_IN, "the order of tests");
_Static_assert(OARLOCK_ENQUEUE_KEY == EXPORTS_OARLOCK_PLUGIN_METADATA_ENQUEUE_KEY, "the order of rules");
