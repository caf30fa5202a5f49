package server

import (
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"oarlock.dev/bench-peers/corpus"
)

// resource is a list of objects and their events, in each form that a client has requested.
type resource struct {
	name   string
	kind   string
	seed   uint64
	n      int
	events int

	mutex   sync.Mutex
	encoded map[form]*encoded
}

// encoded is made once, before anything is measured.
type encoded struct {
	objects [][]byte
	events  [][]byte
}

// in returns the resource in one form. Encoding it takes seconds.
func (r *resource) in(f form) *encoded {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if e := r.encoded[f]; e != nil {
		return e
	}
	begun := time.Now()
	e := &encoded{objects: make([][]byte, r.n), events: make([][]byte, r.events)}
	if r.kind == "Pod" {
		pods := corpus.Pods(r.seed, r.n)
		corpus.Parallel(r.n, func(i int) { e.objects[i] = f.encode(pods[i]) })
		corpus.Events(r.seed, pods, r.events, func(i int, pod *corev1.Pod) { e.events[i] = f.encode(pod) })
	} else {
		maps := corpus.Small(r.seed, r.n)
		corpus.Parallel(r.n, func(i int) { e.objects[i] = f.encode(maps[i]) })
	}
	if r.encoded == nil {
		r.encoded = map[form]*encoded{}
	}
	r.encoded[f] = e
	debug.FreeOSMemory()
	fmt.Fprintf(os.Stderr, "bench-peers: %d %s and %d events as %s: %.1f s\n",
		len(e.objects), r.name, len(e.events), f, time.Since(begun).Seconds())
	return e
}
