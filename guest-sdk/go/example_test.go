package oarlock_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	oarlock "oarlock.dev/sdk"
	"oarlock.dev/sdk/oarlocktest"
)

// pod is the part of a Pod that a plugin reads.
type pod struct {
	Team string  `pointer:"/metadata/labels/team"` // a JSON pointer; a missing field keeps the zero value
	Node *string `pointer:"/spec/nodeName"`        // or nil
}

var pods = oarlock.GVR("", "v1", "pods")

// A handler is called for changes. In a plugin, oarlock.Register gets the function setup.
func ExampleWatch() {
	setup := func(p *oarlock.Plugin) error {
		p.Name, p.Version, p.Stateless = "placed", "0.1.0", true
		oarlock.Watch(p, oarlock.Subscription{Target: pods}, oarlock.HandlerFuncs[pod]{
			// Not called for updates that change neither team nor node.
			UpdateFunc: func(updated oarlock.Updated[pod]) error {
				now, err := updated.New.Value()
				if err != nil {
					return err // the host calls again
				}
				if now.Node != nil {
					slog.Info("runs", "pod", updated.New.Key(), "team", now.Team, "node", *now.Node)
				}
				return nil
			},
		})
		return nil
	}
	_ = setup
}

// A reconciler is called with keys. It reads from the cache and writes to the API server.
func ExamplePlugin_Enqueue() {
	setup := func(p *oarlock.Plugin) error {
		p.Name, p.Version, p.Stateless = "expiry", "0.1.0", true
		jobs := oarlock.GVR("batch", "v1", "jobs")
		type job struct {
			Created time.Time `pointer:"/metadata/creationTimestamp"`
		}
		cached := oarlock.NewLister[job](p, oarlock.Read{Target: jobs})
		client := oarlock.NewClient[struct{}](p, jobs, "delete")
		p.Enqueue(oarlock.Subscription{Target: jobs, MetadataOnly: true}, oarlock.Itself())
		p.Reconciler = oarlock.ReconcilerFunc(func(key oarlock.WorkKey) (oarlock.Result, error) {
			object, err := cached.Get(key.ObjectKey)
			if err != nil {
				return oarlock.Result{}, oarlock.IgnoreNotFound(err)
			}
			found, err := object.Value()
			if err != nil {
				return oarlock.Result{}, oarlock.Terminal(err)
			}
			if wait := found.Created.Add(time.Hour).Sub(oarlock.Now()); wait > 0 {
				return oarlock.Result{RequeueAfter: wait}, nil
			}
			err = client.Delete(key.ObjectKey, oarlock.DeleteOptions{Preconditions: object.Unchanged()})
			return oarlock.Result{}, oarlock.IgnoreNotFound(err)
		})
		return nil
	}
	_ = setup
}

// ByIndex returns an iterator.
func ExampleLister_ByIndex() {
	setup := func(p *oarlock.Plugin) error {
		cached := oarlock.NewLister[pod](p, oarlock.Read{
			Target: pods, Indices: oarlock.Indices{"team": oarlock.ByLabel("team")},
		})
		p.Synced = func(oarlock.Synced) error {
			count := 0
			for object, err := range cached.ByIndex("team", "payments") {
				if err != nil {
					return err
				}
				slog.Debug("counted", "pod", object.Key())
				count++
			}
			return oarlock.Gauge("pods").Set(float64(count), oarlock.Labels{"team": "payments"})
		}
		return nil
	}
	_ = setup
}

// A plugin is tested natively: oarlocktest takes the host's place.
func Example_test() {
	var setup func(*oarlock.Plugin) error // the plugin's
	_ = func(t *testing.T) {
		host := oarlocktest.New(t, setup, nil)
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		if err := host.Apply(pods, map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "web"}}); err != nil {
			t.Fatal(err)
		}
		if logs := host.Logs(); len(logs) != 1 {
			t.Errorf("unexpected log: %v", logs)
		}
	}
}

func ExamplePointer() {
	fmt.Println(oarlock.Pointer("metadata", "annotations", "example.com/team"))
	// Output: /metadata/annotations/example.com~1team
}

func ExampleError() {
	var err error = &oarlock.Error{Kind: oarlock.ErrConflict, Message: "configmaps shop/web has changed"}
	fmt.Println(err, errors.Is(err, oarlock.ErrConflict))
	// Output: conflict: configmaps shop/web has changed true
}

func ExampleTerminal() {
	err := oarlock.Terminal(errors.New("no such colour: mauve"))
	fmt.Println(err)
	// Output: no such colour: mauve
}
