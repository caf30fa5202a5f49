// Package host is the border between the SDK and what runs the plugin: the host's functions ([Imports]),
// and the plugin's ([Guest]). Its types are those of the generated bindings.
//
// In a component, the imports are the host's. In a native test they are those of package oarlocktest.
package host

import (
	client "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_client"
	clock "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_clock"
	handler "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_handler"
	metadata "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_metadata"
	reconciler "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_reconciler"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	queue "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_work_queue"
	wit "oarlock.dev/sdk/internal/wit/types"
)

// Text is an optional text.
type Text = wit.Option[string]

// Event reads the object of the notification that is being handled.
type Event interface {
	Field(which uint8, pointer string) (Text, error)
	Fields(which uint8, pointers []string) ([]Text, error)
	JSON(which uint8) (string, error)
}

// Cache reads the cache that all plugins share.
type Cache interface {
	Get(lister string, key types.ObjectKey, projection types.Projection) (types.Row, error)
	List(lister string, namespaces types.Namespaces, selector string, projection types.Projection, page types.PageRequest) (types.Page, error)
	ByIndex(index, value string, namespaces types.Namespaces, projection types.Projection, page types.PageRequest) (types.Page, error)
	IndexValues(index string) ([]string, error)
	HasSynced(lister string) (bool, error)
	WaitUntilSeen(lister, resourceVersion string, timeoutMs uint32) error
}

// Client sends requests to the API server.
type Client interface {
	Get(target types.GroupVersionResource, key types.ObjectKey, subresource string) (string, error)
	List(target types.GroupVersionResource, namespaces types.Namespaces, labels, fields string, projection types.Projection, page types.PageRequest) (types.Page, error)
	Create(target types.GroupVersionResource, namespace, json string) (client.Written, error)
	Apply(target types.GroupVersionResource, key types.ObjectKey, subresource, json string, force bool, preconditions client.Preconditions) (client.Written, error)
	Patch(target types.GroupVersionResource, key types.ObjectKey, subresource string, kind uint8, body string, preconditions client.Preconditions) (client.Written, error)
	Replace(target types.GroupVersionResource, key types.ObjectKey, subresource, json string) (client.Written, error)
	Delete(target types.GroupVersionResource, key types.ObjectKey, propagation uint8, gracePeriod wit.Option[uint32], preconditions client.Preconditions) error
}

// Queue adds keys to the work queue.
type Queue interface {
	Add(key queue.WorkKey) error
	AddAfter(key queue.WorkKey, delayMs uint32) error
}

// Output takes what the plugin reports.
type Output interface {
	Emit(target types.GroupVersionResource, regarding types.ObjectRef, kind string, eventType uint8, reason, note string) error
	CounterAdd(name string, by float64, labels []types.Entry) error
	GaugeSet(name string, value float64, labels []types.Entry) error
	Log(level uint8, message string, pairs []types.Entry)
	Enabled(level uint8) bool
}

// Clock is the host's clock.
type Clock interface {
	Now() clock.Datetime
	ElapsedMs() float64
}

// Imports are the host's functions.
type Imports struct {
	Event  Event
	Cache  Cache
	Client Client
	Queue  Queue
	Output Output
	Clock  Clock
	// Config returns the whole configuration.
	Config func() string
}

// Guest has the plugin's functions.
type Guest interface {
	Describe() (metadata.Description, error)
	OnAdd(handler.Added) error
	OnUpdate(handler.Updated) error
	OnDelete(handler.Deleted) error
	OnSynced(handler.Synced) error
	Reconcile(queue.WorkKey) (reconciler.Outcome, error)
	// Failure returns what the host does about an error of these functions.
	Failure(error) types.Failure
}

// NewGuest returns a plugin with this setup function. The SDK sets it.
var NewGuest func(setup any) Guest

// current are the imports of this process.
var current *Imports

// guest is the registered plugin.
var guest Guest

// Current returns the host's functions. It panics outside of a component and of a test with oarlocktest.
func Current() *Imports {
	if current == nil {
		panic("oarlock: there is no host here: a test calls oarlocktest.New first")
	}
	return current
}

// Install sets the host's functions, and returns the ones before.
func Install(imports *Imports) (before *Imports) {
	before, current = current, imports
	return before
}

// Register sets the plugin, and returns whether it is the first.
func Register(plugin Guest) bool {
	if guest != nil {
		return false
	}
	guest = plugin
	return true
}
