// Package collector collects garbage at safe points.
//
// The host passes strings by allocating in the guest. A collection that starts there traps ("cannot leave
// component instance"), and by default any allocation may start one. So automatic collections are off, and
// the SDK collects where no such allocation is in progress: before it calls the host, and at the end of
// each call by the host.
package collector

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// garbage is the number of bytes that are allocated between two collections.
	garbage = 8 << 20
	// received is the number of bytes from the host after which the allocations are looked at again.
	received = 1 << 20
	// calls is the number of calls of the host after which the allocations are looked at again.
	calls = 256
)

var (
	allocated = []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	collected uint64

	receivedSince int
	callsSince    int
)

// Start turns automatic collections off.
func Start() {
	debug.SetGCPercent(-1)
}

// Received counts the bytes of an answer of the host.
func Received(bytes int) {
	receivedSince += bytes
}

// BeforeCall collects garbage before a call of the host, if much may have been allocated since the last
// time.
func BeforeCall() {
	callsSince++
	if receivedSince >= received || callsSince >= calls {
		Collect()
	}
}

// Collect collects garbage if enough bytes were allocated since the last collection.
func Collect() {
	receivedSince, callsSince = 0, 0
	metrics.Read(allocated)
	now := allocated[0].Value.Uint64()
	if now-collected < garbage {
		return
	}
	runtime.GC()
	collected = now
}
