// Package export_oarlock_plugin_reconciler has the function that the generated exports call.
package export_oarlock_plugin_reconciler

import (
	"oarlock.dev/sdk/internal/host"
	reconciler "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_reconciler"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	queue "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_work_queue"
	wit "oarlock.dev/sdk/internal/wit/types"
)

// Reconcile calls the plugin.
func Reconcile(key queue.WorkKey) wit.Result[reconciler.Outcome, types.Failure] {
	return host.CallFor(func(plugin host.Guest) (reconciler.Outcome, error) { return plugin.Reconcile(key) })
}
