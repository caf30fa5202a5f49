package main

import (
	"fmt"
	"testing"
	"time"

	oarlock "oarlock.dev/sdk"
	"oarlock.dev/sdk/oarlocktest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func requesting(cpu, memory, restartPolicy string) container {
	var c container
	c.RestartPolicy = restartPolicy
	c.Resources.Requests = quantities{"cpu": cpu, "memory": memory}
	return c
}

func TestAPodRequestsWhatTheSchedulerCounts(t *testing.T) {
	for name, c := range map[string]struct {
		pod  pod
		want string
	}{
		"nothing":    {pod{}, "0 0"},
		"containers": {pod{Containers: []container{requesting("100m", "1Gi", ""), requesting("1", "1Gi", "")}}, "1100m 2Gi"},
		"a large init container": {pod{
			Containers: []container{requesting("1", "1Gi", "")}, InitContainers: []container{requesting("500m", "4Gi", "")},
		}, "1 4Gi"},
		"sidecars count with both": {pod{
			Containers:     []container{requesting("1", "1Gi", "")},
			InitContainers: []container{requesting("250m", "1Gi", "Always"), requesting("2", "1Gi", "")},
		}, "2250m 2Gi"},
		"overhead": {pod{Containers: []container{requesting("1", "1Gi", "")}, Overhead: quantities{"cpu": "50m"}}, "1050m 1Gi"},
	} {
		got, err := c.pod.requests()
		if text := fmt.Sprint(&got.cpu, " ", &got.memory); err != nil || text != c.want {
			t.Errorf("%s: got %s, %v; want %s", name, text, err, c.want)
		}
	}
	if _, err := (pod{Containers: []container{requesting("many", "1Gi", "")}}).requests(); err == nil {
		t.Error("a quantity that is none is accepted")
	}
}

func TestTheTimeOfTheConditionChangesOnlyWithItsStatus(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC) }
	one, _ := parse(quantities{"cpu": "1"})
	two, _ := parse(quantities{"cpu": "2"})
	b := budget{Team: "a", CPU: "1500m", Generation: 3}
	for _, step := range []struct {
		minute    int
		requested amounts
		want      string
	}{
		{0, one, "True 00:00"}, {1, one, "True 00:00"}, {2, two, "False 00:02"}, {3, two, "False 00:02"}, {4, one, "True 00:04"},
	} {
		b.Status = statusOf(b, 1, step.requested, at(step.minute))
		got := b.Status.condition()
		if text := got.Status + " " + got.LastTransitionTime[11:16]; text != step.want || got.ObservedGeneration != 3 {
			t.Errorf("minute %d: got %s of generation %d, want %s", step.minute, text, got.ObservedGeneration, step.want)
		}
	}
}

func podOf(name, team, cpu string) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": name, "labels": map[string]any{"team": team}},
		"spec": map[string]any{"containers": []any{
			map[string]any{"name": "app", "resources": map[string]any{"requests": map[string]any{"cpu": cpu}}},
		}},
	}
}

func TestATeamThatGoesAboveItsBudgetGetsOneEvent(t *testing.T) {
	host := oarlocktest.New(t, setup, nil)
	must(t, host.Start())
	pods := oarlock.GVR("", "v1", "pods")
	must(t, host.Apply(budgets, map[string]any{
		"metadata": map[string]any{"name": "payments"}, "spec": map[string]any{"team": "payments", "cpu": "1"},
	}))
	must(t, host.Apply(pods, podOf("a", "payments", "600m")))
	must(t, host.Apply(pods, podOf("other", "search", "5")))
	if events := host.Events(); len(events) != 0 {
		t.Errorf("unexpected Events %v", events)
	}
	must(t, host.Apply(pods, podOf("b", "payments", "600m")))
	must(t, host.Apply(pods, podOf("c", "payments", "600m")))
	events := host.Events()
	if len(events) != 1 || events[0].Note != "team payments: cpu: 1200m of 1" || events[0].Key.Name != "payments" {
		t.Errorf("unexpected Events %v", events)
	}
	status := host.Object(budgets, oarlock.ObjectKey{Name: "payments"})["status"].(map[string]any)
	if status["pods"] != 3.0 || status["cpu"] != "1800m" {
		t.Errorf("unexpected status %v", status)
	}
	must(t, host.Delete(pods, oarlock.ObjectKey{Namespace: "shop", Name: "c"}))
	host.Writes()
	must(t, host.Apply(pods, podOf("other", "search", "6")))
	if writes := host.Writes(); len(writes) != 0 {
		t.Errorf("writes without a change: %v", writes)
	}
}
