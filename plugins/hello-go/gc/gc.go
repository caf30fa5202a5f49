// Package gc collects garbage when it is allowed to.
//
// Go starts a collection whenever an allocation makes it due. If that is the allocation of a string that the host is
// handing over, the collector's calls to WASI trap ("cannot leave component instance"). So collections that come
// by themselves are off, and every exported function ends with Collect.
package gc

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// garbage is how many bytes are allocated between two collections.
const garbage = 8 << 20

var (
	allocated = []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	collected uint64
)

func init() {
	debug.SetGCPercent(-1)
}

// Collect collects garbage if there may be enough of it.
func Collect() {
	metrics.Read(allocated)
	now := allocated[0].Value.Uint64()
	if now-collected < garbage {
		return
	}
	runtime.GC()
	collected = now
}
