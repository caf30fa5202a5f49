package oarlocktest

import (
	"encoding/json"
	"fmt"
	"reflect"

	oarlock "oarlock.dev/sdk"
	"oarlock.dev/sdk/internal/host"
	handler "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_handler"
	metadata "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_metadata"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	queue "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_work_queue"
	wit "oarlock.dev/sdk/internal/wit/types"
)

// change is a change of an object. Old is nil for a new object, new for a deleted one.
type change struct {
	old, new object
	initial  bool
	// own is true for a write of the plugin that ignoreOwnWrites skips.
	own bool
}

// put stores an object, and queues the notifications. An object that is being deleted goes with its last
// finalizer.
func (h *Host) put(target oarlock.GroupVersionResource, made object, by *Write) {
	if old := h.cluster.get(target, made.key()); old != nil && old.isLeaving() && !made.hasFinalizers() {
		h.cluster.remove(target, made.key())
		h.changed(target, change{old: old})
		return
	}
	old := h.cluster.put(target, made, h.now)
	own := by != nil && (by.Verb == "create" || by.Verb == "replace")
	h.changed(target, change{old: old, new: made, own: own})
}

// remove deletes an object; one with finalizers only gets a deletionTimestamp.
func (h *Host) remove(target oarlock.GroupVersionResource, key oarlock.ObjectKey) {
	old := h.cluster.get(target, key)
	if old.hasFinalizers() {
		if !old.isLeaving() {
			leaving := old.clone()
			leaving.metadata()["deletionTimestamp"] = timestamp(h.now)
			h.put(target, leaving, nil)
		}
		return
	}
	h.cluster.remove(target, key)
	h.changed(target, change{old: old})
}

func (h *Host) changed(target oarlock.GroupVersionResource, c change) {
	if !h.isStarted {
		return
	}
	for _, subscription := range h.description.Subscriptions {
		if targetOf(subscription.Target) == target {
			h.notify(subscription, c)
		}
	}
	for _, read := range h.description.Reads {
		if !read.Wakes || targetOf(read.Target) != target {
			continue
		}
		for key, listers := range h.waking {
			for _, lister := range listers {
				if lister == read.Name {
					h.add(key)
				}
			}
		}
	}
}

// notify queues a change for one subscription.
func (h *Host) notify(s metadata.Subscription, c change) {
	if !matches(s, c.old) {
		c.old = nil
	}
	if !matches(s, c.new) {
		c.new = nil
	}
	if s.Content == metadata.Content_Metadata {
		c.old, c.new = c.old.metadataOnly(), c.new.metadataOnly()
	}
	isSkipped := c.own && s.IgnoreOwnWrites && c.new != nil
	if c.old != nil && c.new != nil && len(s.Fields) > 0 {
		isSkipped = isSkipped || reflect.DeepEqual(c.old.texts(s.Fields), c.new.texts(s.Fields))
	}
	if c.old == nil && c.new == nil || isSkipped {
		return
	}
	if s.Enqueue.Tag() != metadata.Enqueue_Nothing {
		for _, state := range []object{c.old, c.new} {
			if key, ok := keyFor(s, state); ok {
				h.add(key)
			}
		}
		return
	}
	h.pending = append(h.pending, func() error {
		h.event = &c
		defer func() { h.event = nil }()
		if err := h.call(s, c); err != nil {
			state := c.new
			if state == nil {
				state = c.old
			}
			return fmt.Errorf("%s %v: %w", s.Name, state.key(), err)
		}
		return nil
	})
}

func (h *Host) call(s metadata.Subscription, c change) error {
	switch {
	case c.old == nil:
		return h.guest.OnAdd(handler.Added{
			Subscription: s.Name, Object: c.new.ref(), IsInInitialList: c.initial, Fields: c.new.texts(s.Fields),
		})
	case c.new == nil:
		return h.guest.OnDelete(handler.Deleted{Subscription: s.Name, Object: c.old.ref(), Fields: c.old.texts(s.Fields)})
	}
	oldUID := wit.None[string]()
	if c.old.ref().Uid != c.new.ref().Uid {
		oldUID = wit.Some(c.old.ref().Uid)
	}
	return h.guest.OnUpdate(handler.Updated{
		Subscription: s.Name, Object: c.new.ref(), OldResourceVersion: c.old.ref().ResourceVersion, OldUid: oldUID,
		Fields: c.new.texts(s.Fields), OldFields: c.old.texts(s.Fields),
	})
}

func matches(s metadata.Subscription, o object) bool {
	if o == nil || !isIn(s.Namespaces, o.key()) || !selects(s.LabelSelector, o.labels()) {
		return false
	}
	for _, condition := range s.Conditions {
		if !holds(condition.Test, o.text(condition.Pointer)) {
			return false
		}
	}
	return true
}

func isIn(namespaces types.Namespaces, key oarlock.ObjectKey) bool {
	return namespaces.Tag() == types.Namespaces_All || namespaces.One() == key.Namespace
}

func holds(test metadata.Test, field host.Text) bool {
	text, exists := field.SomeOr("null"), field.IsSome() && field.Some() != "null"
	isOneOf := func(values ...string) bool {
		for _, value := range values {
			if reflect.DeepEqual(parse(text), parse(value)) {
				return true
			}
		}
		return false
	}
	switch test.Tag() {
	case metadata.Test_Exists:
		return exists
	case metadata.Test_Absent:
		return !exists
	case metadata.Test_Equals:
		return exists && isOneOf(test.Equals())
	case metadata.Test_Differs:
		return !exists || !isOneOf(test.Differs())
	case metadata.Test_In:
		return exists && isOneOf(test.In()...)
	case metadata.Test_NotIn:
		return !exists || !isOneOf(test.NotIn()...)
	case metadata.Test_Greater:
		return exists && compare(parse(text), parse(test.Greater())) > 0
	default:
		return exists && compare(parse(text), parse(test.Less())) < 0
	}
}

// compare compares two numbers or two strings; 0 for other values.
func compare(a, b any) int {
	switch a := a.(type) {
	case float64:
		if b, ok := b.(float64); ok && a != b {
			return map[bool]int{true: 1, false: -1}[a > b]
		}
	case string:
		if b, ok := b.(string); ok && a != b {
			return map[bool]int{true: 1, false: -1}[a > b]
		}
	}
	return 0
}

func parse(text string) (value any) {
	if json.Unmarshal([]byte(text), &value) != nil {
		return nil
	}
	return value
}

// keyFor returns the key that a state of an object adds to the work queue.
func keyFor(s metadata.Subscription, o object) (oarlock.WorkKey, bool) {
	if o == nil {
		return oarlock.WorkKey{}, false
	}
	namespaceFor := func(scope metadata.Scope) string {
		if scope == metadata.Scope_Cluster {
			return ""
		}
		return o.key().Namespace
	}
	named := func(name any, scope metadata.Scope) (oarlock.WorkKey, bool) {
		text, ok := name.(string)
		key := oarlock.ObjectKey{Namespace: namespaceFor(scope), Name: text}
		if namespace, rest, found := cut(text); found && scope == metadata.Scope_SameNamespace {
			key = oarlock.ObjectKey{Namespace: namespace, Name: rest}
		}
		return oarlock.WorkKey{Kind: s.Name, ObjectKey: key}, ok && text != ""
	}
	switch s.Enqueue.Tag() {
	case metadata.Enqueue_Itself:
		return oarlock.WorkKey{Kind: s.Name, ObjectKey: o.key()}, true
	case metadata.Enqueue_ControllerOwner:
		wanted := s.Enqueue.ControllerOwner()
		owner, ok := o.controllerOwner(wanted.Group, wanted.Kind)
		key := oarlock.ObjectKey{Namespace: namespaceFor(wanted.Scope), Name: owner}
		return oarlock.WorkKey{Kind: wanted.Kind, ObjectKey: key}, ok
	case metadata.Enqueue_Pointer:
		at := s.Enqueue.Pointer()
		value, _ := o.at(at.At)
		return named(value, at.Scope)
	case metadata.Enqueue_Label:
		at := s.Enqueue.Label()
		return named(any(o.labels()[at.At]), at.Scope)
	default:
		return keyFromWit(s.Enqueue.Key()), true
	}
}

func keyFromWit(key queue.WorkKey) oarlock.WorkKey {
	object := oarlock.ObjectKey{Namespace: key.Object.Namespace, Name: key.Object.Name}
	return oarlock.WorkKey{Kind: key.Kind, ObjectKey: object}
}

func keyToWit(key oarlock.WorkKey) queue.WorkKey {
	return queue.WorkKey{Kind: key.Kind, Object: types.ObjectKey{Namespace: key.Namespace, Name: key.Name}}
}
