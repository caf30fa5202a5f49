// A host for tests: it answers the functions of the bindings, and records them as text.

#ifndef FAKE_HOST_H
#define FAKE_HOST_H

#include "oarlock_bindings.h"

// Returns what the plugin has asked for since the last call of this function, one line for each request.
const char *take_requests(void);

// The next request fails with this error; 255 for none.
extern uint8_t next_error;

// Returns a string as the host writes it.
oarlock_bindings_string_t from_host(const char *text);

// Frees what the bindings free after a call.
void free_failure(oarlock_plugin_types_failure_t *failure);

#endif
