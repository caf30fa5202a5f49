// Write Oarlock plugins in C.
//
// A plugin is one constant, OARLOCK_PLUGIN: what it watches, reads and writes, and the functions that the
// host calls.
//
// Strings are NUL-terminated UTF-8. Those that the SDK gives to a plugin live until the function that the
// host called returns, those of a row only until the next call of oarlock_next; copy what is kept longer.
// Those that a plugin gives to the SDK are only read. So a plugin frees nothing.
//
// JSON is text: a field that holds the string `a` is "\"a\"". oarlock_json_* reads it.

#ifndef OARLOCK_H
#define OARLOCK_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// === Names ===

// Names a resource as its REST path does. The core group is "".
typedef struct {
    const char *group;
    const char *version;
    const char *plural;
} oarlock_gvr;

// Names one object within its resource. `ns` is "" for cluster-scoped objects.
typedef struct {
    const char *ns;
    const char *name;
} oarlock_key;

// Identifies one version of one object.
typedef struct {
    const char *ns;
    const char *name;
    const char *uid;
    const char *resource_version;
} oarlock_object;

// Names work for `reconcile`. The plugin chooses `kind`; usually it is the name of a subscription.
typedef struct {
    const char *kind;
    oarlock_key object;
} oarlock_work_key;

// Returns the name of an object.
oarlock_key oarlock_key_of(oarlock_object object);

// === Errors ===

// Why a call failed. The first group is returned by functions of the SDK; the second by functions of the
// plugin. A plugin may return either: OARLOCK_INVALID, OARLOCK_NOT_DECLARED and OARLOCK_LIMIT_EXCEEDED become
// terminal, since a repeated call would fail again; everything else is tried again.
typedef enum {
    OARLOCK_OK = 0,
    OARLOCK_NOT_FOUND,
    OARLOCK_ALREADY_EXISTS,
    OARLOCK_CONFLICT,
    OARLOCK_FORBIDDEN,
    OARLOCK_INVALID,
    OARLOCK_THROTTLED,
    OARLOCK_UNAVAILABLE,
    OARLOCK_TIMEOUT,
    OARLOCK_GONE,
    OARLOCK_NOT_DECLARED,
    OARLOCK_NOT_SYNCED,
    OARLOCK_LIMIT_EXCEEDED,
    OARLOCK_SUSPENDED,

    OARLOCK_RETRY,
    OARLOCK_RETRY_AFTER,
    OARLOCK_TERMINAL,
} oarlock_code;

// The result of a call. It is no error if `code` is OARLOCK_OK (zero).
typedef struct {
    oarlock_code code;
    const char *message;
    // With OARLOCK_RETRY_AFTER and OARLOCK_THROTTLED: the wait that was asked for; 0 if none was.
    uint32_t after_ms;
} oarlock_error;

// Returns success.
oarlock_error oarlock_ok(void);

// Has the host call again, with back-off.
oarlock_error oarlock_retry(const char *message);

// Has the host call again, but not before this time has passed; at most an hour.
oarlock_error oarlock_retry_after(const char *message, uint32_t after_ms);

// Has the host park the object: it is tried again at its next event, and within
// retry.parkedDelay (5 minutes by default).
oarlock_error oarlock_terminal(const char *message);

// Returns from the function with the error of an expression, if it is one.
#define OARLOCK_TRY(expression)                         \
    do {                                                \
        oarlock_error oarlock_error_ = (expression);    \
        if (oarlock_error_.code) return oarlock_error_; \
    } while (0)

// === What a plugin declares ===
//
// Lists end with an entry whose name is NULL ({0}); lists of strings with NULL.

// A test on one field of an object. The values are JSON texts.
typedef enum {
    OARLOCK_EXISTS = 0,
    OARLOCK_ABSENT,
    OARLOCK_EQUALS,
    OARLOCK_DIFFERS,
    OARLOCK_IN,
    OARLOCK_NOT_IN,
    OARLOCK_GREATER,
    OARLOCK_LESS,
} oarlock_test;

typedef struct {
    const char *pointer;
    oarlock_test test;
    // With OARLOCK_EQUALS, OARLOCK_DIFFERS, OARLOCK_GREATER and OARLOCK_LESS.
    const char *value;
    // With OARLOCK_IN and OARLOCK_NOT_IN.
    const char *const *values;
} oarlock_condition;

// The key that a notification adds to the work queue, in place of a call of the handler.
typedef enum {
    OARLOCK_ENQUEUE_NOTHING = 0,
    OARLOCK_ENQUEUE_ITSELF,
    // The controller owner, if it is of the kind `at` in the group `group`.
    OARLOCK_ENQUEUE_CONTROLLER_OWNER,
    // The object that the string at the JSON pointer `at` names.
    OARLOCK_ENQUEUE_POINTER,
    // The object that the value of the label `at` names.
    OARLOCK_ENQUEUE_LABEL,
    // Always the key `key`.
    OARLOCK_ENQUEUE_KEY,
} oarlock_enqueue_rule;

typedef struct {
    oarlock_enqueue_rule rule;
    const char *at;
    const char *group;
    // The object is cluster-scoped, not in the namespace of the object that names it.
    bool cluster_scoped;
    oarlock_work_key key;
} oarlock_enqueue;

// One declared watch.
typedef struct {
    const char *name;
    oarlock_gvr target;
    // One namespace; NULL for all that the account may read.
    const char *ns;
    const char *label_selector;
    // Ends with {0}: an entry without a pointer.
    const oarlock_condition *conditions;
    // JSON pointers to the fields that the plugin needs: the host skips updates that change none of them, and
    // every notification carries their values.
    const char *const *fields;
    // Only `apiVersion`, `kind` and `metadata`.
    bool metadata_only;
    uint32_t resync_seconds;
    oarlock_enqueue enqueue;
    bool ignore_own_writes;
} oarlock_subscription;

// A resource that the plugin reads from the cache. The name is that of the lister.
typedef struct {
    const char *name;
    oarlock_gvr target;
    const char *ns;
    bool metadata_only;
    // Changes of what the last `reconcile` of a key read through it queue that key again.
    bool wakes;
} oarlock_read;

// An index over a lister: by `label`, by `pointer` (in which `*` stands for every element of a list), or, if
// both are NULL, by the uids of the owners.
typedef struct {
    const char *name;
    const char *lister;
    const char *label;
    const char *pointer;
} oarlock_index;

// Requests that the plugin makes with oarlock_client_*. The list of them ends with an entry without verbs.
typedef struct {
    const char *const *verbs;
    oarlock_gvr target;
    const char *subresource;
    const char *ns;
} oarlock_request;

// A time at which the host adds a key: every so many seconds, or at the times of a cron expression.
typedef struct {
    const char *name;
    uint32_t every_seconds;
    const char *cron;
    // Of the IANA database; NULL for UTC.
    const char *time_zone;
    // It also fires when the plugin starts on a host.
    bool at_start;
    // NULL for the key whose kind is the schedule's name.
    const oarlock_work_key *key;
} oarlock_schedule;

// === Notifications ===

// An object exists, was created, or began to match the subscription.
typedef struct {
    const char *subscription;
    oarlock_object object;
    bool is_in_initial_list;
    // The values of the declared fields, in the order of the declaration: JSON texts; NULL for a field that
    // the object lacks. Without any if `n_fields` is 0: none are declared, or they are longer than 1 MiB.
    const char *const *fields;
    size_t n_fields;
} oarlock_added;

// An object changed, or a resync delivers it again.
typedef struct {
    const char *subscription;
    oarlock_object object;
    const char *old_resource_version;
    // The uid of the old state, if it differs; else NULL.
    const char *old_uid;
    const char *const *fields;
    size_t n_fields;
    const char *const *old_fields;
    size_t n_old_fields;
} oarlock_updated;

// An object was deleted, or ceased to match the subscription.
typedef struct {
    const char *subscription;
    oarlock_object object;
    bool final_state_unknown;
    const char *const *fields;
    size_t n_fields;
} oarlock_deleted;

// All initial adds of a subscription have been handled.
typedef struct {
    const char *subscription;
    uint32_t remaining;
} oarlock_synced;

// What the host does after `reconcile`: nothing, or it calls again with the key after so many milliseconds.
typedef struct {
    uint32_t requeue_after_ms;
} oarlock_outcome;

// === The plugin ===

typedef struct oarlock_plugin {
    const char *name;
    const char *version;
    // It can lose everything that it keeps between calls.
    bool stateless;
    const oarlock_subscription *subscriptions;
    const oarlock_read *reads;
    const oarlock_index *indices;
    const oarlock_request *requests;
    const oarlock_schedule *schedules;
    // May be NULL. Changes the description by the configuration, before the host reads it.
    oarlock_error (*describe)(struct oarlock_plugin *description);
    // May be NULL. Called before the first call of an instance.
    oarlock_error (*start)(void);
    // The host calls these; NULL accepts the notification.
    oarlock_error (*on_add)(const oarlock_added *added);
    oarlock_error (*on_update)(const oarlock_updated *updated);
    oarlock_error (*on_delete)(const oarlock_deleted *deleted);
    oarlock_error (*on_synced)(const oarlock_synced *synced);
    // For the worlds reconciler-plugin and plugin.
    oarlock_error (*reconcile)(const oarlock_work_key *key, oarlock_outcome *outcome);
} oarlock_plugin;

// The plugin: `OARLOCK_PLUGIN = {.name = "my-plugin", …};`
extern const oarlock_plugin oarlock_plugin_definition;
#define OARLOCK_PLUGIN const oarlock_plugin oarlock_plugin_definition

// === The object of the notification ===

typedef enum {
    OARLOCK_OLD = 0,
    OARLOCK_NEW,
} oarlock_version;

// Sets `json` to the value at a JSON pointer, or to NULL if the object has no such field.
oarlock_error oarlock_event_field(oarlock_version which, const char *pointer, const char **json);

// Sets `values` to those at several pointers, which end with NULL, in one call of the host.
oarlock_error oarlock_event_fields(oarlock_version which, const char *const *pointers, const char **values);

// Sets `json` to the whole object.
oarlock_error oarlock_event_json(oarlock_version which, const char **json);

// === Reads of the cache ===

// What a read returns of each object: nothing more than its name and version; or the whole object; or the
// fields at JSON pointers: {.fields = (const char *[]){"/spec/replicas", NULL}}.
typedef struct {
    const char *const *fields;
    bool json;
} oarlock_select;

// One object of an answer.
typedef struct {
    oarlock_object object;
    // With oarlock_select.fields: JSON texts, NULL for a field that the object lacks.
    const char *const *fields;
    // With oarlock_select.json.
    const char *json;
} oarlock_row;

// Iterates over the objects of an answer, and asks the host for the next page when it needs it:
//
//     oarlock_rows rows = oarlock_cache_list("pods", NULL, "app=web", (oarlock_select){0});
//     while (oarlock_next(&rows)) use(rows.row.object.name);
//     if (rows.error.code) return rows.error;
//
// A row and its strings live until the next call of oarlock_next with the same `rows`, so that an iteration
// needs the memory of one page, however many there are. Copy what is kept: oarlock_format("%s", name). The
// pointers of `fields` are read again for each page.
typedef struct {
    oarlock_row row;
    oarlock_error error;
    struct oarlock_rows_state *state;
} oarlock_rows;

// Goes to the next object, and frees the row before. Returns false at the end, or after an error; then the
// row is empty.
bool oarlock_next(oarlock_rows *rows);

// Reads one object. Sets `found` to whether the cache has it.
oarlock_error oarlock_cache_get(const char *lister, oarlock_key key, oarlock_select select, oarlock_row *row,
                                bool *found);

// Returns the objects in a namespace (NULL: in all) whose labels match a selector (NULL: all).
oarlock_rows oarlock_cache_list(const char *lister, const char *ns, const char *label_selector,
                                oarlock_select select);

// Returns the objects in a namespace (NULL: in all) that have a value in an index.
oarlock_rows oarlock_cache_by_index(const char *index, const char *value, const char *ns,
                                    oarlock_select select);

// Sets `values` to the values in an index, sorted; the list ends with NULL.
oarlock_error oarlock_cache_index_values(const char *index, const char *const **values);

// Sets `synced` to whether the cache contains the whole first list.
oarlock_error oarlock_cache_has_synced(const char *lister, bool *synced);

// Waits at most so many milliseconds until the cache has processed a resourceVersion that a write returned.
oarlock_error oarlock_cache_wait_until_seen(const char *lister, const char *resource_version,
                                            uint32_t timeout_ms);

// === Requests to the API server ===

// How a write is made. NULL in place of it: on the object itself, without conditions.
typedef struct {
    const char *subresource;
    // The write fails with OARLOCK_CONFLICT unless the object has this uid, and this version.
    const char *uid;
    const char *resource_version;
    // An apply takes over fields of other managers.
    bool force;
} oarlock_write;

// The object after a write. NULL may be given in place of it.
typedef struct {
    // Empty for cluster-scoped objects.
    const char *ns;
    const char *name;
    const char *uid;
    const char *resource_version;
} oarlock_written;

typedef enum {
    OARLOCK_JSON_PATCH = 0,
    OARLOCK_MERGE_PATCH,
    OARLOCK_STRATEGIC_MERGE_PATCH,
} oarlock_patch_kind;

typedef enum {
    OARLOCK_BACKGROUND = 0,
    OARLOCK_FOREGROUND,
    OARLOCK_ORPHAN,
} oarlock_propagation;

// Returns how to write an object only if it still has this version.
oarlock_write oarlock_if_unchanged(oarlock_object object);

// Sets `json` to the current object, or its subresource (NULL or "": the object itself); to NULL if it does
// not exist.
oarlock_error oarlock_client_get(oarlock_gvr target, oarlock_key key, const char *subresource,
                                 const char **json);

// Returns objects as the API server has them now. A lister is cheaper from the second read on.
oarlock_rows oarlock_client_list(oarlock_gvr target, const char *ns, const char *label_selector,
                                 const char *field_selector, oarlock_select select);

oarlock_error oarlock_client_create(oarlock_gvr target, const char *ns, const char *json,
                                    oarlock_written *written);

// Server-side apply, with the plugin's name as field manager.
oarlock_error oarlock_client_apply(oarlock_gvr target, oarlock_key key, const char *json,
                                   const oarlock_write *write, oarlock_written *written);

oarlock_error oarlock_client_patch(oarlock_gvr target, oarlock_key key, oarlock_patch_kind kind,
                                   const char *body, const oarlock_write *write, oarlock_written *written);

// Replaces an object by a changed copy of the text that oarlock_client_get or oarlock_client_list returned.
oarlock_error oarlock_client_replace(oarlock_gvr target, oarlock_key key, const char *subresource,
                                     const char *json, oarlock_written *written);

// Deletes an object; its dependents are deleted in the background. Succeeds if it does not exist.
oarlock_error oarlock_client_delete(oarlock_gvr target, oarlock_key key, const oarlock_write *write);

// As oarlock_client_delete, with a choice for the dependents. A negative grace period is that of the
// resource.
oarlock_error oarlock_client_delete_with(oarlock_gvr target, oarlock_key key, const oarlock_write *write,
                                         oarlock_propagation propagation, int32_t grace_period_seconds);

// Sets the number of replicas, through the subresource `scale`.
oarlock_error oarlock_client_scale(oarlock_gvr target, oarlock_key key, uint32_t replicas);

// === Events, log, metrics, work queue, clock, configuration ===

typedef enum {
    OARLOCK_NORMAL = 0,
    OARLOCK_WARNING,
} oarlock_event_type;

// Records a Kubernetes Event about an object. Of the note, the first 1,024 bytes are shown.
oarlock_error oarlock_event_record(oarlock_gvr target, const char *kind, oarlock_object regarding,
                                   oarlock_event_type type, const char *reason, const char *note);

typedef enum {
    OARLOCK_TRACE = 0,
    OARLOCK_DEBUG,
    OARLOCK_INFO,
    OARLOCK_WARN,
    OARLOCK_ERROR,
} oarlock_level;

// Writes a line to the log: a message, then names and values, at most 32, then NULL. A pair whose value is
// NULL is left out.
__attribute__((sentinel)) void oarlock_log(oarlock_level level, const char *message, ...);

// oarlock_info("copied", "namespace", ns, "name", name);
#define oarlock_debug(...) oarlock_log(OARLOCK_DEBUG, __VA_ARGS__, (const char *)NULL)
#define oarlock_info(...) oarlock_log(OARLOCK_INFO, __VA_ARGS__, (const char *)NULL)
#define oarlock_warn(...) oarlock_log(OARLOCK_WARN, __VA_ARGS__, (const char *)NULL)

// Increases a counter, or sets a gauge; then names and values of labels, at most 8, then NULL.
__attribute__((sentinel)) oarlock_error oarlock_counter_add(const char *name, double by, ...);
__attribute__((sentinel)) oarlock_error oarlock_gauge_set(const char *name, double value, ...);

oarlock_error oarlock_queue_add(oarlock_work_key key);
oarlock_error oarlock_queue_add_after(oarlock_work_key key, uint32_t delay_ms);

// Returns the time in milliseconds since 1970-01-01T00:00:00Z, and since this instance was created.
double oarlock_now_ms(void);
double oarlock_elapsed_ms(void);

// Sets `json` to the value at a JSON pointer of the configuration, or to NULL if there is none.
oarlock_error oarlock_config(const char *pointer, const char **json);

// === JSON ===

// Sets `text` to the value of a JSON string. Returns false for any other JSON, and for NULL.
bool oarlock_json_string(const char *json, const char **text);
bool oarlock_json_int(const char *json, int64_t *value);
bool oarlock_json_number(const char *json, double *value);
bool oarlock_json_bool(const char *json, bool *value);

// Returns the JSON text at a JSON pointer of another JSON text; NULL if there is none.
const char *oarlock_json_at(const char *json, const char *pointer);

// Returns the JSON text of a member of an object; NULL if there is none.
const char *oarlock_json_member(const char *json, const char *name);

// Iterates over the members of an object or the elements of a list:
//
//     for (oarlock_members it = oarlock_json_members(json); oarlock_json_next(&it);) use(it.name, it.value);
//
// Anything else, and NULL, has none. `name` is NULL for elements of a list.
typedef struct {
    const char *name;
    const char *value;
    const char *rest;
} oarlock_members;

oarlock_members oarlock_json_members(const char *json);
bool oarlock_json_next(oarlock_members *members);

// Returns a text like printf's, with %s: a text as it is; %j: a text as a JSON string; %d: an int; %%.
const char *oarlock_format(const char *format, ...);

// === Memory ===

// Returns memory that lives until the function that the host called returns.
void *oarlock_alloc(size_t size);

// Frees early, in a function that handles many objects: what the SDK gave between begin and end is freed. An
// iteration that began before `begin` goes on after `end`.
typedef struct {
    void *chunk;
    size_t used;
    void *area;
} oarlock_scope;

oarlock_scope oarlock_scope_begin(void);
void oarlock_scope_end(oarlock_scope scope);

#endif
