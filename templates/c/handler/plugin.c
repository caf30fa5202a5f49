// Logs the objects of a resource when they appear, change and go.
//
// The SDK owns all memory: strings live until the function that the host called returns.

#include "oarlock.h"

// An object exists, was created, or began to match.
static oarlock_error on_add(const oarlock_added *added) {
    // Fields are read by their JSON pointers, as JSON text.
    const char *json;
    const char *created = NULL;
    // After an error the host calls again with the same object, later.
    OARLOCK_TRY(oarlock_event_field(OARLOCK_NEW, "/metadata/creationTimestamp", &json));
    oarlock_json_string(json, &created);
    oarlock_info("added", "namespace", added->object.ns, "name", added->object.name, "created", created);
    return oarlock_ok();
}

static oarlock_error on_update(const oarlock_updated *updated) {
    oarlock_info("updated", "namespace", updated->object.ns, "name", updated->object.name);
    return oarlock_ok();
}

static oarlock_error on_delete(const oarlock_deleted *deleted) {
    oarlock_info("deleted", "namespace", deleted->object.ns, "name", deleted->object.name);
    return oarlock_ok();
}

// What the plugin watches, and the functions that the host calls. Lists end with {0}. With
// `.fields = (const char *[]){"/spec/replicas", NULL}` the host would call only when that field changes.
OARLOCK_PLUGIN = {
    .name = "my-plugin",
    .version = "0.1.0",
    // It keeps nothing between calls.
    .stateless = true,
    .subscriptions =
        (const oarlock_subscription[]){
            {.name = "objects", .target = {"apps", "v1", "deployments"}},
            {0},
        },
    .on_add = on_add,
    .on_update = on_update,
    .on_delete = on_delete,
};
