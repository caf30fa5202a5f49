package server

import (
	"sync"
	"time"
)

// gate holds the phase of all watches. They wait until it opens; then they send all events.
type gate struct {
	mutex sync.Mutex
	phase *phase
}

type phase struct {
	// started is closed when events may flow.
	started chan struct{}
	// ended is closed to end every watch; reason is their last event, if it is set.
	ended  chan struct{}
	reason []byte
	// limit is the number of events; 0 means all.
	limit int
	// rate is the number of events a second, from the time at on; 0 means as fast as they are read. Both are
	// set before started is closed.
	rate float64
	at   time.Time
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

// start starts the events on current and future watches.
func (g *gate) start(rate float64, at time.Time) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	select {
	case <-g.phase.started:
	default:
		g.phase.rate, g.phase.at = rate, at
		close(g.phase.started)
	}
}

// shorten limits the events of this phase.
func (g *gate) shorten(limit int) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.phase.limit = limit
}

// reset ends all watches. New watches wait again.
func (g *gate) reset(reason []byte) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.phase.reason = reason
	close(g.phase.ended)
	g.phase = newPhase()
}

// wait waits until it is time for the n-th event. It returns false when the client is gone or the phase has
// ended.
func (p *phase) wait(n int, gone <-chan struct{}) bool {
	due := time.Until(p.at.Add(time.Duration(float64(n) / p.rate * float64(time.Second))))
	if due <= 0 {
		return true
	}
	timer := time.NewTimer(due)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-gone:
		return false
	case <-p.ended:
		return false
	}
}
