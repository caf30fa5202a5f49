// The objects of the host in memory.

#include "fake.h"

#include <string.h>
#include <time.h>

const char *oarlock_fake_target(oarlock_gvr target) {
    bool is_core = !target.group || !*target.group;
    return oarlock_fake_format("%s%s%s/%s", is_core ? "" : target.group, is_core ? "" : "/", target.version,
                               target.plural);
}

const char *oarlock_fake_target_of(const oarlock_plugin_types_group_version_resource_t *target) {
    return oarlock_fake_target((oarlock_gvr){
        .group = oarlock_fake_text(target->group),
        .version = oarlock_fake_text(target->version),
        .plural = oarlock_fake_text(target->plural),
    });
}

const char *oarlock_fake_place(oarlock_key key) {
    bool has_namespace = key.ns && *key.ns;
    return oarlock_fake_format("%s%s%s", has_namespace ? key.ns : "", has_namespace ? "/" : "", key.name);
}

oarlock_key oarlock_fake_key(const oarlock_plugin_types_object_key_t *key) {
    return (oarlock_key){.ns = oarlock_fake_text(key->namespace_), .name = oarlock_fake_text(key->name)};
}

oarlock_key oarlock_fake_key_of(const char *json) {
    return (oarlock_key){
        .ns = oarlock_fake_string_at(json, "/metadata/namespace"),
        .name = oarlock_fake_string_at(json, "/metadata/name"),
    };
}

// Returns where a key is among the objects, as strcmp does.
static int compare(const object_t *object, const char *target, oarlock_key key) {
    int order = strcmp(object->target, target);
    if (!order) order = strcmp(object->key.ns, key.ns ? key.ns : "");
    return order ? order : strcmp(object->key.name, key.name);
}

object_t *oarlock_fake_find(const char *target, oarlock_key key) {
    object_t *object = oarlock_fake.objects;
    while (object && compare(object, target, key) != 0) object = object->next;
    return object;
}

static const char *timestamp(void) {
    time_t seconds = (time_t)(oarlock_fake.now_ms / 1000);
    char text[sizeof "2026-01-01T00:00:00Z"];
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime(&seconds));
    return oarlock_fake_format("%s", text);
}

object_t *oarlock_fake_put(const char *target, const char *json) {
    oarlock_key key = oarlock_fake_key_of(json);
    object_t **place = &oarlock_fake.objects;
    while (*place && compare(*place, target, key) < 0) place = &(*place)->next;
    bool exists = *place && compare(*place, target, key) == 0;
    const char *const SET_ONCE[][2] = {
        {"uid", exists ? "" : oarlock_fake_format("uid-%u", ++oarlock_fake.n_created)},
        {"creationTimestamp", exists ? "" : timestamp()},
    };
    text_t metadata = {0};
    oarlock_fake_write(&metadata, "{\"metadata\":{\"resourceVersion\":\"%u\"", ++oarlock_fake.version);
    for (size_t i = 0; i < sizeof SET_ONCE / sizeof SET_ONCE[0]; i++) {
        const char *pointer = oarlock_fake_format("/metadata/%s", SET_ONCE[i][0]);
        if (oarlock_json_at(json, pointer)) continue;
        const char *value = exists ? oarlock_fake_string_at((*place)->json, pointer) : SET_ONCE[i][1];
        oarlock_fake_write(&metadata, ",\"%s\":%s", SET_ONCE[i][0], oarlock_format("%j", value));
    }
    oarlock_fake_write(&metadata, "}}");
    if (!exists) {
        object_t *made = oarlock_fake_alloc(sizeof *made);
        *made = (object_t){.next = *place, .target = target, .key = key};
        *place = made;
    }
    (*place)->json = oarlock_fake_merged(json, metadata.at);
    return *place;
}

void oarlock_fake_remove(const object_t *object) {
    object_t **place = &oarlock_fake.objects;
    while (*place != object) place = &(*place)->next;
    *place = object->next;
}

void oarlock_fake_delete(const object_t *object) {
    if (!oarlock_json_at(object->json, "/metadata/finalizers/0")) {
        oarlock_fake_remove(object);
        return;
    }
    // It is being deleted already.
    if (oarlock_json_at(object->json, "/metadata/deletionTimestamp")) return;
    const char *patch = oarlock_fake_format("{\"metadata\":{\"deletionTimestamp\":\"%s\"}}", timestamp());
    oarlock_fake_put(object->target, oarlock_fake_merged(object->json, patch));
}

oarlock_plugin_types_object_ref_t oarlock_fake_ref(const char *json) {
    return (oarlock_plugin_types_object_ref_t){
        .namespace_ = oarlock_fake_string(oarlock_fake_string_at(json, "/metadata/namespace")),
        .name = oarlock_fake_string(oarlock_fake_string_at(json, "/metadata/name")),
        .uid = oarlock_fake_string(oarlock_fake_string_at(json, "/metadata/uid")),
        .resource_version = oarlock_fake_string(oarlock_fake_string_at(json, "/metadata/resourceVersion")),
    };
}
