// Tests of JSON.

#include <string.h>

#include "../src/arena.h"
#include "oarlock_testing.h"
#include "tests.h"

static const char *string_of(const char *json) {
    const char *text = NULL;
    return oarlock_json_string(json, &text) ? text : NULL;
}

static void strings(void) {
    OARLOCK_CHECK_TEXT(string_of("\"web\""), "web");
    OARLOCK_CHECK_TEXT(string_of(" \"\" "), "");
    OARLOCK_CHECK_TEXT(string_of("\"a\\\"b\\\\c\\/\\n\\t\\u00e9\\ud83d\\ude00\""), "a\"b\\c/\n\té😀");
    static const char *const WRONG[] = {
        "",
        "web",
        "\"web",
        "\"a\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud83d\"",
        "\"\\ud83dx\"",
        "\"\\u0000\"",
        "\"a\" \"b\"",
        "7",
        "null",
        "\"\\ud83d\\u0041\"",
    };
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++) OARLOCK_CHECK_TEXT(string_of(WRONG[i]), NULL);
    OARLOCK_CHECK_TEXT(string_of(NULL), NULL);
}

static void numbers(void) {
    int64_t integer = 0;
    OARLOCK_CHECK(oarlock_json_int("3", &integer) && integer == 3);
    OARLOCK_CHECK(oarlock_json_int("-9223372036854775808", &integer) && integer == INT64_MIN);
    OARLOCK_CHECK(oarlock_json_int("9223372036854775807", &integer) && integer == INT64_MAX);
    OARLOCK_CHECK(!oarlock_json_int("9223372036854775808", &integer));
    OARLOCK_CHECK(!oarlock_json_int("-9223372036854775809", &integer));
    OARLOCK_CHECK(!oarlock_json_int("1.5", &integer) && !oarlock_json_int("", &integer) &&
                  !oarlock_json_int("-", &integer));
    OARLOCK_CHECK(!oarlock_json_int("\"3\"", &integer) && !oarlock_json_int(NULL, &integer));
    double number = 0;
    OARLOCK_CHECK(oarlock_json_number("-0.25", &number) && number == -0.25);
    OARLOCK_CHECK(oarlock_json_number("1.5e3", &number) && number == 1500);
    OARLOCK_CHECK(oarlock_json_number("25E-2", &number) && number == 0.25);
    OARLOCK_CHECK(oarlock_json_number("0e9999", &number) && number == 0);
    OARLOCK_CHECK(!oarlock_json_number(".5", &number) && !oarlock_json_number("1.", &number));
    OARLOCK_CHECK(!oarlock_json_number("0x10", &number) && !oarlock_json_number("1e", &number));
    OARLOCK_CHECK(!oarlock_json_number("inf", &number));
    bool truth = false;
    OARLOCK_CHECK(oarlock_json_bool("true", &truth) && truth);
    OARLOCK_CHECK(oarlock_json_bool(" false ", &truth) && !truth);
    OARLOCK_CHECK(!oarlock_json_bool("truely", &truth) && !oarlock_json_bool("1", &truth));
}

static void pointers(void) {
    const char *json = "{\"metadata\": {\"labels\": {\"a/b\": \"1\", \"c~d\": \"2\"}},\n"
                       " \"list\": [10, {\"x\": [true]}, \"]}\"], \"empty\": {}, \"n\": null}";
    OARLOCK_CHECK_TEXT(oarlock_json_at(json, "/metadata/labels/a~1b"), "\"1\"");
    OARLOCK_CHECK_TEXT(oarlock_json_at(json, "/metadata/labels/c~0d"), "\"2\"");
    OARLOCK_CHECK_TEXT(oarlock_json_at(json, "/list/1/x/0"), "true");
    OARLOCK_CHECK_TEXT(oarlock_json_at(json, "/list/2"), "\"]}\"");
    OARLOCK_CHECK_TEXT(oarlock_json_at(json, "/n"), "null");
    OARLOCK_CHECK_TEXT(oarlock_json_at(json, "/empty"), "{}");
    OARLOCK_CHECK_TEXT(oarlock_json_at(json, ""), json);
    static const char *const NOTHING[] = {"/metadata/name", "/list/3",  "/list/x", "/n/a",
                                          "list",           "/empty/a", "/"};
    for (size_t i = 0; i < sizeof NOTHING / sizeof NOTHING[0]; i++) {
        OARLOCK_CHECK_TEXT(oarlock_json_at(json, NOTHING[i]), NULL);
    }
    OARLOCK_CHECK_TEXT(oarlock_json_at(NULL, "/a"), NULL);
    const char *labels = oarlock_json_at(json, "/metadata/labels");
    OARLOCK_CHECK_TEXT(oarlock_json_member(labels, "a/b"), "\"1\"");
    OARLOCK_CHECK_TEXT(oarlock_json_member(labels, "a"), NULL);
    OARLOCK_CHECK_TEXT(oarlock_json_member("[1]", "a"), NULL);
    // Text that is not JSON has no members, and is not read beyond its end.
    static const char *const BROKEN[] = {"{",  "{\"a\"", "{\"a\":", "{\"a\":1", "[1",
                                         "[[", "{\"a",   "{1:2}",   "[,]"};
    for (size_t i = 0; i < sizeof BROKEN / sizeof BROKEN[0]; i++) {
        oarlock_members it = oarlock_json_members(BROKEN[i]);
        for (int n = 0; oarlock_json_next(&it); n++) OARLOCK_CHECK(n < 2);
    }
    char deep[1000];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    OARLOCK_CHECK_TEXT(oarlock_json_at(deep, "/0/0"), NULL);
}

static void members(void) {
    oarlock_members it = oarlock_json_members(" { \"a\" : 1 , \"b\\n\" : [2, 3] } ");
    OARLOCK_CHECK(oarlock_json_next(&it));
    OARLOCK_CHECK_TEXT(it.name, "a");
    OARLOCK_CHECK_TEXT(it.value, "1");
    OARLOCK_CHECK(oarlock_json_next(&it));
    OARLOCK_CHECK_TEXT(it.name, "b\n");
    OARLOCK_CHECK_TEXT(it.value, "[2, 3]");
    OARLOCK_CHECK(!oarlock_json_next(&it) && !oarlock_json_next(&it));
    it = oarlock_json_members("[1,{}]");
    OARLOCK_CHECK(oarlock_json_next(&it) && !it.name);
    OARLOCK_CHECK_TEXT(it.value, "1");
    OARLOCK_CHECK(oarlock_json_next(&it) && !it.name);
    OARLOCK_CHECK_TEXT(it.value, "{}");
    OARLOCK_CHECK(!oarlock_json_next(&it));
    it = oarlock_json_members("7");
    OARLOCK_CHECK(!oarlock_json_next(&it));
    it = oarlock_json_members(NULL);
    OARLOCK_CHECK(!oarlock_json_next(&it));
}

static void formats(void) {
    OARLOCK_CHECK_TEXT(oarlock_format("{%j:%s,\"n\":%d}%%", "a\"\\\n", "[1]", -12),
                       "{\"a\\\"\\\\\\u000a\":[1],\"n\":-12}%");
    OARLOCK_CHECK_TEXT(oarlock_format("%d %d", INT32_MIN, 0), "-2147483648 0");
    OARLOCK_CHECK_TEXT(oarlock_format("%s|%j", (const char *)NULL, (const char *)NULL), "|\"\"");
}

void json_is_read_and_made(void) {
    strings();
    numbers();
    pointers();
    members();
    formats();
    oarlock_arena_reset();
}
