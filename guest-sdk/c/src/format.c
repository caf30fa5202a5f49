// oarlock_format: makes texts, above all JSON. It is a fraction of the size of printf.

#include <limits.h>
#include <string.h>

#include "oarlock.h"

// Writes bytes, or only counts them if `at` is NULL.
typedef struct {
    char *at;
    size_t len;
} output_t;

static void write_bytes(output_t *out, const char *bytes, size_t len) {
    if (out->at) memcpy(out->at + out->len, bytes, len);
    out->len += len;
}

static void write_json_string(output_t *out, const char *text) {
    static const char HEX[] = "0123456789abcdef";
    write_bytes(out, "\"", 1);
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') write_bytes(out, "\\", 1);
        if (byte >= 0x20) {
            write_bytes(out, text, 1);
        } else {
            const char escape[] = {'\\', 'u', '0', '0', HEX[byte >> 4], HEX[byte & 0xF]};
            write_bytes(out, escape, sizeof escape);
        }
    }
    write_bytes(out, "\"", 1);
}

static void write_int(output_t *out, int value) {
    char digits[sizeof value * CHAR_BIT / 3 + 2];
    char *first = digits + sizeof digits;
    unsigned rest = value < 0 ? 0 - (unsigned)value : (unsigned)value;
    do *--first = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (value < 0) *--first = '-';
    write_bytes(out, first, (size_t)(digits + sizeof digits - first));
}

static void write_all(output_t *out, const char *format, va_list arguments) {
    while (*format) {
        size_t len = strcspn(format, "%");
        write_bytes(out, format, len);
        format += len;
        if (*format != '%') continue;
        format++;
        const char *text;
        switch (*format) {
        case 's':
            text = va_arg(arguments, const char *);
            if (text) write_bytes(out, text, strlen(text));
            break;
        case 'j':
            text = va_arg(arguments, const char *);
            write_json_string(out, text ? text : "");
            break;
        case 'd': write_int(out, va_arg(arguments, int)); break;
        case '\0': return;
        default: write_bytes(out, format, 1); break;
        }
        format++;
    }
}

const char *oarlock_format(const char *format, ...) {
    va_list arguments;
    output_t counted = {0};
    va_start(arguments, format);
    write_all(&counted, format, arguments);
    va_end(arguments);
    output_t out = {.at = oarlock_alloc(counted.len + 1)};
    va_start(arguments, format);
    write_all(&out, format, arguments);
    va_end(arguments);
    out.at[out.len] = '\0';
    return out.at;
}
