// Reconciles the objects of a resource: compares what is with what should be, and logs it.
//
// Ownership of memory: this file frees the arguments of its functions and the results of the host's. The
// bindings free what the functions here return, which must be on the heap. Arguments of the host's functions
// are lent.

#include <stdlib.h>

#include "reconciler_plugin.h"

typedef reconciler_plugin_string_t string_t;
typedef exports_oarlock_plugin_metadata_group_version_resource_t resource_t;
typedef exports_oarlock_plugin_metadata_subscription_t subscription_t;
typedef exports_oarlock_plugin_metadata_read_t read_t;
typedef exports_oarlock_plugin_reconciler_failure_t failure_t;

// Returns a string constant, lent.
static string_t lend(const char *text) {
    string_t string;
    reconciler_plugin_string_set(&string, text);
    return string;
}

// Returns a copy of a string constant, which the bindings free.
static string_t give(const char *text) {
    string_t string;
    reconciler_plugin_string_dup(&string, text);
    return string;
}

static resource_t resource(void) {
    return (resource_t){.group = give("apps"), .version = give("v1"), .plural = give("deployments")};
}

// Says what the plugin watches and reads. The host asks when it loads the plugin.
bool exports_oarlock_plugin_metadata_describe(exports_oarlock_plugin_metadata_description_t *ret, string_t *err) {
    (void)err;
    subscription_t *objects = malloc(sizeof *objects);
    *objects = (subscription_t){
        .name = give("objects"),
        .target = resource(),
        .namespaces.tag = OARLOCK_PLUGIN_TYPES_NAMESPACES_ALL,
        .content = EXPORTS_OARLOCK_PLUGIN_METADATA_CONTENT_FULL,
        .enqueue.tag = EXPORTS_OARLOCK_PLUGIN_METADATA_ENQUEUE_ITSELF,
    };
    read_t *read = malloc(sizeof *read);
    *read = (read_t){
        .name = give("objects"),
        .target = resource(),
        .namespaces.tag = OARLOCK_PLUGIN_TYPES_NAMESPACES_ALL,
        .content = EXPORTS_OARLOCK_PLUGIN_METADATA_CONTENT_FULL,
    };
    *ret = (exports_oarlock_plugin_metadata_description_t){
        .name = give("my-plugin"),
        .version = give("0.1.0"),
        .subscriptions = {.ptr = objects, .len = 1},
        .reads = {.ptr = read, .len = 1},
        .stateless = true,
    };
    return true;
}

// Writes a line to the log of the plugin. `created` may be NULL.
static void info(const char *text, const oarlock_plugin_types_object_key_t *object, const string_t *created) {
    oarlock_plugin_types_entry_t pairs[3] = {
        {.name = lend("namespace"), .value = object->namespace_},
        {.name = lend("name"), .value = object->name},
    };
    oarlock_plugin_log_list_entry_t list = {.ptr = pairs, .len = 2};
    if (created) pairs[list.len++] = (oarlock_plugin_types_entry_t){.name = lend("created"), .value = *created};
    string_t message = lend(text);
    oarlock_plugin_log_log(OARLOCK_PLUGIN_LOG_LEVEL_INFO, &message, &list);
}

// Is called for an object after it appeared, changed or went.
bool exports_oarlock_plugin_reconciler_reconcile(exports_oarlock_plugin_reconciler_work_key_t *key,
                                                 exports_oarlock_plugin_reconciler_outcome_t *ret, failure_t *err) {
    string_t lister = lend("objects");
    string_t pointer = lend("/metadata/creationTimestamp");
    oarlock_plugin_types_projection_t fields = {
        .tag = OARLOCK_PLUGIN_TYPES_PROJECTION_FIELDS,
        .val.fields = {.ptr = &pointer, .len = 1},
    };
    oarlock_plugin_types_row_t row;
    oarlock_plugin_types_error_t error;
    bool done = true;
    ret->tag = EXPORTS_OARLOCK_PLUGIN_RECONCILER_OUTCOME_DONE;
    if (oarlock_plugin_cache_get(&lister, &key->object, &fields, &row, &error)) {
        // Fields are JSON text.
        info("reconciled", &key->object, row.fields.ptr[0].is_some ? &row.fields.ptr[0].val : NULL);
        oarlock_plugin_types_row_free(&row);
    } else if (error.tag == OARLOCK_PLUGIN_TYPES_ERROR_NOT_FOUND) {
        info("gone", &key->object, NULL);
        oarlock_plugin_types_error_free(&error);
    } else {
        // The host calls again with the same key, later.
        *err = (failure_t){.tag = OARLOCK_PLUGIN_TYPES_FAILURE_RETRY, .val.retry = give("cannot read the cache")};
        oarlock_plugin_types_error_free(&error);
        done = false;
    }
    exports_oarlock_plugin_reconciler_work_key_free(key);
    return done;
}
