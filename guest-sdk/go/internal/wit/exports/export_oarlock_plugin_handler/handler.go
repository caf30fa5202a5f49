// Package export_oarlock_plugin_handler has the functions that the generated exports call.
package export_oarlock_plugin_handler

import (
	"oarlock.dev/sdk/internal/host"
	handler "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_handler"
)

// OnAdd calls the plugin.
func OnAdd(event handler.Added) host.Unit {
	return host.Call(func(plugin host.Guest) error { return plugin.OnAdd(event) })
}

// OnUpdate calls the plugin.
func OnUpdate(event handler.Updated) host.Unit {
	return host.Call(func(plugin host.Guest) error { return plugin.OnUpdate(event) })
}

// OnDelete calls the plugin.
func OnDelete(event handler.Deleted) host.Unit {
	return host.Call(func(plugin host.Guest) error { return plugin.OnDelete(event) })
}

// OnSynced calls the plugin.
func OnSynced(event handler.Synced) host.Unit {
	return host.Call(func(plugin host.Guest) error { return plugin.OnSynced(event) })
}
