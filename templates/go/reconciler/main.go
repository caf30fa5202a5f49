// A plugin that compares what is with what should be, and logs it.
package main

import (
	"errors"
	"log/slog"

	oarlock "oarlock.dev/sdk"
)

// Object has the fields that the plugin reads, with their JSON pointers.
type Object struct {
	Created string            `pointer:"/metadata/creationTimestamp"`
	Labels  map[string]string `pointer:"/metadata/labels"`
}

// setup declares what the plugin watches and reads, and what reconciles it.
func setup(p *oarlock.Plugin) error {
	p.Name, p.Version = "my-plugin", "0.1.0"
	p.Stateless = true // it keeps nothing between calls
	resource := oarlock.GVR("apps", "v1", "deployments")
	p.Enqueue(oarlock.Subscription{Name: "objects", Target: resource}, oarlock.Itself())
	p.Reconciler = reconciler{objects: oarlock.NewLister[Object](p, oarlock.Read{Name: "objects", Target: resource})}
	return nil
}

type reconciler struct {
	objects *oarlock.Lister[Object]
}

// Reconcile is called for an object after it appeared, changed or went.
func (r reconciler) Reconcile(key oarlock.WorkKey) (oarlock.Result, error) {
	found, err := r.objects.Get(key.ObjectKey)
	if errors.Is(err, oarlock.ErrNotFound) {
		slog.Info("gone", "namespace", key.Namespace, "name", key.Name)
		return oarlock.Result{}, nil
	}
	if err != nil {
		return oarlock.Result{}, err // the host calls again later
	}
	object, err := found.Value()
	if err != nil {
		return oarlock.Result{}, err
	}
	slog.Info("reconciled", "namespace", key.Namespace, "name", key.Name, "created", object.Created)
	return oarlock.Result{}, nil
}

func init() { oarlock.Register(setup) }

// main is never called: the host calls the reconciler.
func main() {}
