// Requests to the API server.

#include "convert.h"

static const oarlock_write ANY = {0};

static oarlock_bindings_option_string_t optional(const char *text) {
    return (oarlock_bindings_option_string_t){.is_some = text != NULL, .val = oarlock_lend(text)};
}

static oarlock_plugin_client_preconditions_t preconditions(const oarlock_write *write) {
    return (oarlock_plugin_client_preconditions_t){
        .uid = optional(write->uid),
        .resource_version = optional(write->resource_version),
    };
}

// Returns the result of a write.
static oarlock_error result(bool done, const char *ns, const oarlock_plugin_client_written_t *answer,
                            const oarlock_plugin_types_error_t *error, oarlock_written *written) {
    if (!done) return oarlock_error_from(error);
    if (written) {
        *written = (oarlock_written){
            .ns = oarlock_format("%s", ns ? ns : ""),
            .name = oarlock_text(answer->name),
            .uid = oarlock_text(answer->uid),
            .resource_version = oarlock_text(answer->resource_version),
        };
    }
    return oarlock_ok();
}

oarlock_write oarlock_if_unchanged(oarlock_object object) {
    return (oarlock_write){.uid = object.uid, .resource_version = object.resource_version};
}

oarlock_error oarlock_client_get(oarlock_gvr target, oarlock_key key, const char *subresource,
                                 const char **json) {
    oarlock_plugin_types_group_version_resource_t resource = oarlock_lend_gvr(target);
    oarlock_plugin_types_object_key_t at = oarlock_lend_key(key);
    string_t part = oarlock_lend(subresource);
    string_t answer;
    oarlock_plugin_types_error_t error;
    *json = NULL;
    if (oarlock_plugin_client_get(&resource, &at, &part, &answer, &error)) {
        *json = oarlock_text(answer);
        return oarlock_ok();
    }
    return error.tag == OARLOCK_PLUGIN_TYPES_ERROR_NOT_FOUND ? oarlock_ok() : oarlock_error_from(&error);
}

oarlock_error oarlock_client_create(oarlock_gvr target, const char *ns, const char *json,
                                    oarlock_written *written) {
    oarlock_plugin_types_group_version_resource_t resource = oarlock_lend_gvr(target);
    string_t in = oarlock_lend(ns);
    string_t body = oarlock_lend(json);
    oarlock_plugin_client_written_t answer;
    oarlock_plugin_types_error_t error;
    bool done = oarlock_plugin_client_create(&resource, &in, &body, &answer, &error);
    return result(done, ns, &answer, &error, written);
}

oarlock_error oarlock_client_apply(oarlock_gvr target, oarlock_key key, const char *json,
                                   const oarlock_write *write, oarlock_written *written) {
    if (!write) write = &ANY;
    oarlock_plugin_types_group_version_resource_t resource = oarlock_lend_gvr(target);
    oarlock_plugin_types_object_key_t at = oarlock_lend_key(key);
    string_t part = oarlock_lend(write->subresource);
    string_t body = oarlock_lend(json);
    oarlock_plugin_client_preconditions_t conditions = preconditions(write);
    oarlock_plugin_client_written_t answer;
    oarlock_plugin_types_error_t error;
    bool done =
        oarlock_plugin_client_apply(&resource, &at, &part, &body, write->force, &conditions, &answer, &error);
    return result(done, key.ns, &answer, &error, written);
}

oarlock_error oarlock_client_patch(oarlock_gvr target, oarlock_key key, oarlock_patch_kind kind,
                                   const char *body, const oarlock_write *write, oarlock_written *written) {
    if (!write) write = &ANY;
    oarlock_plugin_types_group_version_resource_t resource = oarlock_lend_gvr(target);
    oarlock_plugin_types_object_key_t at = oarlock_lend_key(key);
    string_t part = oarlock_lend(write->subresource);
    string_t patch = oarlock_lend(body);
    oarlock_plugin_client_preconditions_t conditions = preconditions(write);
    oarlock_plugin_client_written_t answer;
    oarlock_plugin_types_error_t error;
    bool done = oarlock_plugin_client_patch(&resource, &at, &part, (oarlock_plugin_client_patch_kind_t)kind,
                                            &patch, &conditions, &answer, &error);
    return result(done, key.ns, &answer, &error, written);
}

oarlock_error oarlock_client_replace(oarlock_gvr target, oarlock_key key, const char *subresource,
                                     const char *json, oarlock_written *written) {
    oarlock_plugin_types_group_version_resource_t resource = oarlock_lend_gvr(target);
    oarlock_plugin_types_object_key_t at = oarlock_lend_key(key);
    string_t part = oarlock_lend(subresource);
    string_t body = oarlock_lend(json);
    oarlock_plugin_client_written_t answer;
    oarlock_plugin_types_error_t error;
    bool done = oarlock_plugin_client_replace(&resource, &at, &part, &body, &answer, &error);
    return result(done, key.ns, &answer, &error, written);
}

oarlock_error oarlock_client_delete_with(oarlock_gvr target, oarlock_key key, const oarlock_write *write,
                                         oarlock_propagation propagation, int32_t grace_period_seconds) {
    if (!write) write = &ANY;
    oarlock_plugin_types_group_version_resource_t resource = oarlock_lend_gvr(target);
    oarlock_plugin_types_object_key_t at = oarlock_lend_key(key);
    uint32_t grace_period = (uint32_t)grace_period_seconds;
    oarlock_plugin_client_preconditions_t conditions = preconditions(write);
    oarlock_plugin_types_error_t error;
    bool done =
        oarlock_plugin_client_delete(&resource, &at, (oarlock_plugin_client_propagation_t)propagation,
                                     grace_period_seconds < 0 ? NULL : &grace_period, &conditions, &error);
    bool is_gone = !done && error.tag == OARLOCK_PLUGIN_TYPES_ERROR_NOT_FOUND;
    return done || is_gone ? oarlock_ok() : oarlock_error_from(&error);
}

oarlock_error oarlock_client_delete(oarlock_gvr target, oarlock_key key, const oarlock_write *write) {
    return oarlock_client_delete_with(target, key, write, OARLOCK_BACKGROUND, -1);
}

oarlock_error oarlock_client_scale(oarlock_gvr target, oarlock_key key, uint32_t replicas) {
    if (replicas > INT32_MAX) {
        return (oarlock_error){.code = OARLOCK_INVALID, .message = "too many replicas"};
    }
    const char *patch = oarlock_format("{\"spec\":{\"replicas\":%d}}", (int)replicas);
    const oarlock_write scale = {.subresource = "scale"};
    return oarlock_client_patch(target, key, OARLOCK_MERGE_PATCH, patch, &scale, NULL);
}
