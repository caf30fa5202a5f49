// The event, Events, the log, metrics, the work queue, the clock, the configuration.

#include "convert.h"

#include <string.h>

// The host refuses a longer note, more pairs, and more labels.
enum { MAX_NOTE_BYTES = 1024, MAX_PAIRS = 32 };

oarlock_key oarlock_key_of(oarlock_object object) {
    return (oarlock_key){.ns = object.ns, .name = object.name};
}

oarlock_error oarlock_ok(void) { return (oarlock_error){.code = OARLOCK_OK}; }

oarlock_error oarlock_retry(const char *message) {
    return (oarlock_error){.code = OARLOCK_RETRY, .message = message};
}

oarlock_error oarlock_retry_after(const char *message, uint32_t after_ms) {
    return (oarlock_error){.code = OARLOCK_RETRY_AFTER, .message = message, .after_ms = after_ms};
}

oarlock_error oarlock_terminal(const char *message) {
    return (oarlock_error){.code = OARLOCK_TERMINAL, .message = message};
}

oarlock_error oarlock_event_field(oarlock_version which, const char *pointer, const char **json) {
    string_t at = oarlock_lend(pointer);
    oarlock_bindings_option_string_t found;
    oarlock_plugin_types_error_t error;
    *json = NULL;
    if (!oarlock_plugin_event_field((oarlock_plugin_event_version_t)which, &at, &found, &error)) {
        return oarlock_error_from(&error);
    }
    *json = oarlock_optional(&found);
    return oarlock_ok();
}

oarlock_error oarlock_event_fields(oarlock_version which, const char *const *pointers, const char **values) {
    oarlock_bindings_list_string_t list = oarlock_lend_list(pointers);
    oarlock_bindings_list_option_string_t found;
    oarlock_plugin_types_error_t error;
    if (!oarlock_plugin_event_fields((oarlock_plugin_event_version_t)which, &list, &found, &error)) {
        return oarlock_error_from(&error);
    }
    for (size_t i = 0; i < list.len; i++) values[i] = oarlock_optional(&found.ptr[i]);
    return oarlock_ok();
}

oarlock_error oarlock_event_json(oarlock_version which, const char **json) {
    string_t text;
    oarlock_plugin_types_error_t error;
    if (!oarlock_plugin_event_json((oarlock_plugin_event_version_t)which, &text, &error)) {
        return oarlock_error_from(&error);
    }
    *json = oarlock_text(text);
    return oarlock_ok();
}

// Returns the number of bytes of the longest part of a text that is UTF-8 and has at most `max` bytes.
static size_t truncated(const char *text, size_t max) {
    size_t len = strlen(text);
    if (len <= max) return len;
    while (max > 0 && ((unsigned char)text[max] & 0xC0) == 0x80) max--;
    return max;
}

oarlock_error oarlock_event_record(oarlock_gvr target, const char *kind, oarlock_object regarding,
                                   oarlock_event_type type, const char *reason, const char *note) {
    oarlock_plugin_types_group_version_resource_t resource = oarlock_lend_gvr(target);
    oarlock_plugin_types_object_ref_t object = {
        .namespace_ = oarlock_lend(regarding.ns),
        .name = oarlock_lend(regarding.name),
        .uid = oarlock_lend(regarding.uid),
        .resource_version = oarlock_lend(regarding.resource_version),
    };
    string_t of = oarlock_lend(kind);
    string_t why = oarlock_lend(reason);
    string_t text = oarlock_lend(note);
    if (note) text.len = truncated(note, MAX_NOTE_BYTES);
    oarlock_plugin_types_error_t error;
    bool done = oarlock_plugin_events_emit(&resource, &object, &of, (oarlock_plugin_events_event_type_t)type,
                                           &why, &text, &error);
    return done ? oarlock_ok() : oarlock_error_from(&error);
}

// Reads names and values until NULL. A pair whose value is NULL is left out.
static size_t pairs_of(va_list arguments, oarlock_plugin_types_entry_t pairs[MAX_PAIRS]) {
    size_t n_pairs = 0;
    for (const char *name = va_arg(arguments, const char *); name; name = va_arg(arguments, const char *)) {
        const char *value = va_arg(arguments, const char *);
        if (!value || n_pairs == MAX_PAIRS) continue;
        pairs[n_pairs++] =
            (oarlock_plugin_types_entry_t){.name = oarlock_lend(name), .value = oarlock_lend(value)};
    }
    return n_pairs;
}

void oarlock_log(oarlock_level level, const char *message, ...) {
    if (!oarlock_plugin_log_enabled((oarlock_plugin_log_level_t)level)) return;
    oarlock_plugin_types_entry_t pairs[MAX_PAIRS];
    va_list arguments;
    va_start(arguments, message);
    oarlock_plugin_log_list_entry_t list = {.ptr = pairs, .len = pairs_of(arguments, pairs)};
    va_end(arguments);
    string_t text = oarlock_lend(message);
    oarlock_plugin_log_log((oarlock_plugin_log_level_t)level, &text, &list);
}

oarlock_error oarlock_counter_add(const char *name, double by, ...) {
    oarlock_plugin_types_entry_t pairs[MAX_PAIRS];
    va_list arguments;
    va_start(arguments, by);
    oarlock_plugin_metrics_list_entry_t labels = {.ptr = pairs, .len = pairs_of(arguments, pairs)};
    va_end(arguments);
    string_t of = oarlock_lend(name);
    oarlock_plugin_types_error_t error;
    bool done = oarlock_plugin_metrics_counter_add(&of, by, &labels, &error);
    return done ? oarlock_ok() : oarlock_error_from(&error);
}

oarlock_error oarlock_gauge_set(const char *name, double value, ...) {
    oarlock_plugin_types_entry_t pairs[MAX_PAIRS];
    va_list arguments;
    va_start(arguments, value);
    oarlock_plugin_metrics_list_entry_t labels = {.ptr = pairs, .len = pairs_of(arguments, pairs)};
    va_end(arguments);
    string_t of = oarlock_lend(name);
    oarlock_plugin_types_error_t error;
    bool done = oarlock_plugin_metrics_gauge_set(&of, value, &labels, &error);
    return done ? oarlock_ok() : oarlock_error_from(&error);
}

static oarlock_plugin_work_queue_work_key_t lend_work_key(oarlock_work_key key) {
    return (oarlock_plugin_work_queue_work_key_t){
        .kind = oarlock_lend(key.kind),
        .object = oarlock_lend_key(key.object),
    };
}

oarlock_error oarlock_queue_add(oarlock_work_key key) {
    oarlock_plugin_work_queue_work_key_t added = lend_work_key(key);
    oarlock_plugin_types_error_t error;
    return oarlock_plugin_work_queue_add(&added, &error) ? oarlock_ok() : oarlock_error_from(&error);
}

oarlock_error oarlock_queue_add_after(oarlock_work_key key, uint32_t delay_ms) {
    oarlock_plugin_work_queue_work_key_t added = lend_work_key(key);
    oarlock_plugin_types_error_t error;
    bool done = oarlock_plugin_work_queue_add_after(&added, delay_ms, &error);
    return done ? oarlock_ok() : oarlock_error_from(&error);
}

double oarlock_now_ms(void) {
    oarlock_plugin_clock_datetime_t now;
    oarlock_plugin_clock_now(&now);
    return now.seconds * 1000.0 + now.nanoseconds / 1000000;
}

double oarlock_elapsed_ms(void) { return oarlock_plugin_clock_elapsed_ms(); }

oarlock_error oarlock_config(const char *pointer, const char **json) {
    string_t at = oarlock_lend(pointer);
    oarlock_bindings_option_string_t found;
    oarlock_plugin_types_error_t error;
    *json = NULL;
    if (!oarlock_plugin_config_get(&at, &found, &error)) return oarlock_error_from(&error);
    *json = oarlock_optional(&found);
    return oarlock_ok();
}
