// Runs the tests of the SDK, natively.

#include "check.h"

#include <stdio.h>
#include <string.h>

int n_failed;

void check(bool holds, const char *text, const char *file, int line) {
    if (holds) return;
    printf("%s:%d: not true: %s\n", file, line, text);
    n_failed++;
}

void check_text(const char *actual, const char *expected, const char *file, int line) {
    if (actual && expected && strcmp(actual, expected) == 0) return;
    if (!actual && !expected) return;
    printf("%s:%d: %s, not %s\n", file, line, actual ? actual : "NULL", expected ? expected : "NULL");
    n_failed++;
}

int main(void) {
    static const struct {
        const char *name;
        void (*run)(void);
    } TESTS[] = {
        {"JSON is read, and made", test_json},
        {"memory lives until the call ends", test_memory},
        {"calls of the host and of the plugin are converted", test_calls},
    };
    for (size_t i = 0; i < sizeof TESTS / sizeof TESTS[0]; i++) {
        int before = n_failed;
        TESTS[i].run();
        printf("test %s ... %s\n", TESTS[i].name, n_failed == before ? "ok" : "FAILED");
    }
    return n_failed ? 1 : 0;
}
