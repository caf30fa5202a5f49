package oarlockctrl

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	oarlock "oarlock.dev/sdk"
)

// controller is one of controller-runtime's, with the host's work queue.
type controller struct {
	ctrl.Controller
	name string
	// isStarted is closed when its sources have started.
	isStarted chan struct{}
}

type newQueue = func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request]

// newController gives a controller the host's work queue. The type of controllers is internal to
// controller-runtime, and manager.Add cannot choose their queue, so the exported field is set by
// reflection.
func newController(m *hosted, runnable manager.Runnable) (*controller, error) {
	made, ok := runnable.(ctrl.Controller)
	if !ok {
		return nil, fmt.Errorf("%T is no controller of reconcile.Requests: a plugin cannot run anything else between calls", runnable)
	}
	fields := reflect.ValueOf(runnable).Elem()
	name, queue := fields.FieldByName("Name"), fields.FieldByName("NewQueue")
	if !name.IsValid() || !queue.IsValid() {
		return nil, fmt.Errorf("%T has no Name and NewQueue: this version of controller-runtime is not supported", runnable)
	}
	c := &controller{Controller: made, name: name.String(), isStarted: make(chan struct{})}
	if _, exists := m.controllers[c.name]; exists {
		return nil, fmt.Errorf("two controllers are named %q", c.name)
	}
	queue.Set(reflect.ValueOf(newQueue(func(string, workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return &keys{controller: c}
	})))
	return c, nil
}

// start starts the sources, which add their handlers to the informers.
func (c *controller) start(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- c.Start(ctx) }()
	select {
	case <-c.isStarted:
		return nil
	case err := <-failed:
		return err
	}
}

// keys is the host's work queue, as a controller sees it.
type keys struct {
	controller *controller
	once       sync.Once
}

var _ workqueue.TypedRateLimitingInterface[reconcile.Request] = &keys{}

func (q *keys) key(request reconcile.Request) oarlock.WorkKey {
	object := oarlock.ObjectKey{Namespace: request.Namespace, Name: request.Name}
	return oarlock.WorkKey{Kind: q.controller.name, ObjectKey: object}
}

// Add adds a key.
func (q *keys) Add(request reconcile.Request) { q.added(oarlock.AddKey(q.key(request))) }

// AddAfter adds a key after a delay.
func (q *keys) AddAfter(request reconcile.Request, delay time.Duration) {
	q.added(oarlock.AddKeyAfter(q.key(request), delay))
}

// AddRateLimited adds a key: the host limits the rate.
func (q *keys) AddRateLimited(request reconcile.Request) { q.Add(request) }

// added notes an error: the queue of controller-runtime has none to return.
func (q *keys) added(err error) {
	if err != nil {
		failedAdds = append(failedAdds, err)
	}
}

// failedAdds are the errors of the call that is being handled.
var failedAdds []error

// Get says that the queue is shut down: no worker of the controller runs, since the host calls the
// reconciler. That it is called says that the sources have started.
func (q *keys) Get() (request reconcile.Request, shutdown bool) {
	q.once.Do(func() { close(q.controller.isStarted) })
	return request, true
}

// Len returns 0: only the host knows.
func (q *keys) Len() int { return 0 }

// Done does nothing: the host knows when a call ends.
func (q *keys) Done(reconcile.Request) {}

// Forget does nothing: the host forgets the failures of a key that succeeds.
func (q *keys) Forget(reconcile.Request) {}

// NumRequeues returns 0: only the host knows.
func (q *keys) NumRequeues(reconcile.Request) int { return 0 }

// ShutDown does nothing.
func (q *keys) ShutDown() {}

// ShutDownWithDrain does nothing.
func (q *keys) ShutDownWithDrain() {}

// ShuttingDown returns false.
func (q *keys) ShuttingDown() bool { return false }
