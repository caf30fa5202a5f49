// Reads of the cache, and lists of the API server, which have the same pages.

#include "convert.h"

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
    // The number of rows of a page; 0 is the host's choice.
    uint32_t limit;
    size_t next;
    bool is_last_page;
};

static oarlock_rows rows_of(struct oarlock_rows_state state) {
    struct oarlock_rows_state *kept = oarlock_alloc(sizeof *kept);
    *kept = state;
    return (oarlock_rows){.state = kept};
}

static oarlock_error fetch(struct oarlock_rows_state *state) {
    string_t name = oarlock_lend(state->name);
    string_t value = oarlock_lend(state->value);
    string_t selector = oarlock_lend(state->label_selector);
    oarlock_plugin_types_group_version_resource_t target = oarlock_lend_gvr(state->target);
    oarlock_plugin_types_namespaces_t namespaces = oarlock_lend_namespaces(state->ns);
    oarlock_plugin_types_projection_t projection = oarlock_lend_select(state->select);
    oarlock_plugin_types_page_request_t request = {.limit = state->limit,
                                                   .continue_token = state->page.continue_token};
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
        return fetch(state);
    }
    state->next = 0;
    state->is_last_page = state->page.continue_token.len == 0;
    return oarlock_ok();
}

bool oarlock_next(oarlock_rows *rows) {
    struct oarlock_rows_state *state = rows->state;
    while (!rows->error.code) {
        if (state->next < state->page.rows.len) {
            rows->row = oarlock_row_from(&state->page.rows.ptr[state->next++]);
            return true;
        }
        if (state->is_last_page) return false;
        rows->error = fetch(state);
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
