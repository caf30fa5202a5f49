// Logs the objects of a resource when they appear, change and go.
//
// Ownership of memory: this file frees the arguments of its functions and the results of the host's. The
// bindings free what the functions here return, which must be on the heap. Arguments of the host's functions
// are lent.

#include <stdlib.h>

#include "handler_plugin.h"

typedef handler_plugin_string_t string_t;
typedef exports_oarlock_plugin_handler_failure_t failure_t;
typedef exports_oarlock_plugin_handler_object_ref_t object_ref_t;

// Returns a string constant, lent.
static string_t lend(const char *text) {
    string_t string;
    handler_plugin_string_set(&string, text);
    return string;
}

// Returns a copy of a string constant, which the bindings free.
static string_t give(const char *text) {
    string_t string;
    handler_plugin_string_dup(&string, text);
    return string;
}

// Says what the plugin watches. The host asks when it loads the plugin.
bool exports_oarlock_plugin_metadata_describe(exports_oarlock_plugin_metadata_description_t *ret, string_t *err) {
    (void)err;
    exports_oarlock_plugin_metadata_subscription_t *objects = malloc(sizeof *objects);
    *objects = (exports_oarlock_plugin_metadata_subscription_t){
        .name = give("objects"),
        .target = {.group = give("apps"), .version = give("v1"), .plural = give("deployments")},
        .namespaces.tag = OARLOCK_PLUGIN_TYPES_NAMESPACES_ALL,
        .content = EXPORTS_OARLOCK_PLUGIN_METADATA_CONTENT_FULL,
        .enqueue.tag = EXPORTS_OARLOCK_PLUGIN_METADATA_ENQUEUE_NOTHING,
    };
    *ret = (exports_oarlock_plugin_metadata_description_t){
        .name = give("my-plugin"),
        .version = give("0.1.0"),
        .subscriptions = {.ptr = objects, .len = 1},
        .stateless = true,
    };
    return true;
}

// Writes a line to the log of the plugin. `created` may be NULL.
static void info(const char *text, const object_ref_t *object, const string_t *created) {
    oarlock_plugin_types_entry_t pairs[3] = {
        {.name = lend("namespace"), .value = object->namespace_},
        {.name = lend("name"), .value = object->name},
    };
    oarlock_plugin_log_list_entry_t list = {.ptr = pairs, .len = 2};
    if (created) pairs[list.len++] = (oarlock_plugin_types_entry_t){.name = lend("created"), .value = *created};
    string_t message = lend(text);
    oarlock_plugin_log_log(OARLOCK_PLUGIN_LOG_LEVEL_INFO, &message, &list);
}

// An object exists, was created, or began to match.
bool exports_oarlock_plugin_handler_on_add(exports_oarlock_plugin_handler_added_t *added, failure_t *err) {
    // Fields are read by their JSON pointers, as JSON text.
    string_t pointer = lend("/metadata/creationTimestamp");
    handler_plugin_option_string_t created;
    oarlock_plugin_types_error_t error;
    bool done = oarlock_plugin_event_field(OARLOCK_PLUGIN_EVENT_VERSION_NEW, &pointer, &created, &error);
    if (done) {
        info("added", &added->object, created.is_some ? &created.val : NULL);
        handler_plugin_option_string_free(&created);
    } else {
        // The host calls again with the same object, later.
        *err = (failure_t){.tag = OARLOCK_PLUGIN_TYPES_FAILURE_RETRY, .val.retry = give("cannot read the object")};
        oarlock_plugin_types_error_free(&error);
    }
    exports_oarlock_plugin_handler_added_free(added);
    return done;
}

bool exports_oarlock_plugin_handler_on_update(exports_oarlock_plugin_handler_updated_t *updated, failure_t *err) {
    (void)err;
    info("updated", &updated->object, NULL);
    exports_oarlock_plugin_handler_updated_free(updated);
    return true;
}

bool exports_oarlock_plugin_handler_on_delete(exports_oarlock_plugin_handler_deleted_t *deleted, failure_t *err) {
    (void)err;
    info("deleted", &deleted->object, NULL);
    exports_oarlock_plugin_handler_deleted_free(deleted);
    return true;
}

// All objects that existed when the plugin started have been handled.
bool exports_oarlock_plugin_handler_on_synced(exports_oarlock_plugin_handler_synced_t *synced, failure_t *err) {
    (void)err;
    exports_oarlock_plugin_handler_synced_free(synced);
    return true;
}
