package server

import "sync"

// gate is the phase that all watches are in. They wait until it opens; then they are told everything that happens.
type gate struct {
	mutex sync.Mutex
	phase *phase
}

type phase struct {
	// started is closed when events may flow.
	started chan struct{}
	// ended is closed when every watch is to end, with what is in reason as its last event, if anything.
	ended  chan struct{}
	reason []byte
	// limit is how many events there are to be; none for all.
	limit int
}

func newGate() *gate {
	return &gate{phase: newPhase()}
}

func newPhase() *phase {
	return &phase{started: make(chan struct{}), ended: make(chan struct{})}
}

func (g *gate) current() *phase {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.phase
}

// start lets the events flow, on watches that are there and on those that come.
func (g *gate) start() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	select {
	case <-g.phase.started:
	default:
		close(g.phase.started)
	}
}

// shorten has only so many events follow in this phase.
func (g *gate) shorten(limit int) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.phase.limit = limit
}

// reset ends all watches. Those that come wait again.
func (g *gate) reset(reason []byte) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.phase.reason = reason
	close(g.phase.ended)
	g.phase = newPhase()
}
