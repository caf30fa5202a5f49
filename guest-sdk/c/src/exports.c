// The functions that the host calls. Each ends the life of what the SDK has given to the plugin.
//
// The build defines OARLOCK_HANDLER and OARLOCK_RECONCILER for what the world exports. A unit test has both.

#include "exports.h"

#include "arena.h"

#ifndef __wasm__
#define OARLOCK_HANDLER
#define OARLOCK_RECONCILER
#endif

bool oarlock_is_started;

#if defined(OARLOCK_HANDLER) || defined(OARLOCK_RECONCILER)
// Calls `start` before the first call of the instance.
static oarlock_error started(void) {
    if (oarlock_is_started) return oarlock_ok();
    if (oarlock_plugin_definition.start) OARLOCK_TRY(oarlock_plugin_definition.start());
    oarlock_is_started = true;
    return oarlock_ok();
}

// Ends a call: turns its result into that of the bindings.
static bool end(oarlock_error error, oarlock_plugin_types_failure_t *failure) {
    switch (error.code) {
    case OARLOCK_OK: break;
    case OARLOCK_INVALID:
    case OARLOCK_NOT_DECLARED:
    case OARLOCK_LIMIT_EXCEEDED:
    case OARLOCK_TERMINAL:
        failure->tag = OARLOCK_PLUGIN_TYPES_FAILURE_TERMINAL;
        failure->val.terminal = oarlock_give(error.message);
        break;
    case OARLOCK_THROTTLED:
    case OARLOCK_RETRY_AFTER:
        if (error.after_ms) {
            failure->tag = OARLOCK_PLUGIN_TYPES_FAILURE_RETRY_AFTER;
            failure->val.retry_after.message = oarlock_give(error.message);
            failure->val.retry_after.after_ms = error.after_ms;
            break;
        }
        // Fallthrough.
    default:
        failure->tag = OARLOCK_PLUGIN_TYPES_FAILURE_RETRY;
        failure->val.retry = oarlock_give(error.message);
        break;
    }
    oarlock_arena_reset();
    return error.code == OARLOCK_OK;
}
#endif

bool exports_oarlock_plugin_metadata_describe(exports_oarlock_plugin_metadata_description_t *ret,
                                              string_t *err) {
    oarlock_plugin description = oarlock_plugin_definition;
    oarlock_error error = description.describe ? description.describe(&description) : oarlock_ok();
    if (error.code) *err = oarlock_give(error.message);
    else oarlock_give_description(&description, ret);
    oarlock_arena_reset();
    return error.code == OARLOCK_OK;
}

#ifdef OARLOCK_HANDLER
bool exports_oarlock_plugin_handler_on_add(exports_oarlock_plugin_handler_added_t *event,
                                           exports_oarlock_plugin_handler_failure_t *err) {
    oarlock_error error = started();
    if (!error.code && oarlock_plugin_definition.on_add) {
        const oarlock_added added = {
            .subscription = oarlock_text(event->subscription),
            .object = oarlock_object_from(&event->object),
            .is_in_initial_list = event->is_in_initial_list,
            .fields = oarlock_fields_from(&event->fields),
            .n_fields = event->fields.len,
        };
        error = oarlock_plugin_definition.on_add(&added);
    }
    return end(error, err);
}

bool exports_oarlock_plugin_handler_on_update(exports_oarlock_plugin_handler_updated_t *event,
                                              exports_oarlock_plugin_handler_failure_t *err) {
    oarlock_error error = started();
    if (!error.code && oarlock_plugin_definition.on_update) {
        const oarlock_updated updated = {
            .subscription = oarlock_text(event->subscription),
            .object = oarlock_object_from(&event->object),
            .old_resource_version = oarlock_text(event->old_resource_version),
            .old_uid = oarlock_optional(&event->old_uid),
            .fields = oarlock_fields_from(&event->fields),
            .n_fields = event->fields.len,
            .old_fields = oarlock_fields_from(&event->old_fields),
            .n_old_fields = event->old_fields.len,
        };
        error = oarlock_plugin_definition.on_update(&updated);
    }
    return end(error, err);
}

bool exports_oarlock_plugin_handler_on_delete(exports_oarlock_plugin_handler_deleted_t *event,
                                              exports_oarlock_plugin_handler_failure_t *err) {
    oarlock_error error = started();
    if (!error.code && oarlock_plugin_definition.on_delete) {
        const oarlock_deleted deleted = {
            .subscription = oarlock_text(event->subscription),
            .object = oarlock_object_from(&event->object),
            .final_state_unknown = event->final_state_unknown,
            .fields = oarlock_fields_from(&event->fields),
            .n_fields = event->fields.len,
        };
        error = oarlock_plugin_definition.on_delete(&deleted);
    }
    return end(error, err);
}

bool exports_oarlock_plugin_handler_on_synced(exports_oarlock_plugin_handler_synced_t *event,
                                              exports_oarlock_plugin_handler_failure_t *err) {
    oarlock_error error = started();
    if (!error.code && oarlock_plugin_definition.on_synced) {
        const oarlock_synced synced = {
            .subscription = oarlock_text(event->subscription),
            .remaining = event->remaining,
        };
        error = oarlock_plugin_definition.on_synced(&synced);
    }
    return end(error, err);
}
#endif

#ifdef OARLOCK_RECONCILER
bool exports_oarlock_plugin_reconciler_reconcile(exports_oarlock_plugin_reconciler_work_key_t *key,
                                                 exports_oarlock_plugin_reconciler_outcome_t *ret,
                                                 exports_oarlock_plugin_reconciler_failure_t *err) {
    oarlock_error error = started();
    oarlock_outcome outcome = {0};
    if (!error.code && oarlock_plugin_definition.reconcile) {
        const oarlock_work_key work_key = {
            .kind = oarlock_text(key->kind),
            .object = {.ns = oarlock_text(key->object.namespace_), .name = oarlock_text(key->object.name)},
        };
        error = oarlock_plugin_definition.reconcile(&work_key, &outcome);
    }
    ret->tag = EXPORTS_OARLOCK_PLUGIN_RECONCILER_OUTCOME_DONE;
    if (outcome.requeue_after_ms) {
        ret->tag = EXPORTS_OARLOCK_PLUGIN_RECONCILER_OUTCOME_REQUEUE_AFTER;
        ret->val.requeue_after = outcome.requeue_after_ms;
    }
    return end(error, err);
}
#endif
