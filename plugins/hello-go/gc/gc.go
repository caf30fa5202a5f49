// Package gc collects garbage at safe points.
//
// By default an allocation may start a collection. If it is the allocation of a string that the host passes,
// the collector's calls to WASI trap ("cannot leave component instance"). So automatic collections are off,
// and every exported function ends with Collect.
package gc

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// garbage is the number of bytes that are allocated between two collections.
const garbage = 8 << 20

var (
	allocated = []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	collected uint64
)

func init() {
	debug.SetGCPercent(-1)
}

// Collect collects garbage if enough bytes were allocated since the last collection.
func Collect() {
	metrics.Read(allocated)
	now := allocated[0].Value.Uint64()
	if now-collected < garbage {
		return
	}
	runtime.GC()
	collected = now
}
