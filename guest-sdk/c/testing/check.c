// Runs tests, and shows checks that fail.

#include "fake.h"

#include <stdio.h>
#include <string.h>

static int n_failed_checks;

void oarlock_run_test(const char *name, void (*test)(void)) {
    int before = n_failed_checks;
    oarlock_host_reset();
    test();
    printf("test %s ... %s\n", name, n_failed_checks == before ? "ok" : "FAILED");
    fflush(stdout);
}

int oarlock_exit_status(void) { return n_failed_checks ? 1 : 0; }

void oarlock_check(bool holds, const char *text, const char *file, int line) {
    if (holds) return;
    printf("%s:%d: not true: %s\n", file, line, text);
    n_failed_checks++;
}

void oarlock_check_text(const char *actual, const char *expected, const char *file, int line) {
    if (actual && expected ? !strcmp(actual, expected) : actual == expected) return;
    printf("%s:%d: expected:\n%s\nbut it is:\n%s\n", file, line, expected ? expected : "NULL",
           actual ? actual : "NULL");
    n_failed_checks++;
}

void oarlock_check_ok(oarlock_error error, const char *text, const char *file, int line) {
    if (!error.code) return;
    printf("%s:%d: %s failed: %s\n", file, line, text, error.message ? error.message : "");
    n_failed_checks++;
}
