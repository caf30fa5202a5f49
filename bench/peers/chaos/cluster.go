package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	"oarlock.dev/bench-peers/corpus"
)

// window is the number of events that a watch may be behind before its version expires.
const window = 20_000

// thing is an object: the constant part of its JSON, and its state.
type thing struct {
	head, middle, tail []byte
	state              state
}

// state is one version of one object; generation 0 means that the object does not exist.
type state struct {
	uid        uint64
	version    int
	generation int
}

// event is one change. Its version is its index in the log.
type event struct {
	typ   string
	index int
	state state
}

// cluster has all objects and the latest events.
type cluster struct {
	mutex   sync.Mutex
	random  *rand.Rand
	things  []thing
	version int
	left    int
	nextUID uint64
	log     []event
	// oldest is the version of the first event in the log.
	oldest int
}

func newCluster(seed uint64, objects, events int) (*cluster, error) {
	c := &cluster{random: rand.New(rand.NewPCG(seed, 7)), version: 1000, left: events, oldest: 1001}
	for _, pod := range corpus.Pods(seed, objects) {
		encoded, err := json.Marshal(pod)
		if err != nil {
			return nil, err
		}
		head, rest, _ := bytes.Cut(encoded, []byte(`"uid":"`))
		_, rest, _ = bytes.Cut(rest, []byte(`"resourceVersion":"`))
		_, tail, _ := bytes.Cut(rest, []byte(`"generation":1`))
		c.things = append(c.things, thing{head: append(head, `"uid":"`...), tail: bytes.Clone(tail)})
	}
	for i := range c.things {
		c.happen(i)
	}
	c.left = events
	return c, nil
}

// write appends the JSON of an object at one of its versions.
func (t *thing) write(to []byte, s state) []byte {
	to = append(to, t.head...)
	to = fmt.Appendf(to, "00000000-0000-4000-8000-%012x", s.uid)
	to = append(to, `","resourceVersion":"`...)
	to = strconv.AppendInt(to, int64(s.version), 10)
	to = append(to, `","generation":`...)
	to = strconv.AppendInt(to, int64(s.generation), 10)
	return append(to, t.tail...)
}

// happen changes one object. The caller holds the mutex, or has not yet shared the cluster.
func (c *cluster) happen(i int) {
	t := &c.things[i]
	c.version++
	c.left--
	typ := "MODIFIED"
	switch {
	case t.state.generation == 0:
		typ = "ADDED"
		c.nextUID++
		t.state = state{uid: c.nextUID, version: c.version, generation: 1}
	case c.random.IntN(40) == 0:
		typ = "DELETED"
		t.state.version = c.version
	default:
		t.state.version, t.state.generation = c.version, t.state.generation+1
	}
	c.log = append(c.log, event{typ, i, t.state})
	if typ == "DELETED" {
		t.state.generation = 0
	}
	if len(c.log) > 2*window {
		c.log = append(c.log[:0:0], c.log[len(c.log)-window:]...)
		c.oldest = c.version - window + 1
	}
}

// next returns a few of the events after a version. A call without pending events creates new ones.
func (c *cluster) next(after int) (events []event, isGone, isOver bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if after < c.oldest-1 {
		return nil, true, false
	}
	for range 64 {
		if after+64 <= c.version || c.left <= 0 {
			break
		}
		c.happen(c.random.IntN(len(c.things)))
	}
	from := after - c.oldest + 1
	events = append([]event(nil), c.log[from:min(from+64, len(c.log))]...)
	return events, false, len(events) == 0 && c.left <= 0
}

// meanwhile changes objects while no watch is open.
func (c *cluster) meanwhile() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	n := c.random.IntN(2000)
	if c.random.IntN(10) == 0 {
		n = 3 * window
	}
	for range min(n, c.left) {
		c.happen(c.random.IntN(len(c.things)))
	}
}

// forget drops the log, as a restarted server does.
func (c *cluster) forget() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.log, c.oldest = nil, c.version+1
}

// snapshot returns the current state of all objects.
func (c *cluster) snapshot() (states []event, version int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for i := range c.things {
		if c.things[i].state.generation > 0 {
			states = append(states, event{"ADDED", i, c.things[i].state})
		}
	}
	return states, c.version
}

func (c *cluster) remaining() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.left
}

// oneIn returns true with a probability of 1/n.
func (c *cluster) oneIn(n int) bool { return c.dice(n) == 0 }

func (c *cluster) dice(n int) int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.random.IntN(n)
}
