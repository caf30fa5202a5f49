// Types of the SDK as types of the bindings, and back.

#include "convert.h"

#include <string.h>

string_t oarlock_lend(const char *text) {
    return (string_t){.ptr = (uint8_t *)text, .len = text ? strlen(text) : 0};
}

const char *oarlock_text(string_t string) { return string.len ? (const char *)string.ptr : ""; }

const char *oarlock_optional(const oarlock_bindings_option_string_t *string) {
    return string->is_some ? oarlock_text(string->val) : NULL;
}

oarlock_plugin_types_group_version_resource_t oarlock_lend_gvr(oarlock_gvr target) {
    return (oarlock_plugin_types_group_version_resource_t){
        .group = oarlock_lend(target.group),
        .version = oarlock_lend(target.version),
        .plural = oarlock_lend(target.plural),
    };
}

oarlock_plugin_types_object_key_t oarlock_lend_key(oarlock_key key) {
    return (oarlock_plugin_types_object_key_t){
        .namespace_ = oarlock_lend(key.ns),
        .name = oarlock_lend(key.name),
    };
}

oarlock_plugin_types_namespaces_t oarlock_lend_namespaces(const char *ns) {
    if (!ns) return (oarlock_plugin_types_namespaces_t){.tag = OARLOCK_PLUGIN_TYPES_NAMESPACES_ALL};
    return (oarlock_plugin_types_namespaces_t){
        .tag = OARLOCK_PLUGIN_TYPES_NAMESPACES_ONE,
        .val.one = oarlock_lend(ns),
    };
}

oarlock_bindings_list_string_t oarlock_lend_list(const char *const *texts) {
    oarlock_bindings_list_string_t list = {0};
    while (texts && texts[list.len]) list.len++;
    list.ptr = oarlock_alloc(list.len * sizeof *list.ptr);
    for (size_t i = 0; i < list.len; i++) list.ptr[i] = oarlock_lend(texts[i]);
    return list;
}

oarlock_plugin_types_projection_t oarlock_lend_select(oarlock_select select) {
    oarlock_plugin_types_projection_t projection = {.tag = OARLOCK_PLUGIN_TYPES_PROJECTION_KEYS};
    if (select.json) {
        projection.tag = OARLOCK_PLUGIN_TYPES_PROJECTION_JSON;
    } else if (select.fields) {
        projection.tag = OARLOCK_PLUGIN_TYPES_PROJECTION_FIELDS;
        projection.val.fields = oarlock_lend_list(select.fields);
    }
    return projection;
}

oarlock_object oarlock_object_from(const oarlock_plugin_types_object_ref_t *object) {
    return (oarlock_object){
        .ns = oarlock_text(object->namespace_),
        .name = oarlock_text(object->name),
        .uid = oarlock_text(object->uid),
        .resource_version = oarlock_text(object->resource_version),
    };
}

const char *const *oarlock_fields_from(const oarlock_bindings_list_option_string_t *fields) {
    const char **texts = oarlock_alloc((fields->len + 1) * sizeof *texts);
    for (size_t i = 0; i < fields->len; i++) texts[i] = oarlock_optional(&fields->ptr[i]);
    texts[fields->len] = NULL;
    return texts;
}

oarlock_row oarlock_row_from(const oarlock_plugin_types_row_t *row) {
    return (oarlock_row){
        .object = oarlock_object_from(&row->object),
        .fields = oarlock_fields_from(&row->fields),
        .json = oarlock_optional(&row->json),
    };
}

oarlock_error oarlock_error_from(const oarlock_plugin_types_error_t *error) {
    // The codes have the order of the bindings' tags. All cases but one hold a text at the same place.
    oarlock_error converted = {.code = (oarlock_code)(error->tag + 1)};
    if (error->tag == OARLOCK_PLUGIN_TYPES_ERROR_THROTTLED) {
        const oarlock_plugin_types_throttled_info_t *info = &error->val.throttled;
        converted.message = oarlock_text(info->message);
        converted.after_ms = info->retry_after_ms.is_some ? info->retry_after_ms.val : 0;
    } else {
        converted.message = oarlock_text(error->val.not_found);
    }
    return converted;
}

_Static_assert(OARLOCK_NOT_FOUND == OARLOCK_PLUGIN_TYPES_ERROR_NOT_FOUND + 1, "the order of errors");
_Static_assert(OARLOCK_THROTTLED == OARLOCK_PLUGIN_TYPES_ERROR_THROTTLED + 1, "the order of errors");
_Static_assert(OARLOCK_SUSPENDED == OARLOCK_PLUGIN_TYPES_ERROR_SUSPENDED + 1, "the order of errors");
