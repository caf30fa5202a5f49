package main

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	oarlock "oarlock.dev/sdk"
	"oarlock.dev/sdk/oarlocktest"
)

var (
	configMaps = oarlock.GVR("", "v1", "configmaps")
	namespaces = oarlock.GVR("", "v1", "namespaces")
)

func TestTargetsAreExistingNamespacesExceptTheOwn(t *testing.T) {
	existing := []string{"home", "team-a", "team-b", "kube-system"}
	for annotation, want := range map[string][]string{
		"team-a, team-b,nowhere,home": {"team-a", "team-b"},
		"*":                           {"team-a", "team-b"},
		"*,kube-system":               {"team-a", "team-b", "kube-system"},
		" , ":                         nil,
	} {
		if got := targets(annotation, "home", existing, []string{"kube-system"}); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", annotation, got, want)
		}
	}
}

func TestASourceKeyIsANamespaceAndAName(t *testing.T) {
	if key, ok := parseSource("home/settings"); !ok || key.String() != "home/settings" {
		t.Errorf("got %v, %v", key, ok)
	}
	for _, text := range []string{"", "settings", "/settings", "home/", "a/b/c"} {
		if key, ok := parseSource(text); ok {
			t.Errorf("%q is %v", text, key)
		}
	}
}

func TestThePatchSetsChangedFieldsAndNullsRemovedOnes(t *testing.T) {
	there := map[string]any{"data": map[string]any{"a": "1", "b": "2", "c": "3"}}
	source := map[string]any{"data": map[string]any{"a": "1", "b": "two", "d": "4"}}
	want := map[string]any{"data": map[string]any{"b": "two", "c": nil, "d": "4"}}
	if got := difference(kinds[0], there, source); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v", got)
	}
	if got := difference(kinds[0], there, there); got != nil {
		t.Errorf("got %v", got)
	}
}

func configMap(namespace, name string, annotations map[string]string, data string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"a": data},
		"metadata": map[string]any{"namespace": namespace, "name": name, "annotations": annotations},
	}
}

func started(t *testing.T) *oarlocktest.Host {
	t.Helper()
	host := oarlocktest.New(t, setup, map[string]any{"excludedNamespaces": []string{"kube-system"}})
	for _, name := range []string{"home", "team-a", "team-b", "kube-system"} {
		must(t, host.Apply(namespaces, map[string]any{"metadata": map[string]any{"name": name}}))
	}
	must(t, host.Start())
	return host
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func data(host *oarlocktest.Host, namespace string) string {
	object := host.Object(configMaps, oarlock.ObjectKey{Namespace: namespace, Name: "settings"})
	if object == nil {
		return "none"
	}
	return fmt.Sprint(object["data"])
}

func TestCopiesFollowTheirSource(t *testing.T) {
	host := started(t)
	everywhere := map[string]string{mirrorTo: "*"}
	must(t, host.Apply(configMaps, configMap("home", "settings", everywhere, "1")))
	if got := []string{data(host, "team-a"), data(host, "team-b"), data(host, "kube-system")}; !slices.Equal(got, []string{"map[a:1]", "map[a:1]", "none"}) {
		t.Errorf("got %q", got)
	}
	must(t, host.Apply(configMaps, configMap("home", "settings", everywhere, "2")))
	if got := data(host, "team-b"); got != "map[a:2]" {
		t.Errorf("got %q", got)
	}
	must(t, host.Delete(configMaps, oarlock.ObjectKey{Namespace: "team-b", Name: "settings"}))
	if got := data(host, "team-b"); got != "map[a:2]" {
		t.Errorf("a deleted copy is not restored: %q", got)
	}
	must(t, host.Apply(namespaces, map[string]any{"metadata": map[string]any{"name": "late"}}))
	if got := data(host, "late"); got != "map[a:2]" {
		t.Errorf("no copy in a new namespace: %q", got)
	}
	must(t, host.Apply(configMaps, configMap("home", "settings", map[string]string{mirrorTo: "team-a"}, "2")))
	if got := []string{data(host, "team-a"), data(host, "team-b"), data(host, "late")}; !slices.Equal(got, []string{"map[a:2]", "none", "none"}) {
		t.Errorf("got %q", got)
	}
	must(t, host.Delete(configMaps, oarlock.ObjectKey{Namespace: "home", Name: "settings"}))
	if got := data(host, "team-a"); got != "none" {
		t.Errorf("the copy of a deleted source is there: %q", got)
	}
	must(t, host.Advance(time.Second))
}

func TestAnObjectOfAnotherOwnerIsNotOverwritten(t *testing.T) {
	host := started(t)
	must(t, host.Apply(configMaps, configMap("team-a", "settings", nil, "theirs")))
	must(t, host.Apply(configMaps, configMap("home", "settings", map[string]string{mirrorTo: "team-a"}, "1")))
	if got := data(host, "team-a"); got != "map[a:theirs]" {
		t.Errorf("got %q", got)
	}
	events := host.Events()
	if len(events) != 1 || events[0].Reason != "MirrorRefused" || events[0].Note != "ConfigMap team-a/settings exists and is not a copy of this object" {
		t.Errorf("unexpected Events %v", events)
	}
}

func TestCopiesWithoutASourceAreDeletedAtTheStart(t *testing.T) {
	host := oarlocktest.New(t, setup, nil)
	must(t, host.Apply(configMaps, configMap("team-a", "settings", map[string]string{mirroredFrom: "home/settings"}, "1")))
	must(t, host.Start())
	if got := data(host, "team-a"); got != "none" {
		t.Errorf("got %q", got)
	}
}
