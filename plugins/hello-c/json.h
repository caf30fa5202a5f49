// The part of JSON that this plugin needs: the value of a string.
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>

#include "handler_plugin.h"

// Converts the JSON text of a string into that string, in place: the result is a part of `json`. Returns
// false if the text is not a string.
bool json_text(handler_plugin_string_t *json);

#endif
