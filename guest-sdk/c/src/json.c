// Reads JSON text: the value of a string or number, the value at a pointer, the members of an object.
//
// The host passes valid JSON only. Other text has no value; it is never read beyond its end.

#include <string.h>

#include "oarlock.h"

// Values nested deeper are not read.
enum { MAX_DEPTH = 200 };

static const uint32_t INVALID = UINT32_MAX;

static const char *skip_space(const char *json) {
    while (*json == ' ' || *json == '\t' || *json == '\n' || *json == '\r') json++;
    return json;
}

// Returns the end of a string that begins here, behind its quote; NULL if it does not end.
static const char *skip_string(const char *json) {
    for (json++; *json != '"'; json++) {
        if (*json == '\0') return NULL;
        if (*json == '\\' && *++json == '\0') return NULL;
    }
    return json + 1;
}

// Returns the end of the value that begins here; NULL if it is none.
static const char *skip_value(const char *json) {
    unsigned depth = 0;
    do {
        json = skip_space(json);
        switch (*json) {
        case '"':
            json = skip_string(json);
            if (!json) return NULL;
            break;
        case '{':
        case '[':
            if (++depth > MAX_DEPTH) return NULL;
            json++;
            break;
        case '}':
        case ']':
            if (depth == 0) return NULL;
            depth--;
            json++;
            break;
        case ',':
        case ':':
            if (depth == 0) return NULL;
            json++;
            break;
        case '\0': return NULL;
        default: {
            size_t len = strcspn(json, " \t\n\r,:\"{}[]");
            if (len == 0) return NULL;
            json += len;
            break;
        }
        }
    } while (depth > 0);
    return json;
}

static const char *copy(const char *from, const char *end) {
    size_t len = (size_t)(end - from);
    char *text = oarlock_alloc(len + 1);
    memcpy(text, from, len);
    text[len] = '\0';
    return text;
}

// Reads the four digits of an escape such as \u00e9.
static uint32_t hex4(const char *digits) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char digit = digits[i];
        value <<= 4;
        if (digit >= '0' && digit <= '9') value |= (uint32_t)(digit - '0');
        else if (digit >= 'a' && digit <= 'f') value |= (uint32_t)(digit - 'a' + 10);
        else if (digit >= 'A' && digit <= 'F') value |= (uint32_t)(digit - 'A' + 10);
        else return INVALID;
    }
    return value;
}

// Reads the digits after \u. Up to two escapes make one character.
static uint32_t unicode_escape(const char **in) {
    uint32_t high = hex4(*in);
    if (high == INVALID) return INVALID;
    *in += 4;
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || (*in)[0] != '\\' || (*in)[1] != 'u') return INVALID;
    uint32_t low = hex4(*in + 2);
    if (low == INVALID || low < 0xDC00 || low > 0xDFFF) return INVALID;
    *in += 6;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

// Writes a character as UTF-8, which is never longer than its escape.
static char *put(char *out, uint32_t character) {
    if (character < 0x80) {
        *out++ = (char)character;
        return out;
    }
    int following = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    static const uint8_t FIRST[] = {0, 0xC0, 0xE0, 0xF0};
    *out++ = (char)(FIRST[following] | character >> (6 * following));
    while (following-- > 0) *out++ = (char)(0x80 | (character >> (6 * following) & 0x3F));
    return out;
}

// Unescapes a string that begins here and ends before `end`.
static const char *unescape(const char *json, const char *end) {
    char *text = oarlock_alloc((size_t)(end - json));
    char *out = text;
    const char *in = json + 1;
    while (in < end - 1) {
        if (*in != '\\') {
            *out++ = *in++;
            continue;
        }
        in++;
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
            uint32_t character = unicode_escape(&in);
            // A NUL would end the string.
            if (character == INVALID || character == 0) return NULL;
            out = put(out, character);
            break;
        }
        default: return NULL;
        }
    }
    *out = '\0';
    return text;
}

bool oarlock_json_string(const char *json, const char **text) {
    if (!json) return false;
    json = skip_space(json);
    const char *end = *json == '"' ? skip_string(json) : NULL;
    if (!end || *skip_space(end)) return false;
    const char *value = unescape(json, end);
    if (value) *text = value;
    return value != NULL;
}

static bool is_digit(char character) { return character >= '0' && character <= '9'; }

// strtod would link the library's input and output, and with it WASI. This result is the nearest double for
// up to 15 digits and exponents up to 22, else that or the one beside it.
bool oarlock_json_number(const char *json, double *value) {
    if (!json) return false;
    json = skip_space(json);
    bool is_negative = *json == '-';
    json += is_negative;
    if (!is_digit(*json)) return false;
    double digits = 0;
    int exponent = 0;
    for (; is_digit(*json); json++) digits = digits * 10 + (*json - '0');
    if (*json == '.') {
        if (!is_digit(*++json)) return false;
        for (; is_digit(*json); json++, exponent--) digits = digits * 10 + (*json - '0');
    }
    if (*json == 'e' || *json == 'E') {
        json++;
        bool is_small = *json == '-';
        if (*json == '-' || *json == '+') json++;
        if (!is_digit(*json)) return false;
        int written = 0;
        for (; is_digit(*json); json++) written = written < 1000 ? written * 10 + (*json - '0') : written;
        exponent += is_small ? -written : written;
    }
    if (*skip_space(json)) return false;
    double power = 1;
    for (int i = 0; i < (exponent < 0 ? -exponent : exponent); i++) power *= 10;
    digits = exponent < 0 ? digits / power : digits == 0 ? 0 : digits * power;
    *value = is_negative ? -digits : digits;
    return true;
}

bool oarlock_json_int(const char *json, int64_t *value) {
    if (!json) return false;
    json = skip_space(json);
    bool is_negative = *json == '-';
    const char *digit = json + is_negative;
    if (*digit < '0' || *digit > '9') return false;
    uint64_t most = is_negative ? (uint64_t)INT64_MAX + 1 : INT64_MAX;
    uint64_t number = 0;
    for (; *digit >= '0' && *digit <= '9'; digit++) {
        uint64_t next = (uint64_t)(*digit - '0');
        if (number > (most - next) / 10) return false;
        number = number * 10 + next;
    }
    if (*skip_space(digit)) return false;
    *value = is_negative ? (int64_t)(0 - number) : (int64_t)number;
    return true;
}

bool oarlock_json_bool(const char *json, bool *value) {
    if (!json) return false;
    json = skip_space(json);
    bool is_true = strncmp(json, "true", 4) == 0;
    if (!is_true && strncmp(json, "false", 5) != 0) return false;
    if (*skip_space(json + (is_true ? 4 : 5))) return false;
    *value = is_true;
    return true;
}

oarlock_members oarlock_json_members(const char *json) {
    if (!json) return (oarlock_members){0};
    json = skip_space(json);
    return (oarlock_members){.rest = *json == '{' || *json == '[' ? json : NULL};
}

// Goes to the next member, whose value begins and ends there.
static bool next_member(oarlock_members *members, const char **begin, const char **end) {
    const char *json = members->rest;
    if (!json) return false;
    members->rest = NULL;
    // The rest begins with the bracket, or with the comma before the next member. The bracket of an object is
    // known from its first member.
    bool is_first = *json == '{' || *json == '[';
    bool is_object = *json == '{' || (!is_first && members->name);
    json = skip_space(json + 1);
    if (*json == '}' || *json == ']') return false;
    members->name = NULL;
    if (is_object) {
        const char *name_end = *json == '"' ? skip_string(json) : NULL;
        if (!name_end) return false;
        members->name = unescape(json, name_end);
        json = skip_space(name_end);
        if (!members->name || *json != ':') return false;
        json = skip_space(json + 1);
    }
    *begin = json;
    *end = skip_value(json);
    if (!*end) return false;
    json = skip_space(*end);
    if (*json == ',') members->rest = json;
    return true;
}

bool oarlock_json_next(oarlock_members *members) {
    const char *begin;
    const char *end;
    if (!next_member(members, &begin, &end)) return false;
    members->value = copy(begin, end);
    return true;
}

const char *oarlock_json_member(const char *json, const char *name) {
    oarlock_members it = oarlock_json_members(json);
    const char *begin;
    const char *end;
    while (next_member(&it, &begin, &end)) {
        if (it.name && strcmp(it.name, name) == 0) return copy(begin, end);
    }
    return NULL;
}

// Returns whether a segment of a pointer, which ends at `/` or NUL, is this name. `~1` means `/`, `~0` `~`.
static bool is_segment(const char *segment, const char *name) {
    for (; *segment && *segment != '/'; segment++, name++) {
        char character = *segment;
        if (character == '~') character = *++segment == '1' ? '/' : '~';
        if (*name != character) return false;
    }
    return *name == '\0';
}

const char *oarlock_json_at(const char *json, const char *pointer) {
    const char *end = NULL;
    while (json && *pointer) {
        if (*pointer++ != '/') return NULL;
        oarlock_members it = oarlock_json_members(json);
        const char *begin;
        json = NULL;
        for (size_t idx = 0; !json && next_member(&it, &begin, &end); idx++) {
            const char *name = it.name ? it.name : oarlock_format("%d", (int)idx);
            if (is_segment(pointer, name)) json = begin;
        }
        pointer += strcspn(pointer, "/");
    }
    return json && end ? copy(json, end) : json;
}
