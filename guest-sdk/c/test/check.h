// Checks of the tests. A failed one is shown, and the program ends with an error.

#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>

extern int n_failed;

void check(bool holds, const char *text, const char *file, int line);
// Compares texts; NULL equals NULL only.
void check_text(const char *actual, const char *expected, const char *file, int line);

#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)
#define CHECK_TEXT(actual, expected) check_text((actual), (expected), __FILE__, __LINE__)

void test_json(void);
void test_memory(void);
void test_calls(void);

#endif
