// A plugin that logs the objects of a resource when they appear, change and go.
package main

import (
	"encoding/json"
	"log/slog"

	oarlock "oarlock.dev/sdk"
)

// Object is the whole object; only the fields that are asked for are read. With a struct in its place, such
// as
//
//	type Object struct {
//		Created string `pointer:"/metadata/creationTimestamp"`
//	}
//
// notifications carry these fields, for added.Value(), and updates that change none of them are skipped.
type Object = json.RawMessage

// setup declares what the plugin watches, and what handles it.
func setup(p *oarlock.Plugin) error {
	p.Name, p.Version = "my-plugin", "0.1.0"
	p.Stateless = true // it keeps nothing between calls
	oarlock.Watch(p, oarlock.Subscription{
		Name:   "objects",
		Target: oarlock.GVR("apps", "v1", "deployments"),
	}, oarlock.HandlerFuncs[Object]{
		AddFunc: func(added oarlock.Added[Object]) error {
			created, err := oarlock.Get[string](added, "/metadata/creationTimestamp")
			if err != nil {
				return err // the host calls again later
			}
			slog.Info("added", "namespace", added.Namespace, "name", added.Name, "created", created)
			return nil
		},
		UpdateFunc: func(updated oarlock.Updated[Object]) error {
			slog.Info("updated", "namespace", updated.New.Namespace, "name", updated.New.Name)
			return nil
		},
		DeleteFunc: func(deleted oarlock.Deleted[Object]) error {
			slog.Info("deleted", "namespace", deleted.Namespace, "name", deleted.Name)
			return nil
		},
	})
	return nil
}

func init() { oarlock.Register(setup) }

// main is never called: the host calls the plugin's handlers.
func main() {}
