// Tests of the memory of a call.

#include <stdint.h>
#include <string.h>

#include "../src/arena.h"
#include "check.h"
#include "oarlock.h"

void *cabi_realloc(void *old, size_t old_size, size_t align, size_t size);

void test_memory(void) {
    // Many allocations of all sizes do not overlap.
    enum { N = 300 };
    unsigned char *blocks[N];
    for (size_t i = 0; i < N; i++) {
        blocks[i] = oarlock_alloc(i * 7);
        CHECK((uintptr_t)blocks[i] % 8 == 0);
        memset(blocks[i], (int)(i & 0xFF), i * 7);
    }
    for (size_t i = 1; i < N; i++) CHECK(blocks[i][0] == (i & 0xFF) && blocks[i][i * 7 - 1] == (i & 0xFF));
    oarlock_arena_reset();

    // What the host writes ends with NUL.
    char *text = cabi_realloc(NULL, 0, 1, 3);
    memcpy(text, "abc", 3);
    CHECK_TEXT(text, "abc");
    char *longer = cabi_realloc(text, 3, 1, 6);
    memcpy(longer + 3, "def", 3);
    CHECK_TEXT(longer, "abcdef");

    // A scope frees what came after its begin, and nothing else.
    oarlock_scope scope = oarlock_scope_begin();
    char *inside = oarlock_alloc(10);
    for (int i = 0; i < 100; i++) oarlock_alloc(1000);
    oarlock_scope_end(scope);
    CHECK_TEXT(longer, "abcdef");
    CHECK(oarlock_alloc(10) == inside);
    oarlock_arena_reset();
    CHECK(oarlock_scope_begin().used == 0);
}
