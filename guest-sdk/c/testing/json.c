// JSON of the host in memory: normalized texts, patches, pointers.

#include "fake.h"

#include <string.h>

// Values nested deeper are refused.
enum { MAX_DEPTH = 200 };

// === Normalized texts ===

static const char *skip_space(const char *json) { return json + strspn(json, " \t\r\n"); }

static bool write_value(const char **json, text_t *out, int depth);

// Writes a string or a scalar, of `len` bytes.
static bool write_token(const char **json, text_t *out, size_t len) {
    const char *token = oarlock_fake_format("%.*s", (int)len, *json);
    const char *text;
    double number;
    bool is_literal = !strcmp(token, "true") || !strcmp(token, "false") || !strcmp(token, "null");
    if (!is_literal && !oarlock_json_string(token, &text) && !oarlock_json_number(token, &number))
        return false;
    oarlock_fake_write(out, "%s", token);
    *json += len;
    return true;
}

static bool write_string(const char **json, text_t *out) {
    size_t len = 1;
    while ((*json)[len] && (*json)[len] != '"') len += (*json)[len] == '\\' && (*json)[len + 1] ? 2 : 1;
    return (*json)[len] && write_token(json, out, len + 1);
}

static bool write_container(const char **json, text_t *out, int depth) {
    char begin = **json;
    char end = begin == '{' ? '}' : ']';
    oarlock_fake_write(out, "%c", begin);
    *json = skip_space(*json + 1);
    for (bool is_first = true; **json != end; is_first = false) {
        if (!is_first) {
            if (**json != ',') return false;
            oarlock_fake_write(out, ",");
            *json = skip_space(*json + 1);
        }
        if (begin == '{') {
            if (**json != '"' || !write_string(json, out)) return false;
            *json = skip_space(*json);
            if (**json != ':') return false;
            oarlock_fake_write(out, ":");
            *json = skip_space(*json + 1);
        }
        if (!write_value(json, out, depth + 1)) return false;
        *json = skip_space(*json);
    }
    oarlock_fake_write(out, "%c", end);
    ++*json;
    return true;
}

static bool write_value(const char **json, text_t *out, int depth) {
    if (depth > MAX_DEPTH) return false;
    if (**json == '{' || **json == '[') return write_container(json, out, depth);
    if (**json == '"') return write_string(json, out);
    return write_token(json, out, strcspn(*json, " \t\r\n,:\"{}[]"));
}

const char *oarlock_fake_normalized(const char *json) {
    text_t out = {0};
    if (!json) return NULL;
    json = skip_space(json);
    return write_value(&json, &out, 0) && !*skip_space(json) ? out.at : NULL;
}

// === Patches ===

// Writes a member of an object, or an element of a list (without a name).
static void write_member(text_t *out, const char *name, const char *value) {
    if (out->len > 1) oarlock_fake_write(out, ",");
    if (name) oarlock_fake_write(out, "%s:", oarlock_format("%j", name));
    oarlock_fake_write(out, "%s", value);
}

const char *oarlock_fake_merged(const char *json, const char *patch) {
    if (*patch != '{') return patch;
    if (json && *json != '{') json = NULL;
    text_t out = {0};
    oarlock_fake_write(&out, "{");
    for (oarlock_members it = oarlock_json_members(json); oarlock_json_next(&it);) {
        const char *change = oarlock_json_member(patch, it.name);
        if (!change) write_member(&out, it.name, it.value);
        else if (strcmp(change, "null")) write_member(&out, it.name, oarlock_fake_merged(it.value, change));
    }
    for (oarlock_members it = oarlock_json_members(patch); oarlock_json_next(&it);) {
        if (!strcmp(it.value, "null") || oarlock_json_member(json, it.name)) continue;
        write_member(&out, it.name, oarlock_fake_merged(NULL, it.value));
    }
    oarlock_fake_write(&out, "}");
    return out.at;
}

// Returns the first segment of a pointer, and goes behind it.
static const char *next_segment(const char **pointer) {
    text_t segment = {0};
    oarlock_fake_write(&segment, "%s", "");
    for (++*pointer; **pointer && **pointer != '/'; ++*pointer) {
        bool is_escape = **pointer == '~' && ((*pointer)[1] == '0' || (*pointer)[1] == '1');
        if (is_escape) ++*pointer;
        oarlock_fake_write(&segment, "%c", !is_escape ? **pointer : **pointer == '1' ? '/' : '~');
    }
    return segment.at;
}

// Returns a value after one operation; NULL if there is no such place.
static const char *edited(const char *json, const char *op, const char *pointer, const char *value) {
    bool adds = !strcmp(op, "add");
    if (!*pointer) {
        if (adds || !strcmp(op, "replace")) return value;
        return !strcmp(op, "test") && !strcmp(json, value) ? json : NULL;
    }
    if (*pointer != '/' || (*json != '{' && *json != '[')) return NULL;
    const char *segment = next_segment(&pointer);
    bool is_list = *json == '[';
    bool is_done = false;
    size_t n_elements = 0;
    text_t out = {0};
    oarlock_fake_write(&out, "%c", *json);
    for (oarlock_members it = oarlock_json_members(json); oarlock_json_next(&it); n_elements++) {
        const char *name = is_list ? oarlock_fake_format("%zu", n_elements) : it.name;
        const char *kept = it.value;
        if (!strcmp(name, segment)) {
            is_done = true;
            if (!*pointer && is_list && adds) {
                write_member(&out, NULL, value);
            } else if (!*pointer && !strcmp(op, "remove")) {
                continue;
            } else {
                kept = edited(it.value, op, pointer, value);
                if (!kept) return NULL;
            }
        }
        write_member(&out, is_list ? NULL : it.name, kept);
    }
    if (!is_done) {
        bool is_end = !strcmp(segment, "-") || !strcmp(segment, oarlock_fake_format("%zu", n_elements));
        if (*pointer || !adds || (is_list && !is_end)) return NULL;
        write_member(&out, is_list ? NULL : segment, value);
    }
    oarlock_fake_write(&out, is_list ? "]" : "}");
    return out.at;
}

const char *oarlock_fake_patched(const char *json, const char *operations) {
    if (*operations != '[') return NULL;
    for (oarlock_members it = oarlock_json_members(operations); json && oarlock_json_next(&it);) {
        const char *op = oarlock_fake_string_at(it.value, "/op");
        const char *value = oarlock_json_member(it.value, "value");
        if (!value && strcmp(op, "remove")) return NULL;
        json = edited(json, op, oarlock_fake_string_at(it.value, "/path"), value);
    }
    return json;
}

// === Pointers ===

const char *oarlock_fake_string_at(const char *json, const char *pointer) {
    const char *text = "";
    oarlock_json_string(oarlock_json_at(json, pointer), &text);
    return oarlock_fake_format("%s", text);
}

void oarlock_fake_scalars(const char *json, const char *pointer,
                          void (*use)(void *context, const char *value), void *context) {
    if (!json || (*pointer && *pointer != '/')) return;
    if (!*pointer) {
        const char *text = json;
        oarlock_json_string(json, &text);
        if (*json != '{' && *json != '[' && strcmp(json, "null"))
            use(context, oarlock_fake_format("%s", text));
        return;
    }
    const char *segment = next_segment(&pointer);
    if (*json != '[' || strcmp(segment, "*")) {
        const char *at = *json == '[' ? oarlock_json_at(json, oarlock_fake_format("/%s", segment))
                                      : oarlock_json_member(json, segment);
        oarlock_fake_scalars(at, pointer, use, context);
        return;
    }
    for (oarlock_members it = oarlock_json_members(json); oarlock_json_next(&it);) {
        oarlock_fake_scalars(it.value, pointer, use, context);
    }
}
