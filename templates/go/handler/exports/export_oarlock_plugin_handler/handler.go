// Package export_oarlock_plugin_handler logs the objects of a resource when they appear, change and go.
package export_oarlock_plugin_handler

import (
	"fmt"

	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"example.com/my-plugin/host"
	event "example.com/my-plugin/imports/oarlock_plugin_event"
	handler "example.com/my-plugin/imports/oarlock_plugin_handler"
	types "example.com/my-plugin/imports/oarlock_plugin_types"
)

type result = witTypes.Result[witTypes.Unit, types.Failure]

// OnAdd is called for an object that exists, was created, or began to match.
func OnAdd(added handler.Added) result {
	defer host.Collect()
	// Fields are read by their JSON pointers, as JSON text.
	created := event.Field(event.Version_New, "/metadata/creationTimestamp")
	if created.IsErr() {
		return retry(fmt.Errorf("cannot read the object: %v", created.Err()))
	}
	host.Info("added", "namespace", added.Object.Namespace, "name", added.Object.Name,
		"created", created.Ok().SomeOr(""))
	return done()
}

// OnUpdate is called when an object has changed.
func OnUpdate(updated handler.Updated) result {
	defer host.Collect()
	host.Info("updated", "namespace", updated.Object.Namespace, "name", updated.Object.Name)
	return done()
}

// OnDelete is called when an object was deleted.
func OnDelete(deleted handler.Deleted) result {
	defer host.Collect()
	host.Info("deleted", "namespace", deleted.Object.Namespace, "name", deleted.Object.Name)
	return done()
}

// OnSynced is called when all objects that existed at the start have been handled.
func OnSynced(synced handler.Synced) result {
	defer host.Collect()
	return done()
}

func done() result {
	return witTypes.Ok[witTypes.Unit, types.Failure](witTypes.Unit{})
}

// retry has the host call again with the same object, later.
func retry(err error) result {
	return witTypes.Err[witTypes.Unit](types.MakeFailureRetry(err.Error()))
}
