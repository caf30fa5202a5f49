// Package host has what every call of the host needs.
package host

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"

	log "example.com/my-plugin/imports/oarlock_plugin_log"
	types "example.com/my-plugin/imports/oarlock_plugin_types"
)

// Info writes a line to the log of the plugin, with pairs of names and values.
func Info(message string, pairs ...string) {
	var entries []types.Entry
	for i := 0; i+1 < len(pairs); i += 2 {
		entries = append(entries, types.Entry{Name: pairs[i], Value: pairs[i+1]})
	}
	log.Log(log.Level_Info, message, entries)
}

// garbage is the number of bytes that are allocated between two collections.
const garbage = 8 << 20

var (
	allocated = []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	collected uint64
)

func init() {
	// A collection that starts while the host passes a string would trap.
	debug.SetGCPercent(-1)
}

// Collect collects garbage if enough was allocated. Every exported function ends with it.
func Collect() {
	metrics.Read(allocated)
	now := allocated[0].Value.Uint64()
	if now-collected < garbage {
		return
	}
	runtime.GC()
	collected = now
}
