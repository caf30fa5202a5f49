package main

import (
	"testing"

	oarlock "oarlock.dev/sdk"
	"oarlock.dev/sdk/oarlocktest"
)

func TestAnObjectIsReconciledWhenItAppearsAndGoes(t *testing.T) {
	host := oarlocktest.New(t, setup, nil)
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	resource := oarlock.GVR("apps", "v1", "deployments")
	object := map[string]any{"metadata": map[string]any{"namespace": "default", "name": "web"}}
	if err := host.Apply(resource, object); err != nil {
		t.Fatal(err)
	}
	if err := host.Delete(resource, oarlock.ObjectKey{Namespace: "default", Name: "web"}); err != nil {
		t.Fatal(err)
	}
	logs := host.Logs()
	if len(logs) != 2 || logs[0].Message != "reconciled" || logs[1].Message != "gone" || logs[0].Pairs["name"] != "web" {
		t.Errorf("unexpected log: %v", logs)
	}
}
