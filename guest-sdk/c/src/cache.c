// Reads of the cache, and lists of the API server, which have the same pages.

#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "exports.h"

// What is asked for, and the current page.
struct oarlock_rows_state {
    enum { LIST, BY_INDEX, LIVE } source;
    // The lister or index.
    const char *name;
    // The value in the index, or the field selector.
    const char *value;
    const char *label_selector;
    const char *ns;
    oarlock_gvr target;
    oarlock_select select;
    oarlock_plugin_types_page_t page;
    // The memory of the page, of the row, and of an error.
    oarlock_area area;
    // The number of rows of a page; 0 is the host's choice.
    uint32_t limit;
    size_t next;
    bool is_last_page;
};

// Returns a copy, since a text may be that of a row of another iteration, which goes on.
static const char *copy(const char *text) {
    if (!text) return NULL;
    size_t size = strlen(text) + 1;
    return memcpy(oarlock_alloc(size), text, size);
}

static oarlock_rows rows_of(struct oarlock_rows_state state) {
    struct oarlock_rows_state *kept = oarlock_alloc(sizeof *kept);
    *kept = state;
    kept->name = copy(state.name);
    kept->value = copy(state.value);
    kept->label_selector = copy(state.label_selector);
    kept->ns = copy(state.ns);
    oarlock_gvr target = state.target;
    kept->target = (oarlock_gvr){
        .group = copy(target.group), .version = copy(target.version), .plural = copy(target.plural)};
    oarlock_area_add(&kept->area);
    return (oarlock_rows){.state = kept};
}

// Asks the host for a page, in the area.
static oarlock_error fetch(struct oarlock_rows_state *state, string_t token) {
    string_t name = oarlock_lend(state->name);
    string_t value = oarlock_lend(state->value);
    string_t selector = oarlock_lend(state->label_selector);
    oarlock_plugin_types_group_version_resource_t target = oarlock_lend_gvr(state->target);
    oarlock_plugin_types_namespaces_t namespaces = oarlock_lend_namespaces(state->ns);
    oarlock_plugin_types_projection_t projection = oarlock_lend_select(state->select);
    oarlock_plugin_types_page_request_t request = {.limit = state->limit, .continue_token = token};
    oarlock_plugin_types_error_t error;
    bool done = false;
    switch (state->source) {
    case LIST:
        done = oarlock_plugin_cache_list(&name, &namespaces, &selector, &projection, &request, &state->page,
                                         &error);
        break;
    case BY_INDEX:
        done = oarlock_plugin_cache_by_index(&name, &value, &namespaces, &projection, &request, &state->page,
                                             &error);
        break;
    case LIVE:
        done = oarlock_plugin_client_list(&target, &namespaces, &selector, &value, &projection, &request,
                                          &state->page, &error);
        break;
    }
    if (!done) {
        oarlock_error failed = oarlock_error_from(&error);
        if (failed.code != OARLOCK_LIMIT_EXCEEDED || state->limit <= 1) return failed;
        // The objects of the page are too large together.
        state->limit /= 2;
        return fetch(state, token);
    }
    state->next = 0;
    state->is_last_page = state->page.continue_token.len == 0;
    return oarlock_ok();
}

// Frees the page.
static void drop_page(struct oarlock_rows_state *state) {
    oarlock_area_free(&state->area);
    state->page = (oarlock_plugin_types_page_t){0};
    state->next = 0;
}

// Replaces the page by the next one. The old one is freed first, so that the memory is that of one page.
static oarlock_error next_page(struct oarlock_rows_state *state) {
    string_t token = oarlock_give(oarlock_text(state->page.continue_token));
    drop_page(state);
    oarlock_area_enter(&state->area);
    oarlock_error error = fetch(state, token);
    oarlock_area_leave();
    if (token.len) free(token.ptr);
    return error;
}

#ifdef __wasm__
static void end_row(const struct oarlock_rows_state *state) { (void)state; }
#else
static void end_text(string_t text) {
    if (text.len) ASAN_POISON_MEMORY_REGION(text.ptr, text.len + 1);
}

// In a unit test, the sanitizer finds each use of a row after the next call of oarlock_next, although its
// page is still there.
static void end_row(const struct oarlock_rows_state *state) {
    if (state->next == 0) return;
    const oarlock_plugin_types_row_t *row = &state->page.rows.ptr[state->next - 1];
    end_text(row->object.namespace_);
    end_text(row->object.name);
    end_text(row->object.uid);
    end_text(row->object.resource_version);
    for (size_t i = 0; i < row->fields.len; i++) {
        if (row->fields.ptr[i].is_some) end_text(row->fields.ptr[i].val);
    }
    if (row->json.is_some) end_text(row->json.val);
}
#endif

bool oarlock_next(oarlock_rows *rows) {
    struct oarlock_rows_state *state = rows->state;
    end_row(state);
    while (!rows->error.code) {
        if (state->next < state->page.rows.len) {
            oarlock_area_enter(&state->area);
            rows->row = oarlock_row_from(&state->page.rows.ptr[state->next++]);
            oarlock_area_leave();
            return true;
        }
        rows->row = (oarlock_row){0};
        if (state->is_last_page) {
            drop_page(state);
            return false;
        }
        rows->error = next_page(state);
    }
    return false;
}

oarlock_rows oarlock_cache_list(const char *lister, const char *ns, const char *label_selector,
                                oarlock_select select) {
    return rows_of((struct oarlock_rows_state){
        .source = LIST, .name = lister, .ns = ns, .label_selector = label_selector, .select = select});
}

oarlock_rows oarlock_cache_by_index(const char *index, const char *value, const char *ns,
                                    oarlock_select select) {
    return rows_of((struct oarlock_rows_state){
        .source = BY_INDEX, .name = index, .value = value, .ns = ns, .select = select});
}

oarlock_rows oarlock_client_list(oarlock_gvr target, const char *ns, const char *label_selector,
                                 const char *field_selector, oarlock_select select) {
    return rows_of((struct oarlock_rows_state){.source = LIVE,
                                               .limit = 500,
                                               .target = target,
                                               .ns = ns,
                                               .label_selector = label_selector,
                                               .value = field_selector,
                                               .select = select});
}

oarlock_error oarlock_cache_get(const char *lister, oarlock_key key, oarlock_select select, oarlock_row *row,
                                bool *found) {
    string_t name = oarlock_lend(lister);
    oarlock_plugin_types_object_key_t at = oarlock_lend_key(key);
    oarlock_plugin_types_projection_t projection = oarlock_lend_select(select);
    oarlock_plugin_types_row_t answer;
    oarlock_plugin_types_error_t error;
    *found = oarlock_plugin_cache_get(&name, &at, &projection, &answer, &error);
    if (*found) {
        *row = oarlock_row_from(&answer);
        return oarlock_ok();
    }
    *row = (oarlock_row){0};
    if (error.tag == OARLOCK_PLUGIN_TYPES_ERROR_NOT_FOUND) return oarlock_ok();
    return oarlock_error_from(&error);
}

oarlock_error oarlock_cache_index_values(const char *index, const char *const **values) {
    string_t name = oarlock_lend(index);
    oarlock_bindings_list_string_t list;
    oarlock_plugin_types_error_t error;
    if (!oarlock_plugin_cache_index_values(&name, &list, &error)) return oarlock_error_from(&error);
    const char **texts = oarlock_alloc((list.len + 1) * sizeof *texts);
    for (size_t i = 0; i < list.len; i++) texts[i] = oarlock_text(list.ptr[i]);
    texts[list.len] = NULL;
    *values = texts;
    return oarlock_ok();
}

oarlock_error oarlock_cache_has_synced(const char *lister, bool *synced) {
    string_t name = oarlock_lend(lister);
    oarlock_plugin_types_error_t error;
    return oarlock_plugin_cache_has_synced(&name, synced, &error) ? oarlock_ok() : oarlock_error_from(&error);
}

oarlock_error oarlock_cache_wait_until_seen(const char *lister, const char *resource_version,
                                            uint32_t timeout_ms) {
    string_t name = oarlock_lend(lister);
    string_t version = oarlock_lend(resource_version);
    oarlock_plugin_types_error_t error;
    bool seen = oarlock_plugin_cache_wait_until_seen(&name, &version, timeout_ms, &error);
    return seen ? oarlock_ok() : oarlock_error_from(&error);
}
