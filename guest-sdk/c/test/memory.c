// Tests of the memory of a call.

#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <string.h>

#include "../src/arena.h"
#include "oarlock_testing.h"
#include "tests.h"

void *cabi_realloc(void *old, size_t old_size, size_t align, size_t size);

void memory_lives_until_the_call_ends(void) {
    // Many allocations of all sizes do not overlap.
    enum { N = 300 };
    unsigned char *blocks[N];
    for (size_t i = 0; i < N; i++) {
        blocks[i] = oarlock_alloc(i * 7);
        OARLOCK_CHECK((uintptr_t)blocks[i] % 8 == 0);
        memset(blocks[i], (int)(i & 0xFF), i * 7);
    }
    for (size_t i = 1; i < N; i++)
        OARLOCK_CHECK(blocks[i][0] == (i & 0xFF) && blocks[i][i * 7 - 1] == (i & 0xFF));
    oarlock_arena_reset();

    // What the host writes ends with NUL.
    char *text = cabi_realloc(NULL, 0, 1, 3);
    memcpy(text, "abc", 3);
    OARLOCK_CHECK_TEXT(text, "abc");
    char *longer = cabi_realloc(text, 3, 1, 6);
    memcpy(longer + 3, "def", 3);
    OARLOCK_CHECK_TEXT(longer, "abcdef");

    // A scope frees what came after its begin, and nothing else.
    oarlock_scope scope = oarlock_scope_begin();
    char *inside = oarlock_alloc(10);
    for (int i = 0; i < 100; i++) oarlock_alloc(1000);
    oarlock_scope_end(scope);
    OARLOCK_CHECK_TEXT(longer, "abcdef");
    OARLOCK_CHECK(oarlock_alloc(10) == inside);
    oarlock_arena_reset();
    OARLOCK_CHECK(oarlock_scope_begin().used == 0);

    // The sanitizer knows what may not be read: what was taken back, and what is behind an allocation.
    char *given = oarlock_alloc(10);
    OARLOCK_CHECK(!__asan_region_is_poisoned(given, 10) && __asan_address_is_poisoned(given + 10));
    oarlock_arena_reset();
    OARLOCK_CHECK(__asan_address_is_poisoned(given));
}
