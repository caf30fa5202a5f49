package oarlock_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	oarlock "oarlock.dev/sdk"
	"oarlock.dev/sdk/oarlocktest"
)

func TestKeysComeFromRulesDelaysSchedulesAndListersThatWake(t *testing.T) {
	var seen []string
	pods := oarlock.GVR("", "v1", "pods")
	h := started(t, func(p *oarlock.Plugin) error {
		p.Enqueue(oarlock.Subscription{Target: configMaps}, oarlock.Itself())
		p.Enqueue(oarlock.Subscription{Target: pods}, oarlock.ControllerOwner("apps", "ReplicaSet"))
		p.Schedule(oarlock.Schedule{Name: "report", Every: time.Hour})
		read := oarlock.NewLister[struct{}](p, oarlock.Read{Name: "waking", Target: pods, Wakes: true})
		p.Reconciler = oarlock.ReconcilerFunc(func(key oarlock.WorkKey) (oarlock.Result, error) {
			seen = append(seen, key.Kind+" "+key.String())
			if key.Kind == "configmaps" {
				for _, err := range read.List("") {
					if err != nil {
						return oarlock.Result{}, err
					}
				}
				return oarlock.Result{RequeueAfter: time.Minute}, nil
			}
			return oarlock.Result{}, nil
		})
		return nil
	})
	must(t, h.Apply(configMaps, configMap("x", nil)))
	if delay, ok := h.Delay(oarlock.WorkKey{Kind: "configmaps", ObjectKey: key("x")}); !ok || delay != time.Minute {
		t.Errorf("the key waits %v, %v", delay, ok)
	}
	must(t, h.Advance(time.Minute))
	must(t, h.Apply(pods, map[string]any{"metadata": map[string]any{
		"namespace": "a", "name": "pod", "ownerReferences": []any{
			map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "controller": true},
		},
	}}))
	must(t, h.Advance(time.Hour))
	want := []string{"configmaps a/x", "configmaps a/x", "ReplicaSet a/rs", "configmaps a/x", "report ", "configmaps a/x"}
	slices.Sort(want[4:])
	slices.Sort(seen[4:])
	if !slices.Equal(seen, want) {
		t.Errorf("got  %q\nwant %q", seen, want)
	}
}

func TestALiveListOfLargeObjectsIsReadInSmallerPages(t *testing.T) {
	var client *oarlock.Client[json.RawMessage]
	h := started(t, func(p *oarlock.Plugin) error {
		client = oarlock.NewClient[json.RawMessage](p, configMaps, "list")
		return nil
	})
	for i := range 9 {
		must(t, h.Apply(configMaps, configMap(fmt.Sprint("x", i), map[string]string{"large": strings.Repeat("x", 1<<20)})))
	}
	var names []string
	for object, err := range client.List("", "") {
		must(t, err)
		names = append(names, object.Name)
	}
	if len(names) != 9 || !slices.IsSorted(names) {
		t.Errorf("got %q", names)
	}
	must(t, h.Apply(configMaps, configMap("y", map[string]string{"large": strings.Repeat("x", 5<<20)})))
	var failed error
	for _, err := range client.List("", "") {
		failed = err
	}
	if !errors.Is(failed, oarlock.ErrLimitExceeded) {
		t.Errorf("an object that is too large for a page: %v", failed)
	}
}

func TestListersReadWhatTheirTypeAsksFor(t *testing.T) {
	var all *oarlock.Lister[json.RawMessage]
	h := started(t, func(p *oarlock.Plugin) error {
		all = oarlock.NewLister[json.RawMessage](p, oarlock.Read{Target: configMaps, Indices: oarlock.Indices{
			"by-app": oarlock.ByLabel("app"), "by-key": oarlock.ByPointer("/data/key"),
		}})
		return nil
	})
	for i := range 3 {
		must(t, h.Apply(configMaps, configMap(fmt.Sprint("x", i), map[string]string{"key": fmt.Sprint(i % 2), "greeting": "hi"})))
	}
	var names []string
	for object, err := range oarlock.As[greeting](all).ByIndex("by-key", "0") {
		must(t, err)
		value, err := object.Value()
		must(t, err)
		names = append(names, object.Name+" "+value.Greeting)
		if _, err := object.Field("/data/key"); err == nil {
			t.Error("a field that was not read has a value")
		}
	}
	if !slices.Equal(names, []string{"x0 hi", "x2 hi"}) {
		t.Errorf("got %q", names)
	}
	values, err := all.IndexValues("by-app")
	if err != nil || !slices.Equal(values, []string{"x0", "x1", "x2"}) {
		t.Errorf("got %q, %v", values, err)
	}
	count := 0
	for range all.InNamespace("other").List("") {
		count++
	}
	for _, err := range all.List("app in (x1,x2)") {
		must(t, err)
		count++
		break
	}
	if count != 1 {
		t.Errorf("%d objects", count)
	}
	object, err := all.Get(key("x1"))
	must(t, err)
	if got, err := oarlock.Get[string](object, "/data/key"); err != nil || got != "1" {
		t.Errorf("got %q, %v", got, err)
	}
	_, err = all.Get(key("none"))
	if !errors.Is(err, oarlock.ErrNotFound) {
		t.Errorf("unexpected error %v", err)
	}
	var failed *oarlock.Error
	if !errors.As(err, &failed) || !strings.Contains(failed.Message, "a/none") {
		t.Errorf("unexpected error %v", err)
	}
	for _, err := range all.ByIndex("undeclared", "") {
		if !errors.Is(err, oarlock.ErrNotDeclared) {
			t.Errorf("unexpected error %v", err)
		}
	}
}

func TestTheClientWritesWithPreconditions(t *testing.T) {
	var client *oarlock.Client[map[string]any]
	h := started(t, func(p *oarlock.Plugin) error {
		client = oarlock.NewClient[map[string]any](p, configMaps, "get", "create", "patch", "update", "delete")
		return nil
	})
	created, err := client.Create("a", configMap("x", map[string]string{"a": "1"}))
	must(t, err)
	if _, err := client.Create("a", configMap("x", nil)); !errors.Is(err, oarlock.ErrAlreadyExists) {
		t.Errorf("unexpected error %v", err)
	}
	object, err := client.Get(key("x"))
	must(t, err)
	if object.ResourceVersion != created.ResourceVersion || object.UID != created.UID {
		t.Errorf("%v is not what was created: %v", object.ObjectRef, created)
	}
	if created.Namespace != "a" || created.Name != "x" {
		t.Errorf("another object was created: %v", created)
	}
	patch := oarlock.MergePatch(map[string]any{"data": map[string]any{"a": nil, "b": "2"}})
	patched, err := client.Patch(key("x"), patch, object.Unchanged())
	must(t, err)
	if patched.Namespace != "a" {
		t.Errorf("another object was patched: %v", patched)
	}
	if _, err := client.Patch(key("x"), patch, object.Unchanged()); !errors.Is(err, oarlock.ErrConflict) {
		t.Errorf("unexpected error %v", err)
	}
	_, err = client.Status().Patch(key("x"), oarlock.MergePatch(map[string]any{
		"status": map[string]any{"ready": true}, "data": map[string]any{"b": "ignored"},
	}), oarlock.Preconditions{})
	must(t, err)
	_, err = client.Scale(key("x"), 3)
	must(t, err)
	there := h.Object(configMaps, key("x"))
	if got := fmt.Sprint(there["data"], there["status"], there["spec"]); got != "map[b:2] map[ready:true] map[replicas:3]" {
		t.Errorf("got %s", got)
	}
	current, err := client.Get(key("x"))
	must(t, err)
	whole, err := current.Value()
	must(t, err)
	whole["data"] = map[string]any{"c": "3"}
	_, err = client.Replace(key("x"), whole)
	must(t, err)
	h.FailNextWrite(oarlock.ErrForbidden)
	if err := client.Delete(key("x"), oarlock.DeleteOptions{}); !errors.Is(err, oarlock.ErrForbidden) {
		t.Errorf("unexpected error %v", err)
	}
	// These would concern the object, not its status.
	err = client.Status().Delete(key("x"), oarlock.DeleteOptions{})
	if want := "invalid: a client of configmaps/status was used where configmaps are deleted: only whole objects can be"; fmt.Sprint(err) != want {
		t.Errorf("unexpected error %v", err)
	}
	if _, err := client.Status().Create("a", whole); !errors.Is(err, oarlock.ErrInvalid) {
		t.Errorf("unexpected error %v", err)
	}
	for _, err := range client.Status().List("", "") {
		if !errors.Is(err, oarlock.ErrInvalid) {
			t.Errorf("unexpected error %v", err)
		}
	}
	must(t, client.Delete(key("x"), oarlock.DeleteOptions{Propagation: oarlock.Foreground}))
	err = client.Delete(key("x"), oarlock.DeleteOptions{})
	if !errors.Is(err, oarlock.ErrNotFound) || oarlock.IgnoreNotFound(err) != nil {
		t.Errorf("unexpected error %v", err)
	}
	var verbs []string
	for _, write := range h.Writes() {
		verbs = append(verbs, write.Verb)
	}
	want := []string{"create", "create", "patch", "patch", "patch", "patch", "replace", "delete", "delete", "delete"}
	if !slices.Equal(verbs, want) {
		t.Errorf("got %q", verbs)
	}
}

func TestLogEventsMetricsConfigurationAndClockReachTheHost(t *testing.T) {
	type config struct {
		Team  string `json:"team"`
		Limit int    `json:"limit"`
	}
	h := oarlocktest.New(t, func(p *oarlock.Plugin) error {
		p.Name, p.Version = "test", "0.1.0"
		c := config{Limit: 7}
		if err := oarlock.Config(&c); err != nil {
			return err
		}
		if c != (config{"a", 7}) {
			t.Errorf("unexpected configuration %v", c)
		}
		return nil
	}, map[string]any{"team": "a"})
	must(t, h.Start())
	slog.With("a", 1).WithGroup("g").Warn("hello", "b", time.Unix(0, 0).UTC(), slog.Group("h", "c", true))
	logs := h.Logs()
	if len(logs) != 1 || logs[0].Level != "warn" || fmt.Sprint(logs[0].Pairs) != "map[a:1 g.b:1970-01-01T00:00:00Z g.h.c:true]" {
		t.Errorf("unexpected log %v", logs)
	}
	recorder := oarlock.Recorder{Target: configMaps, Kind: "ConfigMap"}
	must(t, recorder.Eventf(oarlock.ObjectRef{ObjectKey: key("x")}, oarlock.Warning, "Broken", "by %d", 2))
	if events := h.Events(); len(events) != 1 || events[0].Note != "by 2" || events[0].Type != oarlock.Warning {
		t.Errorf("unexpected Events %v", events)
	}
	must(t, oarlock.Counter("seen").Add(2, nil))
	must(t, oarlock.Gauge("objects").Set(3, oarlock.Labels{"b": "2", "a": "1"}))
	seen, _ := h.Metric("seen")
	objects, _ := h.Metric(`objects{a="1",b="2"}`)
	if seen != 2 || objects != 3 {
		t.Errorf("metrics: %v, %v", seen, objects)
	}
	must(t, h.Advance(90*time.Second))
	if oarlock.Elapsed() != 90*time.Second || oarlock.Now().Format(time.RFC3339) != "2026-01-01T00:01:30Z" {
		t.Errorf("the clock shows %v, %v", oarlock.Now(), oarlock.Elapsed())
	}

	typo := oarlocktest.New(t, func(*oarlock.Plugin) error { return oarlock.Config(&config{}) }, map[string]any{"taem": "a"})
	if err := typo.Describe(); err == nil || !strings.Contains(err.Error(), `unknown field "taem"`) {
		t.Errorf("unexpected error %v", err)
	}
}
