// What the exported functions share.

#ifndef OARLOCK_EXPORTS_H
#define OARLOCK_EXPORTS_H

#include "convert.h"

// Whether `start` of the plugin has succeeded.
extern bool oarlock_is_started;

// Returns a copy on the heap, which the bindings free.
string_t oarlock_give(const char *text);

void oarlock_give_description(const oarlock_plugin *plugin,
                              exports_oarlock_plugin_metadata_description_t *ret);

#endif
