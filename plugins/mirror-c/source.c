// The namespaces that a source asks to be copied to.

#include <string.h>

#include "mirror.h"

void texts_add(texts_t *texts, const char *text) {
    if (texts->len == texts->capacity) {
        size_t capacity = texts->capacity ? texts->capacity * 2 : 16;
        const char **items = oarlock_alloc(capacity * sizeof *items);
        if (texts->len) memcpy(items, texts->items, texts->len * sizeof *items);
        texts->items = items;
        texts->capacity = capacity;
    }
    texts->items[texts->len++] = text;
}

bool texts_contain(const texts_t *texts, const char *text) {
    for (size_t i = 0; i < texts->len; i++) {
        if (strcmp(texts->items[i], text) == 0) return true;
    }
    return false;
}

oarlock_error excluded_namespaces(texts_t *excluded) {
    const char *json;
    OARLOCK_TRY(oarlock_config("/excludedNamespaces", &json));
    if (json && *json != '[')
        return oarlock_terminal("excludedNamespaces in the configuration is not a list");
    for (oarlock_members it = oarlock_json_members(json); oarlock_json_next(&it);) {
        const char *name;
        if (!oarlock_json_string(it.value, &name)) {
            return oarlock_terminal(
                "excludedNamespaces in the configuration contains something else than strings");
        }
        texts_add(excluded, name);
    }
    return oarlock_ok();
}

// Returns whether a list of names, separated by commas and spaces, has this one.
static bool names(const char *list, const char *name) {
    size_t len = strlen(name);
    while (*list) {
        list += strspn(list, ", ");
        size_t end = strcspn(list, ",");
        size_t word = end;
        while (word > 0 && list[word - 1] == ' ') word--;
        if (len > 0 && word == len && memcmp(list, name, len) == 0) return true;
        list += end;
    }
    return false;
}

oarlock_error targets_of(const char *source, const char *own_namespace, texts_t *targets) {
    const char *mirror_to;
    bool is_source = oarlock_json_string(oarlock_json_at(source, MIRROR_TO), &mirror_to) &&
                     !oarlock_json_at(source, MIRRORED_FROM) &&
                     !oarlock_json_at(source, "/metadata/deletionTimestamp");
    if (!is_source) return oarlock_ok();

    texts_t excluded = {0};
    OARLOCK_TRY(excluded_namespaces(&excluded));
    bool everywhere = names(mirror_to, "*");
    const char *const fields[] = {"/metadata/deletionTimestamp", NULL};
    oarlock_rows rows = oarlock_cache_list("namespaces", NULL, NULL, (oarlock_select){.fields = fields});
    while (oarlock_next(&rows)) {
        const char *ns = rows.row.object.name;
        // Objects cannot be created in a namespace that is being deleted.
        if (rows.row.fields[0] || strcmp(ns, own_namespace) == 0) continue;
        if (!names(mirror_to, ns) && (!everywhere || texts_contain(&excluded, ns))) continue;
        texts_add(targets, oarlock_format("%s", ns));
    }
    return rows.error;
}

bool parse_source(const char *text, oarlock_key *source) {
    const char *slash = strchr(text, '/');
    if (!slash || slash == text || !slash[1] || strchr(slash + 1, '/')) return false;
    size_t len = (size_t)(slash - text);
    char *ns = oarlock_alloc(len + 1);
    memcpy(ns, text, len);
    ns[len] = '\0';
    *source = (oarlock_key){.ns = ns, .name = slash + 1};
    return true;
}
