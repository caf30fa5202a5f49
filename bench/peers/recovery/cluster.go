package recovery

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// cluster has the objects and all events. Objects are changed, deleted and created again.
type cluster struct {
	mutex   sync.Mutex
	changed *sync.Cond
	random  *rand.Rand
	version int
	// objects by index: their versions, 0 for those that are not there.
	objects []int
	uids    []int
	log     []event
	calmAt  time.Time
	ready   int
	ours    []outcome
}

// event is a change; its version is its place in the log, from 1.
type event struct {
	typ        string
	index, uid int
	version    int
}

func newCluster(seed uint64, objects int) *cluster {
	c := &cluster{random: rand.New(rand.NewPCG(seed, 7)), objects: make([]int, objects), uids: make([]int, objects)}
	c.changed = sync.NewCond(&c.mutex)
	for i := range objects {
		c.happen(i)
	}
	return c
}

// happen changes one object. The caller holds the mutex, or is the only user of the cluster.
func (c *cluster) happen(i int) {
	c.version++
	typ := "MODIFIED"
	switch {
	case c.objects[i] == 0:
		typ, c.uids[i], c.objects[i] = "ADDED", c.version, c.version
	case c.random.IntN(20) == 0:
		typ, c.objects[i] = "DELETED", 0
	default:
		c.objects[i] = c.version
	}
	c.log = append(c.log, event{typ, i, c.uids[i], c.version})
}

// write has so much happen in a second, for so long.
func (c *cluster) write(rate int, duration time.Duration) {
	ticker := time.NewTicker(time.Second / time.Duration(rate))
	defer ticker.Stop()
	for end := time.Now().Add(duration); time.Now().Before(end); <-ticker.C {
		c.mutex.Lock()
		c.happen(c.random.IntN(len(c.objects)))
		c.mutex.Unlock()
		c.changed.Broadcast()
	}
	c.mutex.Lock()
	c.calmAt = time.Now()
	c.mutex.Unlock()
}

// sum is what the versions of all objects come to: who has the same has the same objects.
func (c *cluster) sum() int {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	sum := 0
	for _, version := range c.objects {
		sum += version
	}
	return sum
}

func (c *cluster) calmFor() time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return time.Since(c.calmAt)
}

func (c *cluster) isReady() {
	c.mutex.Lock()
	c.ready++
	c.mutex.Unlock()
	c.changed.Broadcast()
}

// wait returns when something is so.
func (c *cluster) wait(isSo func() bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for !isSo() {
		c.changed.Wait()
	}
}

// after returns what happened after a version.
func (c *cluster) after(version int) []event {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return append([]event(nil), c.log[min(version, len(c.log)):]...)
}

func (c *cluster) snapshot() (all []event, version int) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for i, version := range c.objects {
		if version > 0 {
			all = append(all, event{"ADDED", i, c.uids[i], version})
		}
	}
	return all, c.version
}

func (e event) json() string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"object-%03d","namespace":"default",`+
		`"uid":"00000000-0000-4000-8000-%012x","resourceVersion":"%d"},"data":{"a":"b"}}`, e.index, e.uid, e.version)
}
