package host

import (
	"oarlock.dev/sdk/internal/collector"
	client "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_client"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	wit "oarlock.dev/sdk/internal/wit/types"
)

// CollectingClient collects garbage before each request, if there is much. A request takes milliseconds, and
// its body may be large, so it looks each time.
type CollectingClient struct {
	Of Client
}

// Get implements [Client].
func (c CollectingClient) Get(target types.GroupVersionResource, key types.ObjectKey, subresource string) (string, error) {
	collector.Collect()
	return c.Of.Get(target, key, subresource)
}

// List implements [Client].
func (c CollectingClient) List(target types.GroupVersionResource, namespaces types.Namespaces, labels, fields string, projection types.Projection, page types.PageRequest) (types.Page, error) {
	collector.Collect()
	return c.Of.List(target, namespaces, labels, fields, projection, page)
}

// Create implements [Client].
func (c CollectingClient) Create(target types.GroupVersionResource, namespace, json string) (client.Written, error) {
	collector.Collect()
	return c.Of.Create(target, namespace, json)
}

// Apply implements [Client].
func (c CollectingClient) Apply(target types.GroupVersionResource, key types.ObjectKey, subresource, json string, force bool, preconditions client.Preconditions) (client.Written, error) {
	collector.Collect()
	return c.Of.Apply(target, key, subresource, json, force, preconditions)
}

// Patch implements [Client].
func (c CollectingClient) Patch(target types.GroupVersionResource, key types.ObjectKey, subresource string, kind uint8, body string, preconditions client.Preconditions) (client.Written, error) {
	collector.Collect()
	return c.Of.Patch(target, key, subresource, kind, body, preconditions)
}

// Replace implements [Client].
func (c CollectingClient) Replace(target types.GroupVersionResource, key types.ObjectKey, subresource, json string) (client.Written, error) {
	collector.Collect()
	return c.Of.Replace(target, key, subresource, json)
}

// Delete implements [Client].
func (c CollectingClient) Delete(target types.GroupVersionResource, key types.ObjectKey, propagation uint8, gracePeriod wit.Option[uint32], preconditions client.Preconditions) error {
	collector.Collect()
	return c.Of.Delete(target, key, propagation, gracePeriod, preconditions)
}
