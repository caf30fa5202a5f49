// The one piece of JSON that this plugin needs: what a string says.
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>

#include "handler_plugin.h"

// Turns JSON text that holds a string into that string, in place: the result lies inside `json`, whose owner keeps it.
// False if the text holds no string.
bool json_text(handler_plugin_string_t *json);

#endif
