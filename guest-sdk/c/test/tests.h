// The tests of the SDK, a function for each file.

#ifndef TESTS_H
#define TESTS_H

void json_is_read_and_made(void);
void memory_lives_until_the_call_ends(void);
void iterations_free_their_pages(void);
void calls_are_converted(void);
void the_host_of_tests_does_what_an_api_server_does(void);

#endif
