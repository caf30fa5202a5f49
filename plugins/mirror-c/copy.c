// The content of a copy, and the source that it belongs to.

#include <string.h>

#include "mirror.h"

const char *annotation_of(oarlock_key source) { return oarlock_format("%s/%s", source.ns, source.name); }

// Returns the text with a member of the source appended, if the source has it.
static const char *with(const char *text, const char *source, const char *field) {
    const char *value = oarlock_json_member(source, field);
    return value ? oarlock_format("%s,%j:%s", text, field, value) : text;
}

const char *copy_of(const kind_t *kind, const char *source, oarlock_key key, const char *ns) {
    const char *copy =
        oarlock_format("{\"apiVersion\":\"v1\",\"kind\":%j,\"metadata\":{\"name\":%j,\"namespace\":%j,"
                       "\"labels\":{\"app.kubernetes.io/managed-by\":\"oarlock-mirror\"},"
                       "\"annotations\":{\"oarlock.dev/mirrored-from\":%j}}",
                       kind->name, key.name, ns, annotation_of(key));
    for (size_t i = 0; kind->content[i]; i++) copy = with(copy, source, kind->content[i]);
    return oarlock_format("%s}", with(copy, source, "type"));
}

bool belongs_to(const char *object, oarlock_key source) {
    const char *from;
    return oarlock_json_string(oarlock_json_at(object, MIRRORED_FROM), &from) &&
           strcmp(from, annotation_of(source)) == 0;
}

// Returns whether two JSON texts are equal; NULL equals NULL only. The API server writes equal values alike.
static bool is_equal(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

bool is_of_another_type(const char *copy, const char *source) {
    return !is_equal(oarlock_json_member(copy, "type"), oarlock_json_member(source, "type"));
}

// Returns the members of a merge patch, without braces; NULL if there are none.
static const char *map_difference(const char *old, const char *new) {
    const char *patch = NULL;
    for (oarlock_members it = oarlock_json_members(old); oarlock_json_next(&it);) {
        if (oarlock_json_member(new, it.name)) continue;
        patch = oarlock_format("%s%s%j:null", patch, patch ? "," : "", it.name);
    }
    for (oarlock_members it = oarlock_json_members(new); oarlock_json_next(&it);) {
        if (is_equal(oarlock_json_member(old, it.name), it.value)) continue;
        patch = oarlock_format("%s%s%j:%s", patch, patch ? "," : "", it.name, it.value);
    }
    return patch;
}

const char *difference(const kind_t *kind, const char *copy, const char *source) {
    const char *patch = NULL;
    for (size_t i = 0; kind->content[i]; i++) {
        const char *field = kind->content[i];
        const char *changes =
            map_difference(oarlock_json_member(copy, field), oarlock_json_member(source, field));
        if (changes) patch = oarlock_format("%s%s%j:{%s}", patch, patch ? "," : "", field, changes);
    }
    return patch ? oarlock_format("{%s}", patch) : NULL;
}
