// What the host in memory passes to the plugin, as the real host does: in memory of the plugin.

#include "fake.h"

#include <string.h>

void *cabi_realloc(void *old, size_t old_size, size_t align, size_t size);

string_t oarlock_fake_string(const char *text) {
    string_t string = {.len = strlen(text)};
    // The host allocates nothing for an empty string.
    string.ptr = string.len ? cabi_realloc(NULL, 0, 1, string.len) : (uint8_t *)1;
    if (string.len) memcpy(string.ptr, text, string.len);
    return string;
}

oarlock_bindings_option_string_t oarlock_fake_option(const char *text) {
    if (!text) return (oarlock_bindings_option_string_t){0};
    return (oarlock_bindings_option_string_t){.is_some = true, .val = oarlock_fake_string(text)};
}

oarlock_bindings_list_option_string_t oarlock_fake_fields(const char *json,
                                                          const oarlock_bindings_list_string_t *pointers) {
    oarlock_bindings_list_option_string_t fields = {.len = pointers->len};
    fields.ptr = cabi_realloc(NULL, 0, 8, fields.len * sizeof *fields.ptr);
    for (size_t i = 0; i < fields.len; i++) {
        fields.ptr[i] = oarlock_fake_option(oarlock_json_at(json, oarlock_fake_text(pointers->ptr[i])));
    }
    return fields;
}

// In the order of the codes, which is that of the bindings.
static const char *const CODES[] = {
    "ok",          "not-found", "already-exists", "conflict",     "forbidden",  "invalid",        "throttled",
    "unavailable", "timeout",   "gone",           "not-declared", "not-synced", "limit-exceeded", "suspended",
};

const char *oarlock_fake_code(oarlock_code code) { return CODES[code]; }

static bool fail(failed_t *failed, oarlock_error error) {
    failed->tag = (uint8_t)(error.code - 1);
    string_t message = oarlock_fake_string(error.message ? error.message : "");
    if (error.code == OARLOCK_THROTTLED) {
        failed->val.throttled.message = message;
        failed->val.throttled.retry_after_ms =
            (oarlock_bindings_option_u32_t){.is_some = error.after_ms != 0, .val = error.after_ms};
    } else {
        failed->val.invalid = message;
    }
    return false;
}

bool oarlock_fake_fail(failed_t *failed, oarlock_code code, const char *message) {
    return fail(failed, (oarlock_error){.code = code, .message = message});
}

bool oarlock_fake_may(const char *verb, failed_t *failed) {
    for (entry_t **entry = &oarlock_fake.failures; *entry; entry = &(*entry)->next) {
        if (strcmp((*entry)->text, verb) != 0) continue;
        oarlock_error error = (*entry)->error;
        *entry = (*entry)->next;
        return fail(failed, error);
    }
    return true;
}

void oarlock_host_fail_next(const char *verb, oarlock_error error) {
    static const char *const VERBS[] = {"get",   "list",    "create", "apply",
                                        "patch", "replace", "delete", "event"};
    bool is_known = false;
    for (size_t i = 0; i < sizeof VERBS / sizeof VERBS[0]; i++) is_known |= !strcmp(verb, VERBS[i]);
    if (!is_known) {
        oarlock_fake_misuse(
            "oarlock_host_fail_next: no request has the verb \"%s\"; the verbs are get, list, "
            "create, apply, patch, replace, delete and event",
            verb);
    }
    if (error.code == OARLOCK_OK || error.code > OARLOCK_SUSPENDED) {
        oarlock_fake_misuse("oarlock_host_fail_next: the code is none of a request: OARLOCK_NOT_FOUND to "
                            "OARLOCK_SUSPENDED");
    }
    error.message = oarlock_fake_format("%s", error.message ? error.message : "");
    oarlock_fake_append(&oarlock_fake.failures,
                        (entry_t){.text = oarlock_fake_format("%s", verb), .error = error});
}
