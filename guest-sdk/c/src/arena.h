// The memory of one call of the host.

#ifndef OARLOCK_ARENA_H
#define OARLOCK_ARENA_H

// In a unit test, AddressSanitizer finds reads of memory that the SDK has not given, or has taken back.
#if !defined(__wasm__) && __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(memory, size) ((void)(memory), (void)(size))
#endif

// Frees everything that was allocated since the last time.
void oarlock_arena_reset(void);

// Memory that can be freed before the call ends, such as that of a page. It is freed with the memory that the
// struct itself is in, at the latest.
typedef struct oarlock_area {
    struct oarlock_chunk *newest;
    struct oarlock_area *before;
} oarlock_area;

// Makes an empty area of a struct that oarlock_alloc has returned.
void oarlock_area_add(oarlock_area *area);

// Between these, everything is allocated in the area, also what the host writes. They do not nest.
void oarlock_area_enter(oarlock_area *area);
void oarlock_area_leave(void);

// Frees what was allocated in the area, which can be used again.
void oarlock_area_free(oarlock_area *area);

#endif
