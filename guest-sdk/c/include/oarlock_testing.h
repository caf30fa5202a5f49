// Unit tests of plugins, compiled for this machine: a host in memory calls the plugin, answers its calls from
// the objects that the test gives it, and records what the plugin does.
//
//     static void the_configmap_of_a_pod_that_is_gone_is_deleted(void) {
//         const char *web = OARLOCK_JSON({"metadata": {"namespace": "home", "name": "web"}});
//         oarlock_host_insert((oarlock_gvr){"", "v1", "configmaps"}, web);
//         OARLOCK_CHECK_OK(oarlock_host_add("pods", web));
//         OARLOCK_CHECK_OK(oarlock_host_delete("pods", (oarlock_key){"home", "web"}));
//         OARLOCK_CHECK_TEXT(oarlock_host_writes(), "delete v1/configmaps home/web\n");
//     }
//
//     int main(void) {
//         OARLOCK_RUN_TEST(the_configmap_of_a_pod_that_is_gone_is_deleted);
//         return oarlock_exit_status();
//     }
//
// The host is simple on purpose: the cache has every write at once, an apply is a merge, and the test decides
// which notifications there are. What only the real host does (selectors and conditions of subscriptions,
// order, retries, access) is tested with `oarlock plugin test`.
//
// Strings that these functions return live until the test ends. The plugin's own variables are not reset.

#ifndef OARLOCK_TESTING_H
#define OARLOCK_TESTING_H

#include "oarlock.h"

// A JSON text, written without escapes: OARLOCK_JSON({"metadata": {"name": "web"}}).
#define OARLOCK_JSON(...) #__VA_ARGS__

// === Tests ===

// Runs a test (a function without arguments) with a host without objects, at 2026-01-01T00:00:00Z, with an
// empty configuration, and prints its name and whether it passed.
#define OARLOCK_RUN_TEST(test) oarlock_run_test(#test, test)
void oarlock_run_test(const char *name, void (*test)(void));

// Returns what `main` returns: 0 if all tests have passed, else 1.
int oarlock_exit_status(void);

// Each lets the test fail, shows why, and goes on: a condition is not true; a text is not the expected one
// (NULL equals NULL only); a call did not succeed.
#define OARLOCK_CHECK(condition) oarlock_check(condition, #condition, __FILE__, __LINE__)
#define OARLOCK_CHECK_TEXT(actual, expected) oarlock_check_text(actual, expected, __FILE__, __LINE__)
#define OARLOCK_CHECK_OK(call) oarlock_check_ok(call, #call, __FILE__, __LINE__)
void oarlock_check(bool holds, const char *text, const char *file, int line);
void oarlock_check_text(const char *actual, const char *expected, const char *file, int line);
void oarlock_check_ok(oarlock_error error, const char *text, const char *file, int line);

// For another test framework, in place of OARLOCK_RUN_TEST: resets the host before each test.
void oarlock_host_reset(void);

// === What the host has ===

// Sets the configuration, and has the plugin describe itself again. Returns the error of `describe`.
oarlock_error oarlock_host_configure(const char *json);

// Creates or replaces an object in the cluster and the cache, without a notification. It gets a uid and a
// creationTimestamp, unless it has them, and a resourceVersion.
oarlock_object oarlock_host_insert(oarlock_gvr target, const char *json);

// Removes an object, without a notification.
void oarlock_host_remove(oarlock_gvr target, oarlock_key key);

// Returns an object as it is now; NULL if there is none.
const char *oarlock_host_object(oarlock_gvr target, oarlock_key key);

// Has the next request with this verb fail: "get", "list", "create", "apply", "patch", "replace" or "delete";
// or the next Event: "event".
void oarlock_host_fail_next(const char *verb, oarlock_error error);

// Has lists return at most this many objects in one page.
void oarlock_host_set_page_size(size_t n_objects);

// Sets the clock, in milliseconds since 1970-01-01T00:00:00Z, or has time pass. The test itself calls
// oarlock_host_reconcile for keys that are due.
void oarlock_host_set_time(double ms);
void oarlock_host_advance(double ms);

// === Calls of the plugin ===
//
// Each changes the cluster and calls the plugin once. They return what a host gets from the plugin: the code
// of an error is OARLOCK_RETRY, OARLOCK_RETRY_AFTER or OARLOCK_TERMINAL.

// Creates an object, and calls `on_add`; `_initial` for one that existed when the plugin started.
oarlock_error oarlock_host_add(const char *subscription, const char *json);
oarlock_error oarlock_host_add_initial(const char *subscription, const char *json);

// Replaces an object that exists, and calls `on_update`.
oarlock_error oarlock_host_update(const char *subscription, const char *json);

// Deletes an object that exists, and calls `on_delete`.
oarlock_error oarlock_host_delete(const char *subscription, oarlock_key key);

// Calls `on_synced`: so many subscriptions have not synced yet.
oarlock_error oarlock_host_synced(const char *subscription, uint32_t remaining);

// Calls `reconcile`. NULL may be given in place of `outcome`.
oarlock_error oarlock_host_reconcile(oarlock_work_key key, oarlock_outcome *outcome);

// === What the plugin did ===
//
// Texts of one line for each entry, in order, since the test began; "" for none.

// `patch apps/v1/deployments/status home/web`; behind it ` force`, and ` failed: conflict`.
const char *oarlock_host_writes(void);

// Returns the body of a write, counted from 0: the object, the patch, or the options of a delete; NULL if
// there were fewer writes.
const char *oarlock_host_body(size_t idx);

// `Warning MirrorRefused ConfigMap home/settings: the note`.
const char *oarlock_host_events(void);

// `info copied source=home/settings`.
const char *oarlock_host_logs(void);

// Keys that the plugin added to its work queue: `objects home/web`; behind it ` after 250 ms`.
const char *oarlock_host_queue(void);

// The current values, by name: `copies{namespace="home"} 2`.
const char *oarlock_host_metrics(void);

#endif
