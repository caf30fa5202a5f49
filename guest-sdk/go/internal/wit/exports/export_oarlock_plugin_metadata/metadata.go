// Package export_oarlock_plugin_metadata has the function that the generated exports call.
package export_oarlock_plugin_metadata

import (
	"oarlock.dev/sdk/internal/host"
	metadata "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_metadata"
	wit "oarlock.dev/sdk/internal/wit/types"
)

// Describe calls the plugin.
func Describe() wit.Result[metadata.Description, string] {
	return host.CallForText(host.Guest.Describe)
}
