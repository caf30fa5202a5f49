// Tests of the plugin on this machine: `make test`.

#include "oarlock_testing.h"

static void an_object_is_logged_when_it_appears_and_goes(void) {
    const char *web = OARLOCK_JSON({"metadata": {"namespace": "default", "name": "web"}});
    OARLOCK_CHECK_OK(oarlock_host_add("objects", web));
    OARLOCK_CHECK_OK(oarlock_host_delete("objects", (oarlock_key){"default", "web"}));
    OARLOCK_CHECK_TEXT(oarlock_host_logs(),
                       "info added namespace=default name=web created=2026-01-01T00:00:00Z\n"
                       "info deleted namespace=default name=web\n");
}

int main(void) {
    OARLOCK_RUN_TEST(an_object_is_logged_when_it_appears_and_goes);
    return oarlock_exit_status();
}
