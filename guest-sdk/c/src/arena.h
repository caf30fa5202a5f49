// The memory of one call of the host.

#ifndef OARLOCK_ARENA_H
#define OARLOCK_ARENA_H

// Frees everything that was allocated since the last time.
void oarlock_arena_reset(void);

#endif
