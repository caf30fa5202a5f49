// What the files of the host in memory share. What they allocate lives until the next reset.

#ifndef OARLOCK_FAKE_H
#define OARLOCK_FAKE_H

#include "oarlock_bindings.h"
#include "oarlock_testing.h"

typedef oarlock_bindings_string_t string_t;
typedef oarlock_plugin_types_error_t failed_t;
typedef exports_oarlock_plugin_metadata_description_t description_t;

// An object. Objects are ordered by resource, namespace and name.
typedef struct oarlock_fake_object {
    struct oarlock_fake_object *next;
    // Such as `apps/v1/deployments`.
    const char *target;
    oarlock_key key;
    const char *json;
} object_t;

// A text that grows.
typedef struct {
    char *at;
    size_t len;
    size_t size;
} text_t;

// An error that the test wants, or a body.
typedef struct oarlock_fake_entry {
    struct oarlock_fake_entry *next;
    const char *text;
    oarlock_error error;
} entry_t;

typedef struct {
    object_t *objects;
    unsigned version;
    unsigned n_created;
    const char *config;
    double now_ms;
    double started_ms;
    size_t page_size;
    // NULL if `describe` has failed.
    description_t *description;
    const char *describe_error;
    // The states of the object of the notification.
    const char *event[2];
    // By verb.
    entry_t *failures;
    entry_t *bodies;
    text_t writes;
    text_t events;
    text_t logs;
    text_t queue;
    struct oarlock_fake_metric *metrics;
} state_t;

extern state_t oarlock_fake;

// === Memory and texts ===

void *oarlock_fake_alloc(size_t size);
// Frees everything.
void oarlock_fake_free(void);
__attribute__((format(printf, 2, 3))) void oarlock_fake_write(text_t *text, const char *format, ...);
__attribute__((format(printf, 1, 2))) const char *oarlock_fake_format(const char *format, ...);
const char *oarlock_fake_text(string_t string);
// Adds an entry at the end of a list.
void oarlock_fake_append(entry_t **list, entry_t entry);
// Ends the program: the test itself is wrong.
__attribute__((format(printf, 1, 2), noreturn)) void oarlock_fake_misuse(const char *format, ...);

// === JSON ===

// Returns a JSON text without white space; NULL if it is none.
const char *oarlock_fake_normalized(const char *json);
// Applies a merge patch. `json` may be NULL. Both are normalized.
const char *oarlock_fake_merged(const char *json, const char *patch);
// Applies a JSON patch. Returns NULL if it cannot be applied.
const char *oarlock_fake_patched(const char *json, const char *operations);
// Returns the string at a pointer; "" if there is none.
const char *oarlock_fake_string_at(const char *json, const char *pointer);
// Calls a function with each scalar at a pointer, in which `*` stands for every element of a list.
void oarlock_fake_scalars(const char *json, const char *pointer,
                          void (*use)(void *context, const char *value), void *context);
bool oarlock_fake_matches_labels(const char *json, const char *selector);
bool oarlock_fake_matches_fields(const char *json, const char *selector);

// === Objects ===

// Returns `apps/v1/deployments`, or `v1/pods` for the core group.
const char *oarlock_fake_target(oarlock_gvr target);
const char *oarlock_fake_target_of(const oarlock_plugin_types_group_version_resource_t *target);
// Returns `namespace/name`, or the name of a cluster-scoped object.
const char *oarlock_fake_place(oarlock_key key);
oarlock_key oarlock_fake_key(const oarlock_plugin_types_object_key_t *key);
oarlock_key oarlock_fake_key_of(const char *json);
object_t *oarlock_fake_find(const char *target, oarlock_key key);
// Creates or replaces an object, and sets what the API server sets.
object_t *oarlock_fake_put(const char *target, const char *json);
void oarlock_fake_remove(const object_t *object);
// Removes an object; one with finalizers only gets a deletionTimestamp.
void oarlock_fake_delete(const object_t *object);
oarlock_plugin_types_object_ref_t oarlock_fake_ref(const char *json);

// === Answers ===

// Returns a string as the host writes it.
string_t oarlock_fake_string(const char *text);
// The same; none for NULL.
oarlock_bindings_option_string_t oarlock_fake_option(const char *text);
// Returns the fields at pointers.
oarlock_bindings_list_option_string_t oarlock_fake_fields(const char *json,
                                                          const oarlock_bindings_list_string_t *pointers);
// Writes an error, and returns false.
bool oarlock_fake_fail(failed_t *failed, oarlock_code code, const char *message);
// Returns whether the test wants no error for this verb, else writes the error.
bool oarlock_fake_may(const char *verb, failed_t *failed);
const char *oarlock_fake_code(oarlock_code code);

// === Requests ===

// Returns whether the plugin may make a request, and the test wants no error for it; else writes the error.
bool oarlock_fake_may_request(const char *call, const char *verb, const char *target, const char *subresource,
                              failed_t *failed);
// Returns the part of an object that a subresource is; NULL if it is none.
const char *oarlock_fake_part(const char *json, const char *subresource, failed_t *failed);

#endif
