// Tests of the host in memory: what it does with objects, patches and selectors.

#include <string.h>

#include "oarlock_testing.h"
#include "tests.h"

static const oarlock_gvr PODS = {"", "v1", "pods"};
static const oarlock_key WEB = {"home", "web"};

static const char *at(const char *pointer) {
    return oarlock_json_at(oarlock_host_object(PODS, WEB), pointer);
}

static void objects_get_what_the_api_server_sets(void) {
    oarlock_host_reset();
    const char *pod = OARLOCK_JSON({"metadata": {"namespace": "home", "name": "web"}, "a": [1, "b\n{", null]});
    oarlock_object first = oarlock_host_insert(PODS, pod);
    OARLOCK_CHECK_TEXT(first.uid, "uid-1");
    oarlock_host_advance(60000);
    oarlock_object second = oarlock_host_insert(PODS, pod);
    OARLOCK_CHECK_TEXT(second.uid, "uid-1");
    OARLOCK_CHECK_TEXT(second.resource_version, "2");
    OARLOCK_CHECK_TEXT(at("/metadata/creationTimestamp"), "\"2026-01-01T00:00:00Z\"");
    OARLOCK_CHECK_TEXT(at("/a"), "[1,\"b\\n{\",null]");
    oarlock_host_remove(PODS, WEB);
    OARLOCK_CHECK_TEXT(oarlock_host_object(PODS, WEB), NULL);
}

static void json_patches_are_applied(void) {
    static const struct {
        const char *patch;
        // NULL if the patch is refused.
        const char *expected;
    } CASES[] = {
        {OARLOCK_JSON([{"op": "add", "path": "/a/1", "value": 9}]), "[1,9,{\"b/c\":2}]"},
         {OARLOCK_JSON([{"op": "add", "path": "/a/-", "value": 9}]), "[1,{\"b/c\":2},9]"},
          {OARLOCK_JSON([{"op": "remove", "path": "/a/0"}]), "[{\"b/c\":2}]"},
           {OARLOCK_JSON([{"op": "replace", "path": "/a/1/b~1c", "value": 3}]), "[1,{\"b/c\":3}]"},
            {OARLOCK_JSON([{"op": "test", "path": "/a/0", "value": 1}, {"op": "remove", "path": "/a/0"}]),
                           "[{\"b/c\":2}]"},
             {OARLOCK_JSON([{"op": "test", "path": "/a/0", "value": 2}]), NULL},
              {OARLOCK_JSON([{"op": "remove", "path": "/x"}]), NULL},
               {OARLOCK_JSON([{"op": "replace", "path": "/a/5", "value": 1}]), NULL},
                {OARLOCK_JSON([{"op": "add", "path": "/a/5", "value": 1}]), NULL},
                 {OARLOCK_JSON([{"op": "add", "path": "/x/y", "value": 1}]), NULL},
                  {OARLOCK_JSON([{"op": "move", "path": "/a/0", "from": "/a/1"}]), NULL},
                   {OARLOCK_JSON({"a": 1}), NULL},
                  };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        oarlock_host_reset();
        oarlock_host_insert(PODS,
                            OARLOCK_JSON({"metadata": {"namespace": "home", "name": "web"}, "a": [1, {"b/c": 2}]}));
        oarlock_error error = oarlock_client_patch(PODS, WEB, OARLOCK_JSON_PATCH, CASES[i].patch, NULL, NULL);
        OARLOCK_CHECK(error.code == (CASES[i].expected ? OARLOCK_OK : OARLOCK_INVALID));
        OARLOCK_CHECK_TEXT(at("/a"), CASES[i].expected ? CASES[i].expected : "[1,{\"b/c\":2}]");
    }
}

static void merge_patches_are_applied(void) {
    oarlock_host_reset();
    oarlock_host_insert(PODS,
                        OARLOCK_JSON({"metadata": {"namespace": "home", "name": "web"}, "a": {"b": 1, "c": [2]}}));
    const char *patch = OARLOCK_JSON({"a": {"b": null, "c": {"d": null, "e": 3}, "f": null}, "g": {"h": {}}});
    OARLOCK_CHECK_OK(oarlock_client_patch(PODS, WEB, OARLOCK_MERGE_PATCH, patch, NULL, NULL));
    OARLOCK_CHECK_TEXT(at("/a"), "{\"c\":{\"e\":3}}");
    OARLOCK_CHECK_TEXT(at("/g"), "{\"h\":{}}");
    OARLOCK_CHECK(oarlock_client_patch(PODS, WEB, OARLOCK_STRATEGIC_MERGE_PATCH, "{}", NULL, NULL).code ==
                  OARLOCK_INVALID);
}

static void selectors_match_as_in_kubernetes(void) {
    static const struct {
        const char *labels;
        const char *fields;
        bool matches;
    } CASES[] = {
        {"app=web", NULL, true},
        {"app==web,tier in (front, back)", NULL, true},
        {"app!=web", NULL, false},
        {"other!=web", NULL, true},
        {"tier notin (front,back)", NULL, false},
        {"tier notin (x)", NULL, true},
        {"app", NULL, true},
        {"!app", NULL, false},
        {"!other", NULL, true},
        {"other", NULL, false},
        {NULL, "metadata.name=web,spec.nodeName!=n2", true},
        {NULL, "spec.nodeName=n2", false},
        {NULL, "status.phase=", true},
    };
    oarlock_host_reset();
    oarlock_host_insert(PODS, OARLOCK_JSON({
            "metadata": {"namespace": "home", "name": "web", "labels": {"app": "web", "tier": "front"}},
            "spec": {"nodeName": "n1"}
        }));
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        oarlock_rows rows =
            oarlock_client_list(PODS, NULL, CASES[i].labels, CASES[i].fields, (oarlock_select){0});
        bool matches = oarlock_next(&rows);
        if (matches != CASES[i].matches) {
            OARLOCK_CHECK_TEXT(CASES[i].labels ? CASES[i].labels : CASES[i].fields, "the other result");
        }
    }
}

static void requests_are_refused_as_by_an_api_server(void) {
    oarlock_host_reset();
    const char *web = OARLOCK_JSON({"metadata": {"name": "web", "finalizers": ["a/b"]}});
    OARLOCK_CHECK_OK(oarlock_client_create(PODS, "home", web, NULL));
    OARLOCK_CHECK(oarlock_client_create(PODS, "home", web, NULL).code == OARLOCK_ALREADY_EXISTS);
    const char *away = OARLOCK_JSON({"metadata": {"name": "web", "namespace": "away"}});
    OARLOCK_CHECK(oarlock_client_create(PODS, "home", away, NULL).code == OARLOCK_INVALID);
    OARLOCK_CHECK(oarlock_client_create(PODS, "home", "{}", NULL).code == OARLOCK_INVALID);
    const oarlock_gvr nodes = {"", "v1", "nodes"};
    oarlock_error error = oarlock_client_create(nodes, "", web, NULL);
    OARLOCK_CHECK(error.code == OARLOCK_FORBIDDEN);
    OARLOCK_CHECK_TEXT(error.message, "the plugin declares no request with the verb create for v1/nodes");

    // A write does not move an object. A body without a namespace is that of the path.
    const char *moved = OARLOCK_JSON({"metadata": {"namespace": "away"}, "a": 1});
    OARLOCK_CHECK_OK(oarlock_client_patch(PODS, WEB, OARLOCK_MERGE_PATCH, moved, NULL, NULL));
    OARLOCK_CHECK_TEXT(at("/metadata/namespace"), "\"home\"");
    OARLOCK_CHECK_TEXT(at("/a"), "1");
    const char *replacement = oarlock_format(
        "{\"metadata\": {\"name\": \"web\", \"finalizers\": [\"a/b\"], \"resourceVersion\": %s}}",
        at("/metadata/resourceVersion"));
    OARLOCK_CHECK_OK(oarlock_client_replace(PODS, WEB, NULL, replacement, NULL));
    OARLOCK_CHECK_TEXT(at("/metadata/namespace"), "\"home\"");
    OARLOCK_CHECK_TEXT(at("/a"), NULL);

    // An object with finalizers stays until the last one is gone.
    OARLOCK_CHECK_OK(oarlock_client_delete(PODS, WEB, NULL));
    OARLOCK_CHECK_TEXT(at("/metadata/deletionTimestamp"), "\"2026-01-01T00:00:00Z\"");
    const char *version = at("/metadata/resourceVersion");
    OARLOCK_CHECK_OK(oarlock_client_delete(PODS, WEB, NULL));
    OARLOCK_CHECK_TEXT(at("/metadata/resourceVersion"), version);
    const char *patch = OARLOCK_JSON({"metadata": {"finalizers": null}});
    OARLOCK_CHECK_OK(oarlock_client_patch(PODS, WEB, OARLOCK_MERGE_PATCH, patch, NULL, NULL));
    OARLOCK_CHECK_TEXT(oarlock_host_object(PODS, WEB), NULL);

    oarlock_written written;
    const char *generated = OARLOCK_JSON({"metadata": {"generateName": "web-"}});
    OARLOCK_CHECK_OK(oarlock_client_create(PODS, "home", generated, &written));
    OARLOCK_CHECK(strncmp(written.name, "web-", 4) == 0 && strlen(written.name) > 4);
    OARLOCK_CHECK_OK(oarlock_client_apply(PODS, WEB, "{}", NULL, NULL));
    OARLOCK_CHECK_TEXT(at("/metadata/name"), "\"web\"");
}

void the_host_of_tests_does_what_an_api_server_does(void) {
    objects_get_what_the_api_server_sets();
    json_patches_are_applied();
    merge_patches_are_applied();
    selectors_match_as_in_kubernetes();
    requests_are_refused_as_by_an_api_server();
}
