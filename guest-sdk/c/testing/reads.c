// Reads: the object of the notification, the cache, and the API server.

#include "fake.h"

#include <stdlib.h>
#include <string.h>

void *cabi_realloc(void *old, size_t old_size, size_t align, size_t size);

// === The object of the notification ===

static const char *notified(uint8_t which, failed_t *err) {
    const char *json = oarlock_fake.event[which];
    if (!json) {
        const char *state = which == OARLOCK_PLUGIN_EVENT_VERSION_OLD ? "old" : "new";
        const char *why = oarlock_fake_format("the notification has no %s state", state);
        oarlock_fake_fail(err, OARLOCK_NOT_FOUND, why);
    }
    return json;
}

// Returns whether a text is a JSON pointer.
static bool is_pointer(const string_t *pointer, failed_t *err) {
    if (pointer->len == 0 || pointer->ptr[0] == '/') return true;
    const char *why = oarlock_fake_format("malformed pointer \"%s\"", oarlock_fake_text(*pointer));
    return oarlock_fake_fail(err, OARLOCK_INVALID, why);
}

bool oarlock_plugin_event_field(uint8_t which, string_t *pointer, oarlock_bindings_option_string_t *ret,
                                failed_t *err) {
    const char *json = notified(which, err);
    if (!json || !is_pointer(pointer, err)) return false;
    *ret = oarlock_fake_option(oarlock_json_at(json, oarlock_fake_text(*pointer)));
    return true;
}

bool oarlock_plugin_event_fields(uint8_t which, oarlock_bindings_list_string_t *pointers,
                                 oarlock_bindings_list_option_string_t *ret, failed_t *err) {
    const char *json = notified(which, err);
    if (!json) return false;
    for (size_t i = 0; i < pointers->len; i++) {
        if (!is_pointer(&pointers->ptr[i], err)) return false;
    }
    *ret = oarlock_fake_fields(json, pointers);
    return true;
}

bool oarlock_plugin_event_json(uint8_t which, string_t *ret, failed_t *err) {
    const char *json = notified(which, err);
    if (json) *ret = oarlock_fake_string(json);
    return json != NULL;
}

// === Pages ===

// The objects of an answer: those that pass all tests.
typedef struct {
    const char *target;
    const oarlock_plugin_types_namespaces_t *namespaces;
    // The namespaces that the lister has; NULL for all.
    const oarlock_plugin_types_namespaces_t *declared;
    const char *labels;
    const char *fields;
    const exports_oarlock_plugin_metadata_index_t *index;
    const char *value;
} query_t;

static bool is_in(const object_t *object, const oarlock_plugin_types_namespaces_t *namespaces) {
    if (!namespaces || namespaces->tag == OARLOCK_PLUGIN_TYPES_NAMESPACES_ALL) return true;
    return !strcmp(object->key.ns, oarlock_fake_text(namespaces->val.one));
}

// Calls a function with each value of an object in an index.
static void indexed(const exports_oarlock_plugin_metadata_index_t *index, const char *json,
                    void (*use)(void *context, const char *value), void *context) {
    const char *value = NULL;
    switch (index->source.tag) {
    case EXPORTS_OARLOCK_PLUGIN_METADATA_INDEX_SOURCE_OWNER_UID:
        oarlock_fake_scalars(json, "/metadata/ownerReferences/*/uid", use, context);
        break;
    case EXPORTS_OARLOCK_PLUGIN_METADATA_INDEX_SOURCE_POINTER:
        oarlock_fake_scalars(json, oarlock_fake_text(index->source.val.pointer), use, context);
        break;
    default:
        oarlock_json_string(oarlock_json_member(oarlock_json_at(json, "/metadata/labels"),
                                                oarlock_fake_text(index->source.val.label)),
                            &value);
        if (value) use(context, oarlock_fake_format("%s", value));
        break;
    }
}

typedef struct {
    const char *value;
    bool is_found;
} sought_t;

static void compare(void *context, const char *value) {
    sought_t *sought = context;
    sought->is_found |= !strcmp(sought->value, value);
}

static bool matches(const query_t *query, const object_t *object) {
    if (strcmp(object->target, query->target) != 0) return false;
    if (!is_in(object, query->namespaces) || !is_in(object, query->declared)) return false;
    if (query->labels && !oarlock_fake_matches_labels(object->json, query->labels)) return false;
    if (query->fields && !oarlock_fake_matches_fields(object->json, query->fields)) return false;
    if (!query->index) return true;
    sought_t sought = {.value = query->value};
    indexed(query->index, object->json, compare, &sought);
    return sought.is_found;
}

static oarlock_plugin_types_row_t row_of(const char *json,
                                         const oarlock_plugin_types_projection_t *projection) {
    oarlock_plugin_types_row_t row = {.object = oarlock_fake_ref(json)};
    if (projection->tag == OARLOCK_PLUGIN_TYPES_PROJECTION_FIELDS) {
        row.fields = oarlock_fake_fields(json, &projection->val.fields);
    }
    if (projection->tag == OARLOCK_PLUGIN_TYPES_PROJECTION_JSON) row.json = oarlock_fake_option(json);
    return row;
}

// Answers with one page. A token is the number of rows before it.
static bool answer(const query_t *query, const oarlock_plugin_types_projection_t *projection,
                   const oarlock_plugin_types_page_request_t *request, oarlock_plugin_types_page_t *ret) {
    size_t n_before = strtoul(oarlock_fake_text(request->continue_token), NULL, 10);
    size_t limit = oarlock_fake.page_size;
    if (request->limit && request->limit < limit) limit = request->limit;
    size_t n_matching = 0;
    *ret = (oarlock_plugin_types_page_t){0};
    ret->rows.ptr = cabi_realloc(NULL, 0, 8, limit * sizeof *ret->rows.ptr);
    for (const object_t *object = oarlock_fake.objects; object; object = object->next) {
        if (!matches(query, object) || n_matching++ < n_before || ret->rows.len == limit) continue;
        ret->rows.ptr[ret->rows.len++] = row_of(object->json, projection);
    }
    size_t end = n_before + ret->rows.len;
    ret->continue_token = oarlock_fake_string(end < n_matching ? oarlock_fake_format("%zu", end) : "");
    return true;
}

// === The cache ===

static const exports_oarlock_plugin_metadata_read_t *read_of(const string_t *lister, failed_t *err) {
    const char *name = oarlock_fake_text(*lister);
    const description_t *description = oarlock_fake.description;
    for (size_t i = 0; description && i < description->reads.len; i++) {
        const exports_oarlock_plugin_metadata_read_t *read = &description->reads.ptr[i];
        if (!strcmp(oarlock_fake_text(read->name), name)) return read;
    }
    const char *why = oarlock_fake_format("the plugin declares no lister %s", name);
    oarlock_fake_fail(err, OARLOCK_NOT_DECLARED, why);
    return NULL;
}

static const exports_oarlock_plugin_metadata_index_t *index_of(const string_t *index, failed_t *err) {
    const char *name = oarlock_fake_text(*index);
    const description_t *description = oarlock_fake.description;
    for (size_t i = 0; description && i < description->indices.len; i++) {
        const exports_oarlock_plugin_metadata_index_t *declared = &description->indices.ptr[i];
        if (!strcmp(oarlock_fake_text(declared->name), name)) return declared;
    }
    const char *why = oarlock_fake_format("the plugin declares no index %s", name);
    oarlock_fake_fail(err, OARLOCK_NOT_DECLARED, why);
    return NULL;
}

bool oarlock_plugin_cache_get(string_t *lister, oarlock_plugin_types_object_key_t *key,
                              oarlock_plugin_types_projection_t *projection, oarlock_plugin_types_row_t *ret,
                              failed_t *err) {
    const exports_oarlock_plugin_metadata_read_t *read = read_of(lister, err);
    if (!read) return false;
    oarlock_key place = oarlock_fake_key(key);
    const object_t *object = oarlock_fake_find(oarlock_fake_target_of(&read->target), place);
    if (!object || !is_in(object, &read->namespaces)) {
        return oarlock_fake_fail(err, OARLOCK_NOT_FOUND, oarlock_fake_place(place));
    }
    *ret = row_of(object->json, projection);
    return true;
}

bool oarlock_plugin_cache_list(string_t *lister, oarlock_plugin_types_namespaces_t *namespaces,
                               string_t *selector, oarlock_plugin_types_projection_t *projection,
                               oarlock_plugin_types_page_request_t *request, oarlock_plugin_types_page_t *ret,
                               failed_t *err) {
    const exports_oarlock_plugin_metadata_read_t *read = read_of(lister, err);
    if (!read) return false;
    const query_t query = {
        .target = oarlock_fake_target_of(&read->target),
        .namespaces = namespaces,
        .declared = &read->namespaces,
        .labels = oarlock_fake_text(*selector),
    };
    return answer(&query, projection, request, ret);
}

bool oarlock_plugin_cache_by_index(string_t *index, string_t *value,
                                   oarlock_plugin_types_namespaces_t *namespaces,
                                   oarlock_plugin_types_projection_t *projection,
                                   oarlock_plugin_types_page_request_t *request,
                                   oarlock_plugin_types_page_t *ret, failed_t *err) {
    const exports_oarlock_plugin_metadata_index_t *declared = index_of(index, err);
    const exports_oarlock_plugin_metadata_read_t *read = declared ? read_of(&declared->lister, err) : NULL;
    if (!read) return false;
    const query_t query = {
        .target = oarlock_fake_target_of(&read->target),
        .namespaces = namespaces,
        .declared = &read->namespaces,
        .index = declared,
        .value = oarlock_fake_text(*value),
    };
    return answer(&query, projection, request, ret);
}

// The sorted values of an index.
typedef struct {
    const char **values;
    size_t len;
    size_t size;
} values_t;

static void collect(void *context, const char *value) {
    values_t *found = context;
    size_t idx = 0;
    while (idx < found->len && strcmp(found->values[idx], value) < 0) idx++;
    if (idx < found->len && !strcmp(found->values[idx], value)) return;
    if (found->len == found->size) {
        found->size = 2 * found->size + 8;
        const char **grown = oarlock_fake_alloc(found->size * sizeof *grown);
        if (found->len) memcpy(grown, found->values, found->len * sizeof *grown);
        found->values = grown;
    }
    memmove(found->values + idx + 1, found->values + idx, (found->len - idx) * sizeof *found->values);
    found->values[idx] = value;
    found->len++;
}

bool oarlock_plugin_cache_index_values(string_t *index, oarlock_bindings_list_string_t *ret, failed_t *err) {
    const exports_oarlock_plugin_metadata_index_t *declared = index_of(index, err);
    const exports_oarlock_plugin_metadata_read_t *read = declared ? read_of(&declared->lister, err) : NULL;
    if (!read) return false;
    const query_t query = {.target = oarlock_fake_target_of(&read->target), .declared = &read->namespaces};
    values_t found = {0};
    for (const object_t *object = oarlock_fake.objects; object; object = object->next) {
        if (matches(&query, object)) indexed(declared, object->json, collect, &found);
    }
    ret->len = found.len;
    ret->ptr = cabi_realloc(NULL, 0, 8, found.len * sizeof *ret->ptr);
    for (size_t i = 0; i < found.len; i++) ret->ptr[i] = oarlock_fake_string(found.values[i]);
    return true;
}

bool oarlock_plugin_cache_has_synced(string_t *lister, bool *ret, failed_t *err) {
    *ret = read_of(lister, err) != NULL;
    return *ret;
}

bool oarlock_plugin_cache_wait_until_seen(string_t *lister, string_t *version, uint32_t timeout_ms,
                                          failed_t *err) {
    (void)version;
    (void)timeout_ms;
    return read_of(lister, err) != NULL;
}

// === The API server ===

bool oarlock_plugin_client_list(oarlock_plugin_types_group_version_resource_t *target,
                                oarlock_plugin_types_namespaces_t *namespaces, string_t *labels,
                                string_t *fields, oarlock_plugin_types_projection_t *projection,
                                oarlock_plugin_types_page_request_t *request,
                                oarlock_plugin_types_page_t *ret, failed_t *err) {
    const char *resource = oarlock_fake_target_of(target);
    if (!oarlock_fake_may_request("list", "list", resource, "", err)) return false;
    const query_t query = {
        .target = resource,
        .namespaces = namespaces,
        .labels = oarlock_fake_text(*labels),
        .fields = oarlock_fake_text(*fields),
    };
    return answer(&query, projection, request, ret);
}

bool oarlock_plugin_client_get(oarlock_plugin_types_group_version_resource_t *target,
                               oarlock_plugin_types_object_key_t *key, string_t *subresource, string_t *ret,
                               failed_t *err) {
    const char *resource = oarlock_fake_target_of(target);
    const char *part = oarlock_fake_text(*subresource);
    if (!oarlock_fake_may_request("get", "get", resource, part, err)) return false;
    oarlock_key place = oarlock_fake_key(key);
    const object_t *object = oarlock_fake_find(resource, place);
    if (!object) return oarlock_fake_fail(err, OARLOCK_NOT_FOUND, oarlock_fake_place(place));
    const char *json = oarlock_fake_part(object->json, part, err);
    if (json) *ret = oarlock_fake_string(json);
    return json != NULL;
}
