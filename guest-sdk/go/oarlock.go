// Package oarlock is the SDK for Oarlock plugins in Go.
//
// A plugin registers a function that declares what it watches, reads and writes, and what handles it:
//
//	package main
//
//	import (
//		"log/slog"
//
//		oarlock "oarlock.dev/sdk"
//	)
//
//	// Deployment has the fields that the plugin needs.
//	type Deployment struct {
//		Replicas int32 `pointer:"/spec/replicas"`
//	}
//
//	func setup(p *oarlock.Plugin) error {
//		p.Name, p.Version, p.Stateless = "my-plugin", "0.1.0", true
//		oarlock.Watch(p, oarlock.Subscription{
//			Name:   "deployments",
//			Target: oarlock.GVR("apps", "v1", "deployments"),
//		}, oarlock.HandlerFuncs[Deployment]{
//			AddFunc: func(added oarlock.Added[Deployment]) error {
//				deployment, err := added.Value()
//				if err != nil {
//					return err
//				}
//				slog.Info("added", "name", added.Name, "replicas", deployment.Replicas)
//				return nil
//			},
//		})
//		return nil
//	}
//
//	func init() { oarlock.Register(setup) }
//
//	func main() {} // The host calls the exports, never main.
//
// The host owns watches, caches, retries and access. Its contract, the WIT package oarlock:plugin, defines
// the order of notifications, what happens after an error, and the limits.
//
// One instance of a plugin handles one call at a time. A goroutine that outlives the call that started it
// runs only while a later call runs. Functions take no context.Context: a call that exceeds its deadline is
// not canceled, the host ends the instance. There are no files and no network; what a plugin writes to
// standard output is dropped, and package log/slog writes to the host's log.
//
// In a native test (go test), package oarlocktest takes the host's place.
package oarlock

import (
	"fmt"

	"oarlock.dev/sdk/internal/host"
)

// Register registers the plugin, in an init function of package main.
//
// The host calls setup when it loads the component, to learn what the plugin declares, and once in each
// instance, before its first call. Setup reads the configuration with [Config]; the cache and the client do
// not work yet. If it returns an error, the host does not load the plugin, and shows the error to the
// operator.
func Register(setup func(*Plugin) error) {
	if setup == nil {
		panic("oarlock: Register needs a function")
	}
	if !host.Register(&guest{setup: setup}) {
		panic("oarlock: Register was called twice; a component has one plugin")
	}
}

// Plugin is what setup fills in.
type Plugin struct {
	// Name is the component's name. A plugin's file may give the plugin another name.
	Name string
	// Version is the component's version, for status and logs.
	Version string
	// Stateless says that the plugin can lose everything it keeps between calls. The host may then run
	// several instances, and a new version continues with the backlog. Any other plugin has one instance,
	// which receives every object again when it starts.
	Stateless bool
	// Synced is called when all initial adds of a subscription have been handled. May be nil.
	Synced func(Synced) error
	// Reconciler is called with the keys of the work queue. May be nil.
	Reconciler Reconciler

	declared declaration
	watches  map[string]watch
}

// Synced says that all initial adds of a subscription have been handled.
type Synced struct {
	Subscription string
	// Remaining is the number of the plugin's subscriptions that have not synced yet. At 0 the plugin knows
	// every object: it can now delete what belongs to objects that were deleted while it did not run.
	Remaining int
}

// GroupVersionResource names a resource as its REST path does.
type GroupVersionResource struct {
	// Group is empty for the core group.
	Group string
	// Version is such as v1.
	Version string
	// Plural is the resource's plural, lower-case name, such as configmaps.
	Plural string
}

// GVR returns the name of a resource: GVR("apps", "v1", "deployments"), GVR("", "v1", "pods").
func GVR(group, version, plural string) GroupVersionResource {
	return GroupVersionResource{Group: group, Version: version, Plural: plural}
}

// String returns the name as group/version/plural, or version/plural in the core group.
func (r GroupVersionResource) String() string {
	if r.Group == "" {
		return r.Version + "/" + r.Plural
	}
	return r.Group + "/" + r.Version + "/" + r.Plural
}

// ObjectKey names one object within its resource. Namespace is empty for cluster-scoped objects.
type ObjectKey struct {
	Namespace, Name string
}

// String returns the key as namespace/name.
func (k ObjectKey) String() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// ObjectRef identifies one version of one object.
type ObjectRef struct {
	ObjectKey
	// UID differs between an object and a later object of the same name.
	UID string
	// ResourceVersion is opaque: compare it for equality only.
	ResourceVersion string
}

// Key returns the object's key.
func (r ObjectRef) Key() ObjectKey { return r.ObjectKey }

// Unchanged returns the precondition that the object is still this version of it.
func (r ObjectRef) Unchanged() Preconditions {
	return Preconditions{UID: r.UID, ResourceVersion: r.ResourceVersion}
}

// errorf returns an error of setup.
func errorf(format string, arguments ...any) error {
	return fmt.Errorf("oarlock: "+format, arguments...)
}
