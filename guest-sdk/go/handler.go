package oarlock

import (
	"slices"

	"oarlock.dev/sdk/internal/host"
	event "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_event"
	handler "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_handler"
	metadata "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_metadata"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
)

// Handler handles the notifications of a subscription, as ResourceEventHandler does in client-go. Calls for
// one object never overlap and keep their order: an add, then updates whose old state is the new state of
// the call before, then a delete.
//
// After an error the host repeats the call with back-off, merged with changes that happen meanwhile; see
// [RetryAfter] and [Terminal]. So handlers must be idempotent.
type Handler[T any] interface {
	// OnAdd is called for an object that exists, was created, or began to match.
	OnAdd(Added[T]) error
	// OnUpdate is called for an object that changed, or that a resync delivers again.
	OnUpdate(Updated[T]) error
	// OnDelete is called for an object that was deleted, or ceased to match.
	OnDelete(Deleted[T]) error
}

// HandlerFuncs is a Handler of functions. Each may be nil.
type HandlerFuncs[T any] struct {
	AddFunc    func(Added[T]) error
	UpdateFunc func(Updated[T]) error
	DeleteFunc func(Deleted[T]) error
}

// OnAdd calls AddFunc.
func (f HandlerFuncs[T]) OnAdd(added Added[T]) error {
	if f.AddFunc == nil {
		return nil
	}
	return f.AddFunc(added)
}

// OnUpdate calls UpdateFunc.
func (f HandlerFuncs[T]) OnUpdate(updated Updated[T]) error {
	if f.UpdateFunc == nil {
		return nil
	}
	return f.UpdateFunc(updated)
}

// OnDelete calls DeleteFunc.
func (f HandlerFuncs[T]) OnDelete(deleted Deleted[T]) error {
	if f.DeleteFunc == nil {
		return nil
	}
	return f.DeleteFunc(deleted)
}

// Added is the notification of an add, with the object's state.
type Added[T any] struct {
	Object[T]
	Subscription string
	// InInitialList is true for an object of the first list, of a replay to a new instance, or that the
	// plugin's account may see only now.
	InInitialList bool
}

// Updated is the notification of an update.
type Updated[T any] struct {
	Old, New     Object[T]
	Subscription string
}

// Deleted is the notification of a delete, with the last known state.
type Deleted[T any] struct {
	Object[T]
	Subscription string
	// FinalStateUnknown is true if the host missed the delete: the last known state may be stale.
	FinalStateUnknown bool
}

// Watch declares a subscription, whose notifications the handler receives.
//
// If T is a struct with fields that have the tag `pointer`, these are the fields that the plugin needs: the
// host skips updates that change none of them, and notifications carry their values. Otherwise every update
// is delivered, and T is the whole object: see [Object.Value].
func Watch[T any](p *Plugin, s Subscription, h Handler[T]) {
	if s.Name == "" {
		s.Name = s.Target.Plural
	}
	view := p.view(viewOf[T]())
	pointers := slices.Clone(view.pointers)
	for _, pointer := range s.Fields {
		if !slices.Contains(pointers, pointer) {
			pointers = append(pointers, pointer)
		}
	}
	p.declared.subscribe(s, pointers, metadata.MakeEnqueueNothing())
	if _, again := p.watches[s.Name]; again {
		p.declared.fail(errorf("two subscriptions are named %q", s.Name))
	}
	if h == nil {
		p.declared.fail(errorf("subscription %q has no handler", s.Name))
	}
	if p.watches == nil {
		p.watches = map[string]watch{}
	}
	p.watches[s.Name] = typedWatch[T]{h, pointers}
}

// watch is a subscription with its handler, of any type.
type watch interface {
	onAdd(handler.Added) error
	onUpdate(handler.Updated) error
	onDelete(handler.Deleted) error
}

type typedWatch[T any] struct {
	handler  Handler[T]
	pointers []string
}

func (w typedWatch[T]) onAdd(added handler.Added) error {
	return w.handler.OnAdd(Added[T]{
		Object:        w.object(added.Object, event.Version_New, added.Fields),
		Subscription:  added.Subscription,
		InInitialList: added.IsInInitialList,
	})
}

func (w typedWatch[T]) onUpdate(updated handler.Updated) error {
	old := updated.Object
	old.ResourceVersion = updated.OldResourceVersion
	old.Uid = updated.OldUid.SomeOr(old.Uid)
	return w.handler.OnUpdate(Updated[T]{
		Old:          w.object(old, event.Version_Old, updated.OldFields),
		New:          w.object(updated.Object, event.Version_New, updated.Fields),
		Subscription: updated.Subscription,
	})
}

func (w typedWatch[T]) onDelete(deleted handler.Deleted) error {
	return w.handler.OnDelete(Deleted[T]{
		Object:            w.object(deleted.Object, event.Version_Old, deleted.Fields),
		Subscription:      deleted.Subscription,
		FinalStateUnknown: deleted.FinalStateUnknown,
	})
}

func (w typedWatch[T]) object(ref types.ObjectRef, version uint8, values []host.Text) Object[T] {
	source := &notified{version: version, call: currentCall}
	if len(values) == len(w.pointers) {
		source.pointers, source.values = w.pointers, values
	}
	return Object[T]{ObjectRef: refOf(ref), source: source}
}

func refOf(ref types.ObjectRef) ObjectRef {
	return ObjectRef{ObjectKey{ref.Namespace, ref.Name}, ref.Uid, ref.ResourceVersion}
}
