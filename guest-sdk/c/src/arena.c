// The memory of one call of the host: what the host writes (arguments, results of its functions) and what the
// SDK makes. It is freed as a whole when the call ends. Areas in it are freed earlier.

#include "arena.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "oarlock.h"

// The size of the first chunk, which is kept from call to call, and the maximum size of the others, save for
// a larger block.
enum { FIRST_SIZE = 4096, MOST_SIZE = 1 << 20, ALIGNMENT = 8 };

typedef struct oarlock_chunk {
    struct oarlock_chunk *next;
    size_t used;
    size_t size;
    _Alignas(ALIGNMENT) unsigned char bytes[];
} chunk_t;

// The newest chunk of the call; the first one is the last of this list.
static chunk_t *newest_of_call;

// The newest chunk of the memory that is allocated in: that of the call, or of an area.
static chunk_t **current = &newest_of_call;

// The areas in the memory of the call, the newest first.
static oarlock_area *areas;

void *oarlock_alloc(size_t size) {
    size_t rounded = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    if (rounded < size) abort();
    chunk_t *newest = *current;
    if (!newest || newest->size - newest->used < rounded) {
        size_t chunk_size = newest ? newest->size * 2 : FIRST_SIZE;
        if (chunk_size > MOST_SIZE) chunk_size = MOST_SIZE;
        if (chunk_size < rounded) chunk_size = rounded;
        chunk_t *chunk = malloc(sizeof *chunk + chunk_size);
        if (!chunk) abort();
        *chunk = (chunk_t){.next = newest, .size = chunk_size};
        ASAN_POISON_MEMORY_REGION(chunk->bytes, chunk->size);
        *current = newest = chunk;
    }
    void *memory = newest->bytes + newest->used;
    newest->used += rounded;
    ASAN_UNPOISON_MEMORY_REGION(memory, size);
    return memory;
}

// === Areas ===

void oarlock_area_add(oarlock_area *area) {
    *area = (oarlock_area){.before = areas};
    areas = area;
}

void oarlock_area_enter(oarlock_area *area) { current = &area->newest; }

void oarlock_area_leave(void) { current = &newest_of_call; }

void oarlock_area_free(oarlock_area *area) {
    while (area->newest) {
        chunk_t *next = area->newest->next;
        free(area->newest);
        area->newest = next;
    }
}

// Frees the areas that are newer than this one, which are in memory that is freed after them.
static void free_newer_areas(const oarlock_area *kept) {
    for (; areas && areas != kept; areas = areas->before) oarlock_area_free(areas);
}

// === The memory of the call ===

// Frees the chunks that are newer than this one; NULL keeps the first.
static void free_newer(const chunk_t *kept) {
    while (newest_of_call && newest_of_call != kept && newest_of_call->next) {
        chunk_t *next = newest_of_call->next;
        free(newest_of_call);
        newest_of_call = next;
    }
}

// Keeps so many bytes of the newest chunk.
static void keep(size_t used) {
    if (!newest_of_call) return;
    newest_of_call->used = used;
    ASAN_POISON_MEMORY_REGION(newest_of_call->bytes + used, newest_of_call->size - used);
}

void oarlock_arena_reset(void) {
    free_newer_areas(NULL);
    free_newer(NULL);
    keep(0);
#ifndef __wasm__
    // In a unit test: freed memory is not given again soon, so that the sanitizer finds each use of it.
    free(newest_of_call);
    newest_of_call = NULL;
#endif
}

oarlock_scope oarlock_scope_begin(void) {
    chunk_t *newest = newest_of_call;
    return (oarlock_scope){.chunk = newest, .used = newest ? newest->used : 0, .area = areas};
}

void oarlock_scope_end(oarlock_scope scope) {
    free_newer_areas(scope.area);
    free_newer(scope.chunk);
    keep(scope.used);
}

// The host allocates with this function what it passes to the plugin. The definition in the bindings is weak.
// A NUL follows, so that every string from the host is one of C's.
void *cabi_realloc(void *old, size_t old_size, size_t align, size_t size);

#ifdef __wasm__
__attribute__((export_name("cabi_realloc")))
#endif
void *
cabi_realloc(void *old, size_t old_size, size_t align, size_t size) {
    if (align > ALIGNMENT) abort();
    unsigned char *memory = oarlock_alloc(size + 1);
    if (old_size > size) old_size = size;
    if (old_size) memcpy(memory, old, old_size);
    memory[size] = 0;
    return memory;
}

#ifdef __wasm__
// The adapter of WASI allocates with this function, if there is one, its stack and its state, which it uses
// in all later calls. So they are not in the memory of one call.
void *cabi_realloc_adapter(void *old, size_t old_size, size_t align, size_t size);

__attribute__((export_name("cabi_realloc_adapter"))) void *cabi_realloc_adapter(void *old, size_t old_size,
                                                                                size_t align, size_t size) {
    (void)old_size;
    if (align > _Alignof(max_align_t)) abort();
    void *memory = realloc(old, size);
    if (!memory) abort();
    return memory;
}
#endif
