// Requests that change objects. Each is recorded, whether or not it succeeds.

#include "fake.h"

#include <string.h>

// Returns whether the plugin declares a request; it would lack the right otherwise.
static bool is_declared(const char *verb, const char *target, const char *subresource) {
    const description_t *description = oarlock_fake.description;
    bool is_read = !strcmp(verb, "get") || !strcmp(verb, "list");
    for (size_t i = 0; i < description->requests.len; i++) {
        const exports_oarlock_plugin_metadata_request_t *request = &description->requests.ptr[i];
        if (strcmp(oarlock_fake_target_of(&request->target), target) != 0) continue;
        if (strcmp(oarlock_fake_text(request->subresource), subresource) != 0) continue;
        for (size_t j = 0; j < request->verbs.len; j++) {
            if (!strcmp(oarlock_fake_text(request->verbs.ptr[j]), verb)) return true;
        }
    }
    if (!is_read || *subresource) return false;
    for (size_t i = 0; i < description->subscriptions.len; i++) {
        if (!strcmp(oarlock_fake_target_of(&description->subscriptions.ptr[i].target), target)) return true;
    }
    for (size_t i = 0; i < description->reads.len; i++) {
        if (!strcmp(oarlock_fake_target_of(&description->reads.ptr[i].target), target)) return true;
    }
    return false;
}

bool oarlock_fake_may_request(const char *call, const char *verb, const char *target, const char *subresource,
                              failed_t *err) {
    if (!oarlock_fake_may(call, err)) return false;
    if (!oarlock_fake.description || is_declared(verb, target, subresource)) return true;
    const char *why = oarlock_fake_format("the plugin declares no request with the verb %s for %s%s%s", verb,
                                          target, *subresource ? "/" : "", subresource);
    return oarlock_fake_fail(err, OARLOCK_FORBIDDEN, why);
}

const char *oarlock_fake_part(const char *json, const char *subresource, failed_t *err) {
    const char *value = NULL;
    if (!*subresource) return json;
    if (!strcmp(subresource, "status")) {
        value = oarlock_json_at(json, "/status");
        return value ? oarlock_fake_format("{\"status\":%s}", value) : "{}";
    }
    if (!strcmp(subresource, "scale")) {
        value = oarlock_json_at(json, "/spec/replicas");
        return value ? oarlock_fake_format("{\"spec\":{\"replicas\":%s}}", value) : "{}";
    }
    const char *why = oarlock_fake_format("a test has no subresource %s", subresource);
    oarlock_fake_fail(err, OARLOCK_INVALID, why);
    return NULL;
}

// === One request ===

typedef struct {
    const char *verb;
    const char *target;
    oarlock_key key;
    const char *subresource;
    bool is_forced;
    const char *body;
    // NULL for none.
    const oarlock_plugin_client_preconditions_t *conditions;
} request_t;

// Records a request, and its error, if it has one.
static bool recorded(const request_t *request, bool succeeded, const failed_t *err) {
    const char *part = request->subresource;
    oarlock_fake_write(&oarlock_fake.writes, "%s %s%s%s %s%s", request->verb, request->target,
                       *part ? "/" : "", part, oarlock_fake_place(request->key),
                       request->is_forced ? " force" : "");
    if (!succeeded) {
        const char *code = oarlock_fake_code((oarlock_code)(err->tag + 1));
        oarlock_fake_write(&oarlock_fake.writes, " failed: %s", code);
    }
    oarlock_fake_write(&oarlock_fake.writes, "\n");
    oarlock_fake_append(&oarlock_fake.bodies, (entry_t){.text = request->body});
    return succeeded;
}

static bool holds(const oarlock_bindings_option_string_t *wanted, const char *json, const char *pointer) {
    return !wanted->is_some || !strcmp(oarlock_fake_text(wanted->val), oarlock_fake_string_at(json, pointer));
}

// Returns the object of a request; NULL if there is none, or it is not as required.
static const object_t *existing(const request_t *request, failed_t *err) {
    const object_t *object = oarlock_fake_find(request->target, request->key);
    const char *place = oarlock_fake_place(request->key);
    if (!object) {
        const char *why = oarlock_fake_format("%s %s", request->target, place);
        oarlock_fake_fail(err, OARLOCK_NOT_FOUND, why);
        return NULL;
    }
    const oarlock_plugin_client_preconditions_t *conditions = request->conditions;
    if (!conditions || (holds(&conditions->uid, object->json, "/metadata/uid") &&
                        holds(&conditions->resource_version, object->json, "/metadata/resourceVersion"))) {
        return object;
    }
    oarlock_fake_fail(err, OARLOCK_CONFLICT, oarlock_fake_format("%s has another version", place));
    return NULL;
}

static bool answer(const char *json, oarlock_plugin_client_written_t *ret) {
    oarlock_plugin_types_object_ref_t ref = oarlock_fake_ref(json);
    *ret = (oarlock_plugin_client_written_t){ref.name, ref.uid, ref.resource_version};
    return true;
}

// Stores a changed object. One that is being deleted and has no finalizers any more goes.
static bool store(const object_t *old, const char *json, oarlock_plugin_client_written_t *ret) {
    // A write does not rename or move an object, and does not give it another uid.
    const char *namespace = oarlock_json_at(old->json, "/metadata/namespace");
    const char *patch = oarlock_fake_format(
        "{\"metadata\":{\"namespace\":%s,\"name\":%s,\"uid\":%s}}", namespace ? namespace : "null",
        oarlock_json_at(old->json, "/metadata/name"), oarlock_json_at(old->json, "/metadata/uid"));
    const object_t *stored = oarlock_fake_put(old->target, oarlock_fake_merged(json, patch));
    answer(stored->json, ret);
    bool is_being_deleted = oarlock_json_at(stored->json, "/metadata/deletionTimestamp") != NULL;
    if (is_being_deleted && !oarlock_json_at(stored->json, "/metadata/finalizers/0")) {
        oarlock_fake_remove(stored);
    }
    return true;
}

static bool create(request_t *request, oarlock_plugin_client_written_t *ret, failed_t *err) {
    const char *body = request->body;
    const char *ns = oarlock_fake_string_at(body, "/metadata/namespace");
    if (*ns && strcmp(ns, request->key.ns) != 0) {
        const char *why = oarlock_fake_format("the object has the namespace %s, not %s", ns, request->key.ns);
        return oarlock_fake_fail(err, OARLOCK_INVALID, why);
    }
    const char *name = request->key.name;
    const char *prefix = oarlock_fake_string_at(body, "/metadata/generateName");
    if (!*name && *prefix) name = oarlock_fake_format("%s%05u", prefix, oarlock_fake.n_created + 1);
    if (!*name) return oarlock_fake_fail(err, OARLOCK_INVALID, "the object has no name");
    request->key.name = name;
    if (oarlock_fake_find(request->target, request->key)) {
        const char *why = oarlock_fake_format("%s %s", request->target, oarlock_fake_place(request->key));
        return oarlock_fake_fail(err, OARLOCK_ALREADY_EXISTS, why);
    }
    const char *metadata = *request->key.ns ? oarlock_format("{\"metadata\":{\"name\":%j,\"namespace\":%j}}",
                                                             name, request->key.ns)
                                            : oarlock_format("{\"metadata\":{\"name\":%j}}", name);
    const object_t *made = oarlock_fake_put(request->target, oarlock_fake_merged(body, metadata));
    return answer(made->json, ret);
}

// Merges the body into the object, or the part of it that the subresource is.
static bool merge(const request_t *request, oarlock_plugin_client_written_t *ret, failed_t *err) {
    const object_t *object = existing(request, err);
    const char *part = object ? oarlock_fake_part(request->body, request->subresource, err) : NULL;
    return part && store(object, oarlock_fake_merged(object->json, part), ret);
}

// Returns a request whose body is the JSON text of the plugin.
static request_t request_of(const char *verb, const oarlock_plugin_types_group_version_resource_t *target,
                            oarlock_key key, const string_t *subresource, const string_t *json) {
    const char *text = oarlock_fake_text(*json);
    const char *body = oarlock_fake_normalized(text);
    if (!body) oarlock_fake_misuse("%s of %s: the body is not JSON: %s", verb, oarlock_fake_place(key), text);
    return (request_t){
        .verb = verb,
        .target = oarlock_fake_target_of(target),
        .key = key,
        .subresource = subresource ? oarlock_fake_text(*subresource) : "",
        .body = body,
    };
}

// === The functions of the contract ===

bool oarlock_plugin_client_create(oarlock_plugin_types_group_version_resource_t *target, string_t *ns,
                                  string_t *json, oarlock_plugin_client_written_t *ret, failed_t *err) {
    request_t request = request_of("create", target, (oarlock_key){oarlock_fake_text(*ns), ""}, NULL, json);
    request.key.name = oarlock_fake_string_at(request.body, "/metadata/name");
    bool done =
        oarlock_fake_may_request("create", "create", request.target, "", err) && create(&request, ret, err);
    return recorded(&request, done, err);
}

bool oarlock_plugin_client_apply(oarlock_plugin_types_group_version_resource_t *target,
                                 oarlock_plugin_types_object_key_t *key, string_t *subresource,
                                 string_t *json, bool force,
                                 oarlock_plugin_client_preconditions_t *conditions,
                                 oarlock_plugin_client_written_t *ret, failed_t *err) {
    request_t request = request_of("apply", target, oarlock_fake_key(key), subresource, json);
    request.is_forced = force;
    request.conditions = conditions;
    bool done = oarlock_fake_may_request("apply", "patch", request.target, request.subresource, err);
    if (done) {
        bool exists = oarlock_fake_find(request.target, request.key) != NULL;
        bool changes = exists || conditions->uid.is_some || *request.subresource;
        done = changes ? merge(&request, ret, err) : create(&request, ret, err);
    }
    return recorded(&request, done, err);
}

static bool patch(const request_t *request, uint8_t kind, oarlock_plugin_client_written_t *ret,
                  failed_t *err) {
    if (!oarlock_fake_may_request("patch", "patch", request->target, request->subresource, err)) return false;
    if (kind == OARLOCK_PLUGIN_CLIENT_PATCH_KIND_MERGE_PATCH) return merge(request, ret, err);
    if (kind != OARLOCK_PLUGIN_CLIENT_PATCH_KIND_JSON_PATCH) {
        return oarlock_fake_fail(err, OARLOCK_INVALID, "a test has no strategic merge patches");
    }
    const object_t *object = existing(request, err);
    if (!object) return false;
    const char *json = oarlock_fake_patched(object->json, request->body);
    if (!json) return oarlock_fake_fail(err, OARLOCK_INVALID, "the patch cannot be applied");
    return store(object, json, ret);
}

bool oarlock_plugin_client_patch(oarlock_plugin_types_group_version_resource_t *target,
                                 oarlock_plugin_types_object_key_t *key, string_t *subresource, uint8_t kind,
                                 string_t *body, oarlock_plugin_client_preconditions_t *conditions,
                                 oarlock_plugin_client_written_t *ret, failed_t *err) {
    request_t request = request_of("patch", target, oarlock_fake_key(key), subresource, body);
    request.conditions = conditions;
    return recorded(&request, patch(&request, kind, ret, err), err);
}

static bool replace(const request_t *request, oarlock_plugin_client_written_t *ret, failed_t *err) {
    if (!oarlock_fake_may_request("replace", "update", request->target, request->subresource, err))
        return false;
    const object_t *object = existing(request, err);
    if (!object) return false;
    const char *version = oarlock_fake_string_at(request->body, "/metadata/resourceVersion");
    if (strcmp(version, oarlock_fake_string_at(object->json, "/metadata/resourceVersion")) != 0) {
        return oarlock_fake_fail(err, OARLOCK_CONFLICT, "the object has another resourceVersion");
    }
    if (*request->subresource) return merge(request, ret, err);
    return store(object, request->body, ret);
}

bool oarlock_plugin_client_replace(oarlock_plugin_types_group_version_resource_t *target,
                                   oarlock_plugin_types_object_key_t *key, string_t *subresource,
                                   string_t *json, oarlock_plugin_client_written_t *ret, failed_t *err) {
    request_t request = request_of("replace", target, oarlock_fake_key(key), subresource, json);
    return recorded(&request, replace(&request, ret, err), err);
}

bool oarlock_plugin_client_delete(oarlock_plugin_types_group_version_resource_t *target,
                                  oarlock_plugin_types_object_key_t *key, uint8_t propagation,
                                  uint32_t *grace_period, oarlock_plugin_client_preconditions_t *conditions,
                                  failed_t *err) {
    static const char *const POLICIES[] = {"Background", "Foreground", "Orphan"};
    text_t body = {0};
    oarlock_fake_write(&body, "{\"propagationPolicy\":\"%s\"", POLICIES[propagation]);
    if (grace_period) oarlock_fake_write(&body, ",\"gracePeriodSeconds\":%u", (unsigned)*grace_period);
    oarlock_fake_write(&body, "}");
    const request_t request = {
        .verb = "delete",
        .target = oarlock_fake_target_of(target),
        .key = oarlock_fake_key(key),
        .subresource = "",
        .body = body.at,
        .conditions = conditions,
    };
    const object_t *object = NULL;
    if (oarlock_fake_may_request("delete", "delete", request.target, "", err))
        object = existing(&request, err);
    if (object) oarlock_fake_delete(object);
    return recorded(&request, object != NULL, err);
}

const char *oarlock_host_body(size_t idx) {
    const entry_t *entry = oarlock_fake.bodies;
    while (entry && idx-- > 0) entry = entry->next;
    return entry ? entry->text : NULL;
}
