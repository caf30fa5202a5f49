// Types of the SDK as types of the bindings, and back.
//
// To the bindings, strings are lent. From them, strings are in the arena, and end with NUL (see arena.c).

#ifndef OARLOCK_CONVERT_H
#define OARLOCK_CONVERT_H

#include "oarlock.h"
#include "oarlock_bindings.h"

typedef oarlock_bindings_string_t string_t;

// NULL is the empty string.
string_t oarlock_lend(const char *text);
const char *oarlock_text(string_t string);
// Returns NULL for none.
const char *oarlock_optional(const oarlock_bindings_option_string_t *string);

oarlock_plugin_types_group_version_resource_t oarlock_lend_gvr(oarlock_gvr target);
oarlock_plugin_types_object_key_t oarlock_lend_key(oarlock_key key);
oarlock_plugin_types_namespaces_t oarlock_lend_namespaces(const char *ns);
oarlock_bindings_list_string_t oarlock_lend_list(const char *const *texts);
oarlock_plugin_types_projection_t oarlock_lend_select(oarlock_select select);

oarlock_object oarlock_object_from(const oarlock_plugin_types_object_ref_t *object);
const char *const *oarlock_fields_from(const oarlock_bindings_list_option_string_t *fields);
oarlock_row oarlock_row_from(const oarlock_plugin_types_row_t *row);
oarlock_error oarlock_error_from(const oarlock_plugin_types_error_t *error);

#endif
