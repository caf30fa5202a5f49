// Compares the copies that a source should have with the copies that it has, and writes the difference.

#include <string.h>

#include "mirror.h"

static oarlock_error delete(const kind_t *kind, oarlock_key source, oarlock_object copy) {
    oarlock_write unchanged = oarlock_if_unchanged(copy);
    OARLOCK_TRY(oarlock_client_delete(kind->target, oarlock_key_of(copy), &unchanged));
    oarlock_info("deleted", "kind", kind->name, "source", annotation_of(source), "in", copy.ns);
    return oarlock_ok();
}

// Logs, and records as an Event of the source, that an object of another owner has the name of the copy.
static void refuse(const kind_t *kind, oarlock_key source, oarlock_object regarding, const char *ns) {
    oarlock_warn("not overwritten", "kind", kind->name, "source", annotation_of(source), "in", ns);
    const char *note =
        oarlock_format("%s %s/%s exists and is not a copy of this object", kind->name, ns, source.name);
    oarlock_error error =
        oarlock_event_record(kind->target, kind->name, regarding, OARLOCK_WARNING, "MirrorRefused", note);
    if (error.code) oarlock_warn("no event recorded", "error", error.message);
}

static oarlock_error create(const kind_t *kind, oarlock_key source, const oarlock_row *object,
                            const char *ns) {
    const char *copy = copy_of(kind, object->json, source, ns);
    oarlock_error error = oarlock_client_create(kind->target, ns, copy, NULL);
    if (!error.code) {
        oarlock_info("copied", "kind", kind->name, "source", annotation_of(source), "to", ns);
        return oarlock_ok();
    }
    if (error.code != OARLOCK_ALREADY_EXISTS) return error;
    // Either the cache does not have mirror's own copy yet, or another object has the name.
    const char *existing;
    const oarlock_key at = {.ns = ns, .name = source.name};
    OARLOCK_TRY(oarlock_client_get(kind->target, at, NULL, &existing));
    if (!existing) return oarlock_retry(oarlock_format("the object in %s was just deleted", ns));
    if (belongs_to(existing, source)) {
        return oarlock_retry(oarlock_format("the copy in %s is not in the cache yet", ns));
    }
    refuse(kind, source, object->object, ns);
    return oarlock_ok();
}

static oarlock_error update(const kind_t *kind, oarlock_key source, const char *object,
                            const oarlock_row *copy) {
    // The notification of this delete reconciles the source again, which creates the copy.
    if (is_of_another_type(copy->json, object)) return delete (kind, source, copy->object);
    const char *patch = difference(kind, copy->json, object);
    if (!patch) return oarlock_ok();
    oarlock_write unchanged = oarlock_if_unchanged(copy->object);
    oarlock_key at = oarlock_key_of(copy->object);
    OARLOCK_TRY(oarlock_client_patch(kind->target, at, OARLOCK_MERGE_PATCH, patch, &unchanged, NULL));
    oarlock_info("updated", "kind", kind->name, "source", annotation_of(source), "in", copy->object.ns);
    return oarlock_ok();
}

oarlock_error reconcile_source(const kind_t *kind, oarlock_key source) {
    oarlock_row object;
    bool found;
    OARLOCK_TRY(oarlock_cache_get(kind->lister, source, (oarlock_select){.json = true}, &object, &found));
    texts_t targets = {0};
    if (found) OARLOCK_TRY(targets_of(object.json, source.ns, &targets));

    texts_t copied = {0};
    oarlock_rows copies =
        oarlock_cache_by_index(kind->copies, annotation_of(source), NULL, (oarlock_select){.json = true});
    while (oarlock_next(&copies)) {
        const oarlock_row *copy = &copies.row;
        // An object with another name is not a copy, whatever its annotation says.
        bool is_copy = strcmp(copy->object.name, source.name) == 0 && strcmp(copy->object.ns, source.ns) != 0;
        if (!is_copy) continue;
        if (texts_contain(&targets, copy->object.ns)) {
            texts_add(&copied, oarlock_format("%s", copy->object.ns));
            OARLOCK_TRY(update(kind, source, object.json, copy));
        } else {
            OARLOCK_TRY(delete (kind, source, copy->object));
        }
    }
    if (copies.error.code) return copies.error;
    for (size_t i = 0; i < targets.len; i++) {
        if (!texts_contain(&copied, targets.items[i])) {
            OARLOCK_TRY(create(kind, source, &object, targets.items[i]));
        }
    }
    return oarlock_ok();
}
