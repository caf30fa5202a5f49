package oarlockctrl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	oarlock "oarlock.dev/sdk"
)

// client reads what is watched from the host's cache, all else from the API server, and writes to the API
// server.
//
// After a write it sets name, uid and resourceVersion of the object; what the server defaults or computes
// is not read back. An update is sent as a merge patch of what changed, with the resourceVersion as
// precondition: the cache lacks fields that the operator prunes, which a replacement would delete.
type client struct {
	*hosted
	// read has the texts of what the call in progress has read.
	read map[version]string
}

// version names one version of one object.
type version struct {
	kind            schema.GroupVersionKind
	key             types.NamespacedName
	resourceVersion string
}

var _ ctrlclient.Client = &client{}

// begin forgets what the last call has read.
func (c *client) begin() { c.read = map[version]string{} }

func (c *client) remember(kind schema.GroupVersionKind, obj ctrlclient.Object, text string) {
	if c.read == nil {
		c.begin()
	}
	c.read[version{kind, ctrlclient.ObjectKeyFromObject(obj), obj.GetResourceVersion()}] = text
}

// Get reads an object: from the cache if its kind is watched, else from the API server.
func (c *client) Get(_ context.Context, key ctrlclient.ObjectKey, obj ctrlclient.Object, _ ...ctrlclient.GetOption) error {
	kind, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return err
	}
	var text string
	if _, ok := c.informers.watched(kind); ok {
		text, err = c.informers.get(key, obj)
	} else {
		text, err = (&live{c.hosted}).get(key, obj, "")
	}
	if err != nil {
		return err
	}
	c.remember(kind, obj, text)
	return nil
}

// List reads objects: from the cache if their kind is watched, else from the API server.
func (c *client) List(ctx context.Context, list ctrlclient.ObjectList, options ...ctrlclient.ListOption) error {
	kind, err := apiutil.GVKForObject(list, c.scheme)
	if err != nil {
		return err
	}
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	if _, ok := c.informers.watched(kind); ok {
		return c.informers.List(ctx, list, options...)
	}
	return (&live{c.hosted}).List(ctx, list, options...)
}

// Create creates an object.
func (c *client) Create(_ context.Context, obj ctrlclient.Object, options ...ctrlclient.CreateOption) error {
	var chosen ctrlclient.CreateOptions
	chosen.ApplyOptions(options)
	if err := noDryRun(chosen.DryRun); err != nil {
		return err
	}
	target, text, err := c.encoded(obj)
	if err != nil {
		return err
	}
	written, err := target.Create(obj.GetNamespace(), text)
	return c.wrote(obj, written, err)
}

// Update updates an object, unless nothing has changed.
func (c *client) Update(_ context.Context, obj ctrlclient.Object, options ...ctrlclient.UpdateOption) error {
	var chosen ctrlclient.UpdateOptions
	chosen.ApplyOptions(options)
	if err := noDryRun(chosen.DryRun); err != nil {
		return err
	}
	return c.update(obj, "")
}

func (c *client) update(obj ctrlclient.Object, subresource string) error {
	before, err := c.before(obj)
	if err != nil {
		return err
	}
	target, text, err := c.encoded(obj)
	if err != nil {
		return err
	}
	var from, to map[string]any
	if err := errors.Join(json.Unmarshal(before, &from), json.Unmarshal(text, &to)); err != nil {
		return err
	}
	patch := difference(from, to)
	if patch == nil {
		return nil
	}
	if subresource != "" {
		target = target.Subresource(subresource)
	}
	written, err := target.Patch(keyOf(obj), oarlock.MergePatch(patch), refOf(obj).Unchanged())
	if err := c.wrote(obj, written, err); err != nil {
		return err
	}
	return c.rememberWritten(obj, sent(from, to, subresource))
}

// rememberWritten notes what an object is now, as far as the call knows, so that its next update needs no
// read.
func (c *client) rememberWritten(obj ctrlclient.Object, now map[string]any) error {
	metadata, ok := now["metadata"].(map[string]any)
	if !ok {
		return nil
	}
	metadata["resourceVersion"] = obj.GetResourceVersion()
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	c.remember(obj.GetObjectKind().GroupVersionKind(), obj, string(text))
	return nil
}

// before returns the text of an object at its resourceVersion, as its type encodes it: what the call has
// read, or what the API server has.
func (c *client) before(obj ctrlclient.Object) (json.RawMessage, error) {
	kind, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return nil, err
	}
	there := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(ctrlclient.Object)
	there.GetObjectKind().SetGroupVersionKind(kind)
	text, ok := c.read[version{kind, ctrlclient.ObjectKeyFromObject(obj), obj.GetResourceVersion()}]
	if ok {
		err = decodeInto(text, there)
	} else {
		_, err = (&live{c.hosted}).get(ctrlclient.ObjectKeyFromObject(obj), there, "")
	}
	if err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() == "" {
		obj.SetResourceVersion(there.GetResourceVersion())
	}
	if there.GetResourceVersion() != obj.GetResourceVersion() {
		resource := schema.GroupResource{Group: kind.Group, Resource: c.mapper.resource(kind).Plural}
		return nil, apierrors.NewConflict(resource, obj.GetName(), errors.New("the object has changed since it was read"))
	}
	_, before, err := c.encoded(there)
	return before, err
}

// Patch sends a patch of an object.
func (c *client) Patch(_ context.Context, obj ctrlclient.Object, patch ctrlclient.Patch, options ...ctrlclient.PatchOption) error {
	var chosen ctrlclient.PatchOptions
	chosen.ApplyOptions(options)
	if err := noDryRun(chosen.DryRun); err != nil {
		return err
	}
	return c.patch(obj, patch, "", chosen.Force)
}

func (c *client) patch(obj ctrlclient.Object, patch ctrlclient.Patch, subresource string, force *bool) error {
	data, err := patch.Data(obj)
	if err != nil {
		return err
	}
	target, err := c.clientFor(obj)
	if err != nil {
		return err
	}
	if subresource != "" {
		target = target.Subresource(subresource)
	}
	var written oarlock.Written
	body := json.RawMessage(data)
	switch patch.Type() {
	case types.MergePatchType:
		written, err = target.Patch(keyOf(obj), oarlock.MergePatch(body), oarlock.Preconditions{})
	case types.JSONPatchType:
		written, err = target.Patch(keyOf(obj), oarlock.JSONPatch(body), oarlock.Preconditions{})
	case types.StrategicMergePatchType:
		written, err = target.Patch(keyOf(obj), oarlock.StrategicMergePatch(body), oarlock.Preconditions{})
	case types.ApplyPatchType:
		written, err = target.Apply(keyOf(obj), body, oarlock.ApplyOptions{Force: force != nil && *force})
	default:
		return fmt.Errorf("patches of the type %s are not supported", patch.Type())
	}
	return c.wrote(obj, written, err)
}

// Apply applies a configuration, server-side, with the plugin's name as field manager.
func (c *client) Apply(_ context.Context, configuration runtime.ApplyConfiguration, options ...ctrlclient.ApplyOption) error {
	var chosen ctrlclient.ApplyOptions
	chosen.ApplyOptions(options)
	if err := noDryRun(chosen.DryRun); err != nil {
		return err
	}
	return c.apply(configuration, "", chosen.Force)
}

func (c *client) apply(configuration runtime.ApplyConfiguration, subresource string, force *bool) error {
	text, err := json.Marshal(configuration)
	if err != nil {
		return err
	}
	var named metav1.PartialObjectMetadata
	if err := json.Unmarshal(text, &named); err != nil {
		return err
	}
	target := oarlock.NewClient[raw](nil, c.mapper.resource(named.GroupVersionKind()))
	if subresource != "" {
		target = target.Subresource(subresource)
	}
	_, err = target.Apply(keyOf(&named), json.RawMessage(text), oarlock.ApplyOptions{Force: force != nil && *force})
	return fault(err)
}

// Delete deletes an object.
func (c *client) Delete(_ context.Context, obj ctrlclient.Object, options ...ctrlclient.DeleteOption) error {
	var chosen ctrlclient.DeleteOptions
	chosen.ApplyOptions(options)
	if err := noDryRun(chosen.DryRun); err != nil {
		return err
	}
	target, err := c.clientFor(obj)
	if err != nil {
		return err
	}
	var how oarlock.DeleteOptions
	if chosen.PropagationPolicy != nil {
		how.Propagation = map[metav1.DeletionPropagation]oarlock.Propagation{
			metav1.DeletePropagationForeground: oarlock.Foreground, metav1.DeletePropagationOrphan: oarlock.Orphan,
		}[*chosen.PropagationPolicy]
	}
	if chosen.GracePeriodSeconds != nil {
		seconds := uint32(*chosen.GracePeriodSeconds)
		how.GracePeriodSeconds = &seconds
	}
	if p := chosen.Preconditions; p != nil {
		if p.UID != nil {
			how.UID = string(*p.UID)
		}
		if p.ResourceVersion != nil {
			how.ResourceVersion = *p.ResourceVersion
		}
	}
	return fault(target.Delete(keyOf(obj), how))
}

// DeleteAllOf deletes the objects that match, one by one.
func (c *client) DeleteAllOf(ctx context.Context, obj ctrlclient.Object, options ...ctrlclient.DeleteAllOfOption) error {
	var chosen ctrlclient.DeleteAllOfOptions
	chosen.ApplyOptions(options)
	kind, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := (&live{c.hosted}).List(ctx, list, &chosen.ListOptions); err != nil {
		return err
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(kind)
		if err := c.Delete(ctx, &list.Items[i], &chosen.DeleteOptions); ctrlclient.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}

// Scheme returns the scheme.
func (c *client) Scheme() *runtime.Scheme { return c.scheme }

// RESTMapper returns the mapper.
func (c *client) RESTMapper() meta.RESTMapper { return c.mapper }

// GroupVersionKindFor returns the kind of an object.
func (c *client) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, c.scheme)
}

// IsObjectNamespaced returns whether objects of this kind are in namespaces.
func (c *client) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	kind, err := apiutil.GVKForObject(obj, c.scheme)
	return !c.mapper.isClusterScoped(kind.GroupKind()), err
}

// encoded returns the client for an object, and the object's text, with apiVersion and kind.
func (c *client) encoded(obj ctrlclient.Object) (*oarlock.Client[raw], json.RawMessage, error) {
	kind, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return nil, nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(kind)
	text, err := json.Marshal(obj)
	return oarlock.NewClient[raw](nil, c.mapper.resource(kind)), text, err
}

// wrote notes in an object what a write returned.
func (c *client) wrote(obj ctrlclient.Object, written oarlock.Written, err error) error {
	if err != nil {
		return fault(err)
	}
	obj.SetName(written.Name)
	obj.SetUID(types.UID(written.UID))
	obj.SetResourceVersion(written.ResourceVersion)
	return nil
}

func keyOf(obj ctrlclient.Object) oarlock.ObjectKey {
	return oarlock.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

func noDryRun(dryRun []string) error {
	if len(dryRun) > 0 {
		return errors.New("dry runs are not supported")
	}
	return nil
}
