package oarlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"oarlock.dev/sdk/internal/host"
	client "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_client"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	wit "oarlock.dev/sdk/internal/wit/types"
)

// rowsOfAPage is the number of rows of a page of List: what the host takes if it is asked for none.
const rowsOfAPage uint32 = 500

// Client sends requests about a resource to the API server, as the plugin's ServiceAccount. It takes
// milliseconds; a [Lister] is cheaper from the second read on. The host never repeats a write by itself.
type Client[T any] struct {
	plugin      *Plugin
	target      GroupVersionResource
	namespace   string
	subresource string
	view        view
}

// Written is the object after a write.
type Written struct {
	// Namespace is empty for cluster-scoped objects.
	Namespace, Name, UID string
	// ResourceVersion is for [Lister.WaitUntilSeen].
	ResourceVersion string
}

// Preconditions are conditions of a write: if one does not hold, it returns ErrConflict. Empty ones hold.
// See [ObjectRef.Unchanged].
type Preconditions struct {
	UID, ResourceVersion string
}

// ApplyOptions are options of [Client.Apply].
type ApplyOptions struct {
	// Force takes over fields of other managers; without it, such fields return ErrConflict.
	Force bool
	// Preconditions with a UID require that the object exists.
	Preconditions
}

// DeleteOptions are options of [Client.Delete].
type DeleteOptions struct {
	// Propagation says what happens to the dependents. The zero value deletes them in the background.
	Propagation Propagation
	// GracePeriodSeconds replaces the resource's own grace period. May be nil.
	GracePeriodSeconds *uint32
	Preconditions
}

// Propagation says what the garbage collector does with the dependents of a deleted object.
type Propagation uint8

// The propagations.
const (
	Background = Propagation(client.Propagation_Background)
	Foreground = Propagation(client.Propagation_Foreground)
	Orphan     = Propagation(client.Propagation_Orphan)
)

// Patch is a change of an object: see [MergePatch], [JSONPatch] and [StrategicMergePatch].
type Patch struct {
	kind uint8
	body any
}

// MergePatch returns a JSON merge patch (RFC 7396).
func MergePatch(body any) Patch { return Patch{client.PatchKind_MergePatch, body} }

// JSONPatch returns a JSON patch (RFC 6902): body is a list of operations.
func JSONPatch(body any) Patch { return Patch{client.PatchKind_JsonPatch, body} }

// StrategicMergePatch returns a strategic merge patch, for built-in resources.
func StrategicMergePatch(body any) Patch { return Patch{client.PatchKind_StrategicMergePatch, body} }

// NewClient declares requests with these verbs, in all namespaces, and returns a client for them. The
// declaration is for `oarlock rbac`; it grants nothing by itself.
func NewClient[T any](p *Plugin, target GroupVersionResource, verbs ...string) *Client[T] {
	c := &Client[T]{plugin: p, target: target, view: p.view(viewOf[T]())}
	c.declare(verbs)
	return c
}

// InNamespace returns a client whose List returns objects in this namespace only.
func (c *Client[T]) InNamespace(namespace string) *Client[T] {
	limited := *c
	limited.namespace = namespace
	return &limited
}

// Status returns a client for the subresource status. In setup, it also declares requests with these verbs.
func (c *Client[T]) Status(verbs ...string) *Client[T] {
	return c.Subresource("status", verbs...)
}

// Subresource returns a client for a subresource. In setup, it also declares requests with these verbs. Only
// whole objects can be listed, created and deleted: List, Create and Delete return ErrInvalid then.
func (c *Client[T]) Subresource(name string, verbs ...string) *Client[T] {
	sub := *c
	sub.subresource = name
	sub.declare(verbs)
	return &sub
}

// Get returns the current object; ErrNotFound if it does not exist.
func (c *Client[T]) Get(key ObjectKey) (Object[T], error) {
	text, err := host.Current().Client.Get(c.target.wit(), key.wit(), c.subresource)
	if err != nil {
		return Object[T]{}, fault(err)
	}
	var object struct {
		Metadata struct{ UID, ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		return Object[T]{}, fmt.Errorf("%v %v is not JSON: %w", c.target, key, err)
	}
	metadata := object.Metadata
	ref := types.ObjectRef{Namespace: key.Namespace, Name: key.Name, Uid: metadata.UID, ResourceVersion: metadata.ResourceVersion}
	return objectOf[T](types.Row{Object: ref, Json: wit.Some(text)}, c.view), nil
}

// List returns the objects that match a label selector and a field selector, as the API server has them
// now; empty selectors match all. It reads a page at a time, smaller ones of large objects, and ends after an
// error. ErrGone means that the API server forgot the state that the pages show: begin again.
func (c *Client[T]) List(labelSelector, fieldSelector string) iter.Seq2[Object[T], error] {
	if err := c.ensureWhole("listed"); err != nil {
		return func(yield func(Object[T], error) bool) { yield(Object[T]{}, err) }
	}
	object := func(row types.Row) Object[T] { return objectOf[T](row, c.view) }
	limit := rowsOfAPage
	return pages(object, func(page types.PageRequest) (types.Page, error) {
		for {
			page.Limit = limit
			listed, err := host.Current().Client.List(
				c.target.wit(), namespaces(c.namespace), labelSelector, fieldSelector, c.view.projection(), page)
			if limit == 1 || !errors.Is(fault(err), ErrLimitExceeded) {
				return listed, err
			}
			// The objects of the page are too large together.
			limit /= 2
		}
	})
}

// Create creates an object from what encoding/json makes of it. Namespace is empty for cluster-scoped
// objects.
func (c *Client[T]) Create(namespace string, object any) (Written, error) {
	if err := c.ensureWhole("created"); err != nil {
		return Written{}, err
	}
	text, err := json.Marshal(object)
	if err != nil {
		return Written{}, err
	}
	return writtenIn(namespace)(host.Current().Client.Create(c.target.wit(), namespace, string(text)))
}

// Apply applies an object, server-side, with the plugin's name as field manager.
func (c *Client[T]) Apply(key ObjectKey, object any, o ApplyOptions) (Written, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return Written{}, err
	}
	return writtenIn(key.Namespace)(host.Current().Client.Apply(
		c.target.wit(), key.wit(), c.subresource, string(text), o.Force, o.Preconditions.wit()))
}

// Patch changes an object. See [ObjectRef.Unchanged] for the preconditions.
func (c *Client[T]) Patch(key ObjectKey, patch Patch, preconditions Preconditions) (Written, error) {
	body, err := json.Marshal(patch.body)
	if err != nil {
		return Written{}, err
	}
	return writtenIn(key.Namespace)(host.Current().Client.Patch(
		c.target.wit(), key.wit(), c.subresource, patch.kind, string(body), preconditions.wit()))
}

// Replace replaces an object by a changed copy of what [Client.Get] or [Client.List] returned to this
// instance, with its resourceVersion. The object must be whole, such as a map[string]any: what a struct
// leaves out is deleted.
func (c *Client[T]) Replace(key ObjectKey, object any) (Written, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return Written{}, err
	}
	return writtenIn(key.Namespace)(host.Current().Client.Replace(
		c.target.wit(), key.wit(), c.subresource, string(text)))
}

// Scale sets the number of replicas through the subresource scale, which [Client.Subresource] declares.
func (c *Client[T]) Scale(key ObjectKey, replicas int32) (Written, error) {
	scale := map[string]any{"spec": map[string]any{"replicas": replicas}}
	return c.Subresource("scale").Patch(key, MergePatch(scale), Preconditions{})
}

// Delete deletes an object; ErrNotFound if it does not exist. An object with finalizers stays until they
// are removed.
func (c *Client[T]) Delete(key ObjectKey, o DeleteOptions) error {
	if err := c.ensureWhole("deleted"); err != nil {
		return err
	}
	grace := wit.None[uint32]()
	if o.GracePeriodSeconds != nil {
		grace = wit.Some(*o.GracePeriodSeconds)
	}
	return fault(host.Current().Client.Delete(
		c.target.wit(), key.wit(), uint8(o.Propagation), grace, o.Preconditions.wit()))
}

// Without this, c.Status().Delete(…) would delete the object.
func (c *Client[T]) ensureWhole(whatHappens string) error {
	if c.subresource == "" {
		return nil
	}
	plural := c.target.Plural
	return &Error{Kind: ErrInvalid, Message: fmt.Sprintf(
		"a client of %s/%s was used where %s are %s: only whole objects can be", plural, c.subresource, plural, whatHappens)}
}

func (c *Client[T]) declare(verbs []string) {
	if len(verbs) > 0 {
		c.plugin.Request(Request{Target: c.target, Subresource: c.subresource, Verbs: verbs})
	}
}

func (p Preconditions) wit() client.Preconditions {
	option := func(text string) host.Text {
		if text == "" {
			return wit.None[string]()
		}
		return wit.Some(text)
	}
	return client.Preconditions{Uid: option(p.UID), ResourceVersion: option(p.ResourceVersion)}
}

// writtenIn converts the result of a write in a namespace, which the host's answer does not repeat.
func writtenIn(namespace string) func(client.Written, error) (Written, error) {
	return func(w client.Written, err error) (Written, error) {
		if err != nil {
			return Written{}, fault(err)
		}
		return Written{namespace, w.Name, w.Uid, w.ResourceVersion}, nil
	}
}
