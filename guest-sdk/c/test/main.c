// Runs the tests of the SDK, natively, with the host in memory that authors of plugins use.

#include "oarlock_testing.h"
#include "tests.h"

int main(void) {
    OARLOCK_RUN_TEST(json_is_read_and_made);
    OARLOCK_RUN_TEST(memory_lives_until_the_call_ends);
    OARLOCK_RUN_TEST(iterations_free_their_pages);
    OARLOCK_RUN_TEST(calls_are_converted);
    OARLOCK_RUN_TEST(the_host_of_tests_does_what_an_api_server_does);
    return oarlock_exit_status();
}
