package oarlock

import (
	"time"

	"oarlock.dev/sdk/internal/host"
	queue "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_work_queue"
)

// WorkKey is a key of the plugin's work queue: it names the object to reconcile. Keys come from
// [Plugin.Enqueue], schedules, listers that wake, and [AddKey].
type WorkKey struct {
	// Kind is usually the name of a subscription.
	Kind string
	ObjectKey
}

// Result says when to call again.
type Result struct {
	// RequeueAfter is the delay after which the host calls again with this key, up to 49 days. 0 means that
	// no further call is needed.
	RequeueAfter time.Duration
}

// Reconciler makes the actual state match the state that the object named by a key asks for. Calls for one
// key never overlap. After an error the host calls again with back-off; see [RetryAfter] and [Terminal].
type Reconciler interface {
	Reconcile(WorkKey) (Result, error)
}

// ReconcilerFunc is a function as a Reconciler.
type ReconcilerFunc func(WorkKey) (Result, error)

// Reconcile calls the function.
func (f ReconcilerFunc) Reconcile(key WorkKey) (Result, error) { return f(key) }

// AddKey adds a key to the work queue. A key that waits already is not added twice. A key that is being
// reconciled is reconciled once more afterwards.
func AddKey(key WorkKey) error {
	return fault(host.Current().Queue.Add(key.wit()))
}

// AddKeyAfter adds a key after a delay. Of two delays for one key, the one that ends first counts.
func AddKeyAfter(key WorkKey, delay time.Duration) error {
	return fault(host.Current().Queue.AddAfter(key.wit(), milliseconds(delay)))
}

func (k WorkKey) wit() queue.WorkKey {
	return queue.WorkKey{Kind: k.Kind, Object: k.ObjectKey.wit()}
}
