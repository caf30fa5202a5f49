// Tests of the memory of iterations: a row lives until the next call of oarlock_next, a page until the next
// page.

#include <sanitizer/asan_interface.h>
#include <string.h>

#include "../src/arena.h"
#include "oarlock_testing.h"
#include "tests.h"

// Of the sanitizer; gcc has no header of it. What was freed does not count.
size_t __sanitizer_get_current_allocated_bytes(void);

static const oarlock_gvr PODS = {"", "v1", "pods"};
static const oarlock_select WHOLE = {.json = true};

enum { N_OBJECTS = 400, N_BYTES = 20000, PAGE_SIZE = 20 };

// Fills the cache with large objects, of which a page has twenty.
static void reset(void) {
    static char large[N_BYTES + 1];
    memset(large, 'x', N_BYTES);
    oarlock_arena_reset();
    oarlock_host_reset();
    for (int i = 0; i < N_OBJECTS; i++) {
        oarlock_host_insert(PODS,
                            oarlock_format("{\"metadata\": {\"namespace\": \"home\", \"name\": \"pod-%d\"}, "
                                           "\"spec\": {\"nodeName\": \"n1\"}, \"large\": %j}",
                                           1000 + i, large));
    }
    oarlock_host_set_page_size(PAGE_SIZE);
    oarlock_arena_reset();
}

// Reads all rows, which are 8 MB, and checks that the memory does not grow with their number.
static void check_iteration(oarlock_rows rows, const char *const *fields) {
    size_t before = __sanitizer_get_current_allocated_bytes();
    size_t most = 0;
    size_t n_rows = 0;
    const char *row_before = NULL;
    while (oarlock_next(&rows)) {
        if (row_before) OARLOCK_CHECK(__asan_address_is_poisoned(row_before));
        row_before = fields ? rows.row.fields[0] : rows.row.json;
        OARLOCK_CHECK(strlen(row_before) > N_BYTES);
        OARLOCK_CHECK_TEXT(rows.row.object.name, oarlock_format("pod-%d", 1000 + (int)n_rows));
        size_t now = __sanitizer_get_current_allocated_bytes();
        if (now > most) most = now;
        n_rows++;
    }
    OARLOCK_CHECK(!rows.error.code && n_rows == N_OBJECTS && !rows.row.object.name);
    OARLOCK_CHECK(!oarlock_next(&rows) && __asan_address_is_poisoned(row_before));
    // The host in memory keeps what it needed for a page.
    OARLOCK_CHECK(most - before < N_OBJECTS * N_BYTES / 2);
}

static void an_iteration_has_the_memory_of_a_page(void) {
    const char *const fields[] = {"/large", NULL};
    reset();
    check_iteration(oarlock_cache_list("pods", NULL, NULL, WHOLE), NULL);
    reset();
    check_iteration(oarlock_cache_list("pods", NULL, NULL, (oarlock_select){.fields = fields}), fields);
    reset();
    check_iteration(oarlock_cache_by_index("by-node", "n1", NULL, WHOLE), NULL);
    reset();
    check_iteration(oarlock_client_list(PODS, NULL, NULL, NULL, WHOLE), NULL);
}

static void what_is_not_of_a_row_lives_on(void) {
    reset();
    oarlock_rows outer = oarlock_cache_list("pods", NULL, NULL, WHOLE);
    OARLOCK_CHECK(oarlock_next(&outer));
    const char *copy = oarlock_format("%s", outer.row.object.name);
    // Another iteration, also one within a scope, leaves the row as it is.
    oarlock_rows inner = oarlock_cache_list("pods", NULL, NULL, WHOLE);
    for (int i = 0; i < PAGE_SIZE + 5; i++) OARLOCK_CHECK(oarlock_next(&inner));
    oarlock_scope scope = oarlock_scope_begin();
    oarlock_rows scoped = oarlock_cache_list("pods", NULL, NULL, WHOLE);
    for (int i = 0; i < PAGE_SIZE + 5; i++) OARLOCK_CHECK(oarlock_next(&scoped));
    const char *of_scope = scoped.row.json;
    // The scope frees an iteration that began in it, and no other.
    OARLOCK_CHECK(oarlock_next(&inner));
    oarlock_scope_end(scope);
    OARLOCK_CHECK(__asan_address_is_poisoned(of_scope));
    OARLOCK_CHECK_TEXT(inner.row.object.name, "pod-1025");
    OARLOCK_CHECK(oarlock_next(&inner));
    OARLOCK_CHECK_TEXT(inner.row.object.name, "pod-1026");
    OARLOCK_CHECK_TEXT(outer.row.object.name, "pod-1000");
    while (oarlock_next(&outer)) continue;
    OARLOCK_CHECK_TEXT(copy, "pod-1000");
    // The end of the call frees an iteration that did not end.
    const char *of_call = inner.row.json;
    oarlock_arena_reset();
    OARLOCK_CHECK(__asan_address_is_poisoned(of_call));
}

static void an_iteration_has_its_own_texts(void) {
    reset();
    oarlock_rows outer = oarlock_cache_list("pods", NULL, NULL, WHOLE);
    OARLOCK_CHECK(oarlock_next(&outer));
    oarlock_rows inner = oarlock_cache_list("pods", outer.row.object.ns, NULL, WHOLE);
    // The texts of the row end here.
    OARLOCK_CHECK(oarlock_next(&outer));
    size_t n_rows = 0;
    while (oarlock_next(&inner)) n_rows++;
    OARLOCK_CHECK(!inner.error.code && n_rows == N_OBJECTS);
}

static void an_error_of_a_page_lives_until_the_call_ends(void) {
    reset();
    oarlock_rows rows = oarlock_client_list(PODS, NULL, NULL, NULL, WHOLE);
    for (int i = 0; i < PAGE_SIZE; i++) OARLOCK_CHECK(oarlock_next(&rows));
    oarlock_host_fail_next("list", (oarlock_error){.code = OARLOCK_GONE, .message = "the token is too old"});
    OARLOCK_CHECK(!oarlock_next(&rows) && !oarlock_next(&rows));
    OARLOCK_CHECK(rows.error.code == OARLOCK_GONE && !rows.row.object.name);
    OARLOCK_CHECK_TEXT(rows.error.message, "the token is too old");

    // Objects that are too large together come in smaller pages.
    reset();
    oarlock_host_fail_next("list", (oarlock_error){.code = OARLOCK_LIMIT_EXCEEDED});
    check_iteration(oarlock_client_list(PODS, NULL, NULL, NULL, WHOLE), NULL);
}

void iterations_free_their_pages(void) {
    an_iteration_has_the_memory_of_a_page();
    what_is_not_of_a_row_lives_on();
    an_iteration_has_its_own_texts();
    an_error_of_a_page_lives_until_the_call_ends();
    oarlock_host_reset();
}
