package oarlockctrl

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
)

// Status returns a client for the status.
func (c *client) Status() ctrlclient.SubResourceWriter { return c.SubResource("status") }

// SubResource returns a client for a subresource.
func (c *client) SubResource(name string) ctrlclient.SubResourceClient {
	return &subresource{c, name}
}

type subresource struct {
	client *client
	name   string
}

// Get asks the API server for a subresource.
func (s *subresource) Get(_ context.Context, obj, into ctrlclient.Object, _ ...ctrlclient.SubResourceGetOption) error {
	target, err := s.client.clientFor(obj)
	if err != nil {
		return err
	}
	row, err := target.Subresource(s.name).Get(keyOf(obj))
	if err != nil {
		return fault(err)
	}
	text, err := row.JSON()
	if err != nil {
		return err
	}
	return decodeInto(text, into)
}

// Create returns an error.
func (s *subresource) Create(_ context.Context, obj, _ ctrlclient.Object, _ ...ctrlclient.SubResourceCreateOption) error {
	return fmt.Errorf("the subresource %s of %s cannot be created: the host has no such request", s.name, obj.GetName())
}

// Update updates the subresource, unless nothing has changed.
func (s *subresource) Update(_ context.Context, obj ctrlclient.Object, options ...ctrlclient.SubResourceUpdateOption) error {
	var chosen ctrlclient.SubResourceUpdateOptions
	chosen.ApplyOptions(options)
	if err := noDryRun(chosen.DryRun); err != nil {
		return err
	}
	if chosen.SubResourceBody == nil {
		return s.client.update(obj, s.name)
	}
	_, body, err := s.client.encoded(chosen.SubResourceBody)
	if err != nil {
		return err
	}
	return s.client.patch(obj, ctrlclient.RawPatch("application/merge-patch+json", body), s.name, nil)
}

// Patch sends a patch of the subresource.
func (s *subresource) Patch(_ context.Context, obj ctrlclient.Object, patch ctrlclient.Patch, options ...ctrlclient.SubResourcePatchOption) error {
	var chosen ctrlclient.SubResourcePatchOptions
	chosen.ApplyOptions(options)
	if err := noDryRun(chosen.DryRun); err != nil {
		return err
	}
	return s.client.patch(obj, patch, s.name, chosen.Force)
}

// Apply applies a configuration to the subresource.
func (s *subresource) Apply(_ context.Context, configuration runtime.ApplyConfiguration, options ...ctrlclient.SubResourceApplyOption) error {
	var chosen ctrlclient.SubResourceApplyOptions
	chosen.ApplyOpts(options)
	if err := noDryRun(chosen.DryRun); err != nil {
		return err
	}
	return s.client.apply(configuration, s.name, chosen.Force)
}
