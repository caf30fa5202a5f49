package oarlock_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	oarlock "oarlock.dev/sdk"
	"oarlock.dev/sdk/oarlocktest"
)

var configMaps = oarlock.GVR("", "v1", "configmaps")

// configMap returns a ConfigMap of namespace a with these data.
func configMap(name string, data map[string]string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": "a", "name": name, "labels": map[string]any{"app": name}},
		"data":     data,
	}
}

func key(name string) oarlock.ObjectKey { return oarlock.ObjectKey{Namespace: "a", Name: name} }

// started returns a host with a plugin that setup declares; it is named and has no reconciler.
func started(t *testing.T, setup func(*oarlock.Plugin) error) *oarlocktest.Host {
	t.Helper()
	h := oarlocktest.New(t, func(p *oarlock.Plugin) error {
		p.Name, p.Version = "test", "0.1.0"
		return setup(p)
	}, nil)
	if err := h.Start(); err != nil {
		t.Fatal(err)
	}
	return h
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type greeting struct {
	Greeting string  `pointer:"/data/greeting"`
	Missing  *string `pointer:"/data/missing"`
	App      string  `pointer:"/metadata/labels/app"`
}

func TestUpdatesThatChangeNoDeclaredFieldAreSkippedAndTheOthersCarryTheValues(t *testing.T) {
	var seen []string
	h := started(t, func(p *oarlock.Plugin) error {
		oarlock.Watch(p, oarlock.Subscription{Target: configMaps}, oarlock.HandlerFuncs[greeting]{
			AddFunc: func(added oarlock.Added[greeting]) error {
				value, err := added.Value()
				if value.Missing != nil {
					t.Error("a missing field is not nil")
				}
				seen = append(seen, "add "+value.App+" "+value.Greeting)
				return err
			},
			UpdateFunc: func(updated oarlock.Updated[greeting]) error {
				before, err1 := updated.Old.Value()
				after, err2 := updated.New.Value()
				seen = append(seen, "update "+before.Greeting+" "+after.Greeting)
				return errors.Join(err1, err2)
			},
			DeleteFunc: func(deleted oarlock.Deleted[greeting]) error {
				seen = append(seen, "delete "+deleted.Name)
				return nil
			},
		})
		return nil
	})
	must(t, h.Apply(configMaps, configMap("x", map[string]string{"greeting": "hi \"you\""})))
	must(t, h.Apply(configMaps, configMap("x", map[string]string{"greeting": "hi \"you\"", "other": "1"})))
	must(t, h.Apply(configMaps, configMap("x", map[string]string{"greeting": "bye"})))
	must(t, h.Delete(configMaps, key("x")))
	want := []string{`add x hi "you"`, `update hi "you" bye`, "delete x"}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

func TestAFieldOfTheWrongTypeIsAnErrorThatNamesIt(t *testing.T) {
	type wrong struct {
		Greeting int `pointer:"/data/greeting"`
	}
	h := started(t, func(p *oarlock.Plugin) error {
		oarlock.Watch(p, oarlock.Subscription{Target: configMaps}, oarlock.HandlerFuncs[wrong]{
			AddFunc: func(added oarlock.Added[wrong]) error {
				_, err := added.Value()
				return err
			},
		})
		return nil
	})
	err := h.Apply(configMaps, configMap("x", map[string]string{"greeting": "hi"}))
	if err == nil || !strings.Contains(err.Error(), "a/x: /data/greeting is not a int") {
		t.Errorf("unexpected error: %v", err)
	}
}

func TestTheWholeObjectAndSingleFieldsAreReadWhenAskedFor(t *testing.T) {
	type whole struct {
		Data map[string]string `json:"data"`
	}
	var kept oarlock.Object[whole]
	h := started(t, func(p *oarlock.Plugin) error {
		oarlock.Watch(p, oarlock.Subscription{Target: configMaps}, oarlock.HandlerFuncs[whole]{
			AddFunc: func(added oarlock.Added[whole]) error {
				kept = added.Object
				value, err := added.Value()
				if err != nil || value.Data["a/b"] != "1" {
					t.Errorf("unexpected value %v, %v", value, err)
				}
				field, err := oarlock.Get[string](added, oarlock.Pointer("data", "a/b"))
				if err != nil || field != "1" {
					t.Errorf("unexpected field %q, %v", field, err)
				}
				missing, err := oarlock.Get[*int](added, "/spec/replicas")
				if err != nil || missing != nil {
					t.Errorf("unexpected field %v, %v", missing, err)
				}
				return nil
			},
		})
		return nil
	})
	must(t, h.Apply(configMaps, configMap("x", map[string]string{"a/b": "1"})))
	must(t, h.Apply(configMaps, configMap("y", map[string]string{"a/b": "1"})))
	must(t, h.Delete(configMaps, key("y")))
	if _, err := kept.Value(); err == nil {
		t.Error("an object of a notification was read after its handler had returned")
	}
}

func TestConditionsAndSelectorsChooseTheObjects(t *testing.T) {
	var seen []string
	h := started(t, func(p *oarlock.Plugin) error {
		oarlock.Watch(p, oarlock.Subscription{
			Target: configMaps, LabelSelector: "app notin (never)",
			Conditions: []oarlock.Condition{
				oarlock.Exists("/data/a"), oarlock.Differs("/data/b", "no"), oarlock.In("/data/a", "1", "2"),
				oarlock.Greater("/data/n", "3"),
			},
		}, oarlock.HandlerFuncs[struct{}]{AddFunc: func(added oarlock.Added[struct{}]) error {
			seen = append(seen, added.Name)
			return nil
		}})
		return nil
	})
	for name, data := range map[string]map[string]string{
		"yes": {"a": "1", "n": "4"}, "no-a": {"n": "4"}, "b": {"a": "1", "b": "no", "n": "4"}, "three": {"a": "3", "n": "4"},
		"less": {"a": "1", "n": "2"}, "never": {"a": "1", "n": "4"},
	} {
		must(t, h.Apply(configMaps, configMap(name, data)))
	}
	if !slices.Equal(seen, []string{"yes"}) {
		t.Errorf("got %q", seen)
	}
}

func TestSetupIsRefusedWithAllItsMistakes(t *testing.T) {
	type unexported struct {
		a string `pointer:"/a"`
	}
	type relative struct {
		A string `pointer:"spec"`
	}
	type embedded struct {
		*greeting
	}
	_ = unexported{}.a
	h := oarlocktest.New(t, func(p *oarlock.Plugin) error {
		oarlock.Watch(p, oarlock.Subscription{Name: "one", Target: configMaps, Resync: time.Millisecond}, oarlock.HandlerFuncs[unexported]{})
		oarlock.Watch(p, oarlock.Subscription{Name: "one", Target: configMaps}, oarlock.HandlerFuncs[relative]{})
		oarlock.Watch[json.RawMessage](p, oarlock.Subscription{Name: "two", Target: configMaps}, nil)
		oarlock.Watch(p, oarlock.Subscription{Name: "three", Target: configMaps}, oarlock.HandlerFuncs[embedded]{})
		p.Schedule(oarlock.Schedule{Name: "never"})
		return nil
	}, nil)
	err := h.Describe()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []string{
		"field a of oarlock_test.unexported has a pointer and is not exported", `the JSON pointer "spec" does not begin with /`,
		`two subscriptions are named "one"`, "1ms is not a number of whole seconds", `subscription "two" has no handler`,
		"field Greeting of oarlock_test.embedded is that of an embedded pointer",
		`schedule "never" needs either Every or Cron`, "needs a Name and a Version", "has no Reconciler",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in:\n%v", part, err)
		}
	}
}
