// Reconciles the objects of a resource: compares what is with what should be, and logs it.
//
// The SDK owns all memory: strings live until the function that the host called returns.

#include "oarlock.h"

// Is called for an object after it appeared, changed or went.
static oarlock_error reconcile(const oarlock_work_key *key, oarlock_outcome *outcome) {
    // `outcome->requeue_after_ms = 60000;` would have the host call again after a minute.
    (void)outcome;
    const char *const fields[] = {"/metadata/creationTimestamp", NULL};
    oarlock_row row;
    bool found;
    // After an error the host calls again with the same key, later.
    OARLOCK_TRY(oarlock_cache_get("objects", key->object, (oarlock_select){.fields = fields}, &row, &found));
    if (!found) {
        oarlock_info("gone", "namespace", key->object.ns, "name", key->object.name);
        return oarlock_ok();
    }
    // Fields are JSON texts.
    const char *created = NULL;
    oarlock_json_string(row.fields[0], &created);
    oarlock_info("reconciled", "namespace", key->object.ns, "name", key->object.name, "created", created);
    return oarlock_ok();
}

// What the plugin watches and reads, and the function that the host calls. Lists end with {0}.
OARLOCK_PLUGIN = {
    .name = "my-plugin",
    .version = "0.1.0",
    // It keeps nothing between calls.
    .stateless = true,
    .subscriptions =
        (const oarlock_subscription[]){
            {
                .name = "objects",
                .target = {"apps", "v1", "deployments"},
                .enqueue = {.rule = OARLOCK_ENQUEUE_ITSELF},
            },
            {0},
        },
    .reads =
        (const oarlock_read[]){
            {.name = "objects", .target = {"apps", "v1", "deployments"}},
            {0},
        },
    .reconcile = reconcile,
};
