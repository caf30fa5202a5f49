// Tests of the plugin on this machine: `make test`.

#include "oarlock_testing.h"

static const oarlock_gvr OBJECTS = {"apps", "v1", "deployments"};
static const oarlock_work_key WEB = {.kind = "objects", .object = {"default", "web"}};

static void an_object_is_reconciled_while_it_exists_and_when_it_is_gone(void) {
    oarlock_host_insert(OBJECTS, OARLOCK_JSON({"metadata": {"namespace": "default", "name": "web"}}));
    OARLOCK_CHECK_OK(oarlock_host_reconcile(WEB, NULL));
    oarlock_host_remove(OBJECTS, WEB.object);
    OARLOCK_CHECK_OK(oarlock_host_reconcile(WEB, NULL));
    OARLOCK_CHECK_TEXT(oarlock_host_logs(),
                       "info reconciled namespace=default name=web created=2026-01-01T00:00:00Z\n"
                       "info gone namespace=default name=web\n");
}

int main(void) {
    OARLOCK_RUN_TEST(an_object_is_reconciled_while_it_exists_and_when_it_is_gone);
    return oarlock_exit_status();
}
