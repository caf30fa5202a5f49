package oarlockctrl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	oarlock "oarlock.dev/sdk"
)

// informers are the kinds that sources watch. Each becomes a subscription and a lister of the same name.
type informers struct {
	*hosted
	namespace string

	mutex  sync.Mutex
	byKind map[schema.GroupVersionKind]*informer
	isDone bool
}

var _ cache.Cache = &informers{}

// informer is one kind.
type informer struct {
	kind         schema.GroupVersionKind
	target       oarlock.GroupVersionResource
	metadataOnly bool
	example      ctrlclient.Object
	handlers     []toolscache.ResourceEventHandler
	indices      map[string]ctrlclient.IndexerFunc
	lister       *oarlock.Lister[json.RawMessage]
}

// GetInformer returns the informer of a kind. In setup it declares that the kind is watched.
func (i *informers) GetInformer(_ context.Context, obj ctrlclient.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	kind, err := apiutil.GVKForObject(obj, i.scheme)
	if err != nil {
		return nil, err
	}
	return i.informer(kind, obj)
}

// GetInformerForKind returns the informer of a kind. In setup it declares that the kind is watched.
func (i *informers) GetInformerForKind(_ context.Context, kind schema.GroupVersionKind, _ ...cache.InformerGetOption) (cache.Informer, error) {
	obj, err := i.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	return i.informer(kind, obj.(ctrlclient.Object))
}

func (i *informers) informer(kind schema.GroupVersionKind, obj ctrlclient.Object) (*informer, error) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	_, metadataOnly := obj.(*metav1.PartialObjectMetadata)
	found, ok := i.byKind[kind]
	switch {
	case ok:
		found.metadataOnly = found.metadataOnly && metadataOnly
		if !metadataOnly {
			found.example = obj
		}
		return found, nil
	case i.isDone:
		return nil, fmt.Errorf("%v is not watched: a plugin declares what it watches when it is loaded", kind)
	}
	found = &informer{
		kind: kind, target: i.mapper.resource(kind), metadataOnly: metadataOnly, example: obj,
		indices: map[string]ctrlclient.IndexerFunc{},
	}
	i.byKind[kind] = found
	return found, nil
}

// RemoveInformer returns an error: a plugin watches what it declared.
func (i *informers) RemoveInformer(context.Context, ctrlclient.Object) error {
	return errors.New("a plugin cannot end a watch that it declared")
}

// Start returns: the host starts the watches.
func (i *informers) Start(context.Context) error { return nil }

// WaitForCacheSync returns true: the host makes no call before the caches have synced.
func (i *informers) WaitForCacheSync(context.Context) bool { return true }

// IndexField notes an index. A list by it reads all objects in the namespace and calls the function for
// each.
func (i *informers) IndexField(ctx context.Context, obj ctrlclient.Object, field string, extract ctrlclient.IndexerFunc) error {
	found, err := i.GetInformer(ctx, obj)
	if err != nil {
		return err
	}
	found.(*informer).indices[field] = extract
	return nil
}

// declare declares the subscriptions and listers, by name.
func (i *informers) declare() {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.isDone = true
	var all []*informer
	for _, found := range i.byKind {
		all = append(all, found)
	}
	sort.Slice(all, func(a, b int) bool { return all[a].target.String() < all[b].target.String() })
	for _, found := range all {
		name := strings.TrimSuffix(found.target.Plural+"."+found.target.Group, ".")
		found.lister = oarlock.NewLister[json.RawMessage](i.plugin, oarlock.Read{
			Name: name, Target: found.target, Namespace: i.namespaceFor(found.kind), MetadataOnly: found.metadataOnly,
		})
		if len(found.handlers) == 0 {
			continue
		}
		oarlock.Watch(i.plugin, oarlock.Subscription{
			Name: name, Target: found.target, Namespace: i.namespaceFor(found.kind), MetadataOnly: found.metadataOnly,
		}, notifications{i.hosted, found})
	}
}

func (i *informers) namespaceFor(kind schema.GroupVersionKind) string {
	if i.mapper.isClusterScoped(kind.GroupKind()) {
		return ""
	}
	return i.namespace
}

// notifications gives the host's notifications to the handlers of the sources.
type notifications struct {
	*hosted
	*informer
}

func (n notifications) OnAdd(added oarlock.Added[json.RawMessage]) error {
	obj, err := n.decoded(added.Object)
	if err != nil {
		return err
	}
	return n.each(func(handler toolscache.ResourceEventHandler) { handler.OnAdd(obj, added.InInitialList) })
}

func (n notifications) OnUpdate(updated oarlock.Updated[json.RawMessage]) error {
	before, err := n.decoded(updated.Old)
	if err != nil {
		return err
	}
	after, err := n.decoded(updated.New)
	if err != nil {
		return err
	}
	return n.each(func(handler toolscache.ResourceEventHandler) { handler.OnUpdate(before, after) })
}

func (n notifications) OnDelete(deleted oarlock.Deleted[json.RawMessage]) error {
	obj, err := n.decoded(deleted.Object)
	if err != nil {
		return err
	}
	return n.each(func(handler toolscache.ResourceEventHandler) {
		if deleted.FinalStateUnknown {
			handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: deleted.Key().String(), Obj: obj})
		} else {
			handler.OnDelete(obj)
		}
	})
}

func (n notifications) decoded(object oarlock.Object[json.RawMessage]) (ctrlclient.Object, error) {
	text, err := object.JSON()
	if err != nil {
		return nil, err
	}
	obj := n.example.DeepCopyObject().(ctrlclient.Object)
	if err := decodeInto(text, obj); err != nil {
		return nil, oarlock.Terminal(err)
	}
	return obj, nil
}

// each calls the handlers, and returns the errors of the keys that they added.
func (n notifications) each(call func(toolscache.ResourceEventHandler)) error {
	failedAdds = nil
	n.client.begin()
	for _, handler := range n.handlers {
		call(handler)
	}
	return errors.Join(failedAdds...)
}

// AddEventHandler adds a handler.
func (i *informer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler; there is no resync.
func (i *informer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, _ time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// AddEventHandlerWithOptions adds a handler.
func (i *informer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	i.handlers = append(i.handlers, handler)
	return synced{}, nil
}

// RemoveEventHandler returns an error: a plugin's handlers are there as long as it is.
func (i *informer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	return errors.New("a plugin cannot remove a handler")
}

// AddIndexers returns an error: see IndexField.
func (i *informer) AddIndexers(toolscache.Indexers) error {
	return errors.New("indexers of client-go are not supported; use the manager's GetFieldIndexer")
}

// HasSynced returns true.
func (i *informer) HasSynced() bool { return true }

// HasSyncedChecker returns what is done.
func (i *informer) HasSyncedChecker() toolscache.DoneChecker { return synced{} }

// IsStopped returns false.
func (i *informer) IsStopped() bool { return false }

// synced is a handler that has received the first list: the host delivers it when the plugin serves.
type synced struct{}

func (synced) HasSynced() bool { return true }

func (synced) HasSyncedChecker() toolscache.DoneChecker { return synced{} }

func (synced) Name() string { return "the host's cache" }

func (synced) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}
