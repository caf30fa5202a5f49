package oarlock

import (
	"iter"
	"time"

	"oarlock.dev/sdk/internal/host"
	metadata "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_metadata"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
)

// Read declares a lister.
type Read struct {
	// Name is unique in the plugin's listers. Empty means the resource's plural name.
	Name   string
	Target GroupVersionResource
	// Namespace restricts the lister to one namespace. Empty means all that the account may read.
	Namespace string
	// MetadataOnly says that the plugin needs apiVersion, kind and metadata only.
	MetadataOnly bool
	// Wakes says that a change of what the last run of the Reconciler for a key read through this lister
	// adds that key again.
	Wakes bool
	// Indices are the lister's indices. Their names are unique in the plugin.
	Indices Indices
}

// Indices are indices by their names, as cache.Indexers in client-go.
type Indices map[string]IndexSource

// IndexSource says by which values an index finds an object.
type IndexSource struct {
	source metadata.IndexSource
}

// ByLabel indexes objects by the value of a label.
func ByLabel(label string) IndexSource {
	return IndexSource{metadata.MakeIndexSourceLabel(label)}
}

// ByOwnerUID indexes objects by the uids of their owners.
func ByOwnerUID() IndexSource {
	return IndexSource{metadata.MakeIndexSourceOwnerUid()}
}

// ByPointer indexes objects by the scalar at a JSON pointer, in which * stands for every element of a list.
func ByPointer(pointer string) IndexSource {
	return IndexSource{metadata.MakeIndexSourcePointer(pointer)}
}

// Lister reads a resource from the cache, which all plugins share; no request is sent. The cache may be
// behind the plugin's own writes: see [Lister.WaitUntilSeen].
//
// Of each object it reads what T asks for: the fields with the tag `pointer`, nothing but the ObjectRef if
// T is struct{}, else the whole object.
type Lister[T any] struct {
	name      string
	namespace string
	view      view
}

// NewLister declares a lister and its indices, in setup.
func NewLister[T any](p *Plugin, r Read) *Lister[T] {
	if r.Name == "" {
		r.Name = r.Target.Plural
	}
	p.declared.read(r)
	return &Lister[T]{name: r.Name, view: p.view(viewOf[T]())}
}

// As returns a lister of the same objects that reads other parts of them.
func As[T, U any](l *Lister[U]) *Lister[T] {
	return &Lister[T]{name: l.name, namespace: l.namespace, view: viewOf[T]()}
}

// InNamespace returns a lister whose List and ByIndex return objects in this namespace only.
func (l *Lister[T]) InNamespace(namespace string) *Lister[T] {
	limited := *l
	limited.namespace = namespace
	return &limited
}

// Get returns one object; ErrNotFound if the cache has no object of that name.
func (l *Lister[T]) Get(key ObjectKey) (Object[T], error) {
	row, err := host.Current().Cache.Get(l.name, key.wit(), l.view.projection())
	if err != nil {
		return Object[T]{}, fault(err)
	}
	return l.object(row), nil
}

// List returns the objects whose labels match a selector in the syntax of Kubernetes; all for the empty
// one. It reads a page at a time, and ends after an error.
func (l *Lister[T]) List(labelSelector string) iter.Seq2[Object[T], error] {
	return pages(l.object, func(page types.PageRequest) (types.Page, error) {
		return host.Current().Cache.List(l.name, namespaces(l.namespace), labelSelector, l.view.projection(), page)
	})
}

// ByIndex returns the objects that have a value in an index.
func (l *Lister[T]) ByIndex(index, value string) iter.Seq2[Object[T], error] {
	return pages(l.object, func(page types.PageRequest) (types.Page, error) {
		return host.Current().Cache.ByIndex(index, value, namespaces(l.namespace), l.view.projection(), page)
	})
}

// IndexValues returns the values in an index of all objects that the account may read, sorted. The
// namespace of the lister does not count.
func (l *Lister[T]) IndexValues(index string) ([]string, error) {
	values, err := host.Current().Cache.IndexValues(index)
	return values, fault(err)
}

// HasSynced returns whether the cache contains the whole first list.
func (l *Lister[T]) HasSynced() (bool, error) {
	synced, err := host.Current().Cache.HasSynced(l.name)
	return synced, fault(err)
}

// WaitUntilSeen waits until the cache has processed a resourceVersion that a write of this plugin returned,
// or a later one: at most 5 s, then it returns ErrTimeout. The wait counts towards the call's deadline.
func (l *Lister[T]) WaitUntilSeen(resourceVersion string, timeout time.Duration) error {
	return fault(host.Current().Cache.WaitUntilSeen(l.name, resourceVersion, milliseconds(timeout)))
}

func (l *Lister[T]) object(row types.Row) Object[T] {
	return objectOf[T](row, l.view)
}

func objectOf[T any](row types.Row, v view) Object[T] {
	return Object[T]{ObjectRef: refOf(row.Object), source: &answered{v.pointers, row}}
}

// pages returns the objects of all pages.
func pages[T any](object func(types.Row) Object[T], fetch func(types.PageRequest) (types.Page, error)) iter.Seq2[Object[T], error] {
	return func(yield func(Object[T], error) bool) {
		var request types.PageRequest
		for {
			page, err := fetch(request)
			if err != nil {
				yield(Object[T]{}, fault(err))
				return
			}
			for _, row := range page.Rows {
				if !yield(object(row), nil) {
					return
				}
			}
			if page.ContinueToken == "" {
				return
			}
			request.ContinueToken = page.ContinueToken
		}
	}
}
