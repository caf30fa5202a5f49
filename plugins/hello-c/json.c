#include "json.h"

static const uint32_t INVALID = UINT32_MAX;

// Reads the four digits of an escape such as \u00e9.
static uint32_t hex4(const uint8_t *digits) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t digit = digits[i];
        value <<= 4;
        if (digit >= '0' && digit <= '9') value |= digit - '0';
        else if (digit >= 'a' && digit <= 'f') value |= digit - 'a' + 10;
        else if (digit >= 'A' && digit <= 'F') value |= digit - 'A' + 10;
        else return INVALID;
    }
    return value;
}

// Reads the digits after \u. Up to two escapes make one character.
static uint32_t unicode_escape(const uint8_t **in, const uint8_t *end) {
    if (end - *in < 4) return INVALID;
    uint32_t high = hex4(*in);
    *in += 4;
    if (high == INVALID || high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || end - *in < 6 || (*in)[0] != '\\' || (*in)[1] != 'u') return INVALID;
    uint32_t low = hex4(*in + 2);
    *in += 6;
    if (low == INVALID || low < 0xDC00 || low > 0xDFFF) return INVALID;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

// Writes a character as UTF-8, which is never longer than its escape.
static uint8_t *put(uint8_t *out, uint32_t character) {
    if (character < 0x80) {
        *out++ = (uint8_t)character;
        return out;
    }
    int following = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const uint8_t FIRST[] = {0, 0xC0, 0xE0, 0xF0};
    *out++ = (uint8_t)(FIRST[following] | character >> (6 * following));
    while (following-- > 0) *out++ = (uint8_t)(0x80 | (character >> (6 * following) & 0x3F));
    return out;
}

bool json_text(handler_plugin_string_t *json) {
    if (json->len < 2 || json->ptr[0] != '"' || json->ptr[json->len - 1] != '"') return false;
    const uint8_t *in = json->ptr + 1;
    const uint8_t *end = json->ptr + json->len - 1;
    uint8_t *text = json->ptr + 1;
    uint8_t *out = text;
    while (in < end) {
        if (*in != '\\') {
            *out++ = *in++;
            continue;
        }
        if (++in == end) return false;
        switch (*in++) {
        case '"': *out++ = '"'; break;
        case '\\': *out++ = '\\'; break;
        case '/': *out++ = '/'; break;
        case 'b': *out++ = '\b'; break;
        case 'f': *out++ = '\f'; break;
        case 'n': *out++ = '\n'; break;
        case 'r': *out++ = '\r'; break;
        case 't': *out++ = '\t'; break;
        case 'u': {
            uint32_t character = unicode_escape(&in, end);
            if (character == INVALID) return false;
            out = put(out, character);
            break;
        }
        default: return false;
        }
    }
    json->ptr = text;
    json->len = (size_t)(out - text);
    return true;
}
