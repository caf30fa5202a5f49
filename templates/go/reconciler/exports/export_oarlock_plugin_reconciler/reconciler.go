// Package export_oarlock_plugin_reconciler compares what is with what should be, and logs it.
package export_oarlock_plugin_reconciler

import (
	"fmt"

	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"example.com/my-plugin/host"
	cache "example.com/my-plugin/imports/oarlock_plugin_cache"
	reconciler "example.com/my-plugin/imports/oarlock_plugin_reconciler"
	types "example.com/my-plugin/imports/oarlock_plugin_types"
	queue "example.com/my-plugin/imports/oarlock_plugin_work_queue"
)

type result = witTypes.Result[reconciler.Outcome, types.Failure]

// Reconcile is called for an object after it appeared, changed or went.
func Reconcile(key queue.WorkKey) result {
	defer host.Collect()
	object := key.Object
	fields := types.MakeProjectionFields([]string{"/metadata/creationTimestamp"})
	row := cache.Get("objects", object, fields)
	switch {
	case row.IsOk():
		// Fields are JSON text.
		host.Info("reconciled", "namespace", object.Namespace, "name", object.Name,
			"created", row.Ok().Fields[0].SomeOr(""))
	case row.Err().Tag() == types.Error_NotFound:
		host.Info("gone", "namespace", object.Namespace, "name", object.Name)
	default:
		return retry(fmt.Errorf("cannot read the cache: %v", row.Err()))
	}
	return witTypes.Ok[reconciler.Outcome, types.Failure](reconciler.MakeOutcomeDone())
}

// retry has the host call again with the same key, later.
func retry(err error) result {
	return witTypes.Err[reconciler.Outcome](types.MakeFailureRetry(err.Error()))
}
