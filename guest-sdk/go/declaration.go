package oarlock

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	metadata "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_metadata"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	queue "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_work_queue"
	wit "oarlock.dev/sdk/internal/wit/types"
)

// Subscription is one declared watch. Objects that begin to match are delivered as adds, objects that cease
// to match as deletes.
type Subscription struct {
	// Name is unique in the plugin. Empty means the resource's plural name.
	Name   string
	Target GroupVersionResource
	// Namespace restricts the subscription to one namespace. Empty means all that the account may read.
	Namespace string
	// LabelSelector has the syntax of Kubernetes. Empty means all objects.
	LabelSelector string
	// Conditions must all hold. At most 16.
	Conditions []Condition
	// Fields are JSON pointers to fields that the plugin needs, in addition to those of the handler's type.
	// If there are any, the host skips updates that change none of them, and notifications carry their
	// values.
	Fields []string
	// MetadataOnly says that the plugin needs apiVersion, kind and metadata only.
	MetadataOnly bool
	// Resync is the interval after which each object is delivered again, in whole seconds. 0 means never.
	Resync time.Duration
	// IgnoreOwnWrites has the host skip notifications of what the plugin wrote itself: objects that it
	// created, and writes that demanded a resourceVersion.
	IgnoreOwnWrites bool
}

// Condition is a test on one field of an object.
type Condition struct {
	pointer string
	test    func() (metadata.Test, error)
}

// Exists holds if the field exists and is not null.
func Exists(pointer string) Condition {
	return Condition{pointer, func() (metadata.Test, error) { return metadata.MakeTestExists(), nil }}
}

// Absent holds if the field does not exist, or is null.
func Absent(pointer string) Condition {
	return Condition{pointer, func() (metadata.Test, error) { return metadata.MakeTestAbsent(), nil }}
}

// Equals holds if the field exists and equals value, compared as JSON.
func Equals(pointer string, value any) Condition {
	return oneValue(pointer, value, metadata.MakeTestEquals)
}

// Differs holds if the field does not exist, or differs from value.
func Differs(pointer string, value any) Condition {
	return oneValue(pointer, value, metadata.MakeTestDiffers)
}

// In holds if the field equals one of at most 64 values.
func In(pointer string, values ...any) Condition {
	return manyValues(pointer, values, metadata.MakeTestIn)
}

// NotIn holds if the field does not exist, or differs from all of at most 64 values.
func NotIn(pointer string, values ...any) Condition {
	return manyValues(pointer, values, metadata.MakeTestNotIn)
}

// Greater holds if the field is a number greater than value, or a string that sorts after it.
func Greater(pointer string, value any) Condition {
	return oneValue(pointer, value, metadata.MakeTestGreater)
}

// Less holds if the field is a number less than value, or a string that sorts before it.
func Less(pointer string, value any) Condition {
	return oneValue(pointer, value, metadata.MakeTestLess)
}

func oneValue(pointer string, value any, test func(string) metadata.Test) Condition {
	return Condition{pointer, func() (metadata.Test, error) {
		text, err := json.Marshal(value)
		return test(string(text)), err
	}}
}

func manyValues(pointer string, values []any, test func([]string) metadata.Test) Condition {
	return Condition{pointer, func() (metadata.Test, error) {
		var texts []string
		for _, value := range values {
			text, err := json.Marshal(value)
			if err != nil {
				return metadata.Test{}, err
			}
			texts = append(texts, string(text))
		}
		return test(texts), nil
	}}
}

// Rule says which key a notification adds to the work queue.
type Rule struct {
	enqueue metadata.Enqueue
}

// Itself is the rule for the object itself. The kind of the key is the subscription's name.
func Itself() Rule { return Rule{metadata.MakeEnqueueItself()} }

// ControllerOwner is the rule for the object's controller owner, if it is of this kind. The kind of the key
// is the owner's.
func ControllerOwner(group, kind string) Rule {
	return Rule{metadata.MakeEnqueueControllerOwner(metadata.OwnerKind{Group: group, Kind: kind})}
}

// NamedBy is the rule for the object that the string at a JSON pointer names, as name or namespace/name.
func NamedBy(pointer string) Rule {
	return Rule{metadata.MakeEnqueuePointer(metadata.NamedAt{At: pointer})}
}

// NamedByLabel is the rule for the object that the value of a label names.
func NamedByLabel(label string) Rule {
	return Rule{metadata.MakeEnqueueLabel(metadata.NamedAt{At: label})}
}

// Always is the rule for one key, for work on all objects together.
func Always(key WorkKey) Rule {
	return Rule{metadata.MakeEnqueueKey(key.wit())}
}

// ClusterScoped returns the rule for an owner or named object that is cluster-scoped, such as a Node.
func (r Rule) ClusterScoped() Rule {
	switch r.enqueue.Tag() {
	case metadata.Enqueue_ControllerOwner:
		owner := r.enqueue.ControllerOwner()
		owner.Scope = metadata.Scope_Cluster
		r.enqueue = metadata.MakeEnqueueControllerOwner(owner)
	case metadata.Enqueue_Pointer:
		named := r.enqueue.Pointer()
		named.Scope = metadata.Scope_Cluster
		r.enqueue = metadata.MakeEnqueuePointer(named)
	case metadata.Enqueue_Label:
		named := r.enqueue.Label()
		named.Scope = metadata.Scope_Cluster
		r.enqueue = metadata.MakeEnqueueLabel(named)
	}
	return r
}

// Request is a kind of request that the plugin makes: `oarlock rbac` prints a Role for it. It grants
// nothing by itself. [NewClient] and [Client.Status] declare requests too.
type Request struct {
	Target GroupVersionResource
	// Namespace is empty for all namespaces.
	Namespace string
	// Subresource is such as status; empty for the object itself.
	Subresource string
	// Verbs are those of Kubernetes, such as get, list, create, patch, delete.
	Verbs []string
}

// Schedule adds a key to the work queue at certain times. Either Every or Cron is set.
type Schedule struct {
	// Name is unique in the plugin's schedules.
	Name string
	// Every is an interval of whole seconds, up to a year.
	Every time.Duration
	// Cron is a cron expression of five fields, such as "0 6 * * mon-fri".
	Cron string
	// TimeZone is one of the IANA database, for Cron. Empty means UTC.
	TimeZone string
	// AtStart says that it also fires when the plugin starts on a host.
	AtStart bool
	// Key is the key. The zero key means one whose kind is the schedule's name.
	Key WorkKey
}

// Enqueue declares a subscription whose notifications add keys for the plugin's Reconciler.
func (p *Plugin) Enqueue(s Subscription, rule Rule) {
	p.declared.subscribe(s, s.Fields, rule.enqueue)
	p.declared.enqueues = true
}

// Request declares requests.
func (p *Plugin) Request(r Request) {
	p.declared.description.Requests = append(p.declared.description.Requests, metadata.Request{
		Target: r.Target.wit(), Namespaces: namespaces(r.Namespace), Verbs: r.Verbs, Subresource: r.Subresource,
	})
}

// Schedule declares a schedule.
func (p *Plugin) Schedule(s Schedule) {
	schedule := metadata.Schedule{Name: s.Name, AtStart: s.AtStart, Key: wit.None[queue.WorkKey]()}
	if s.Key != (WorkKey{}) {
		schedule.Key = wit.Some(s.Key.wit())
	}
	switch {
	case (s.Every > 0) == (s.Cron != ""):
		p.declared.fail(errorf("schedule %q needs either Every or Cron", s.Name))
	case s.Every > 0:
		schedule.Trigger = metadata.MakeTriggerEverySeconds(p.declared.seconds("schedule", s.Name, s.Every))
	default:
		schedule.Trigger = metadata.MakeTriggerAt(metadata.WallTimes{Cron: s.Cron, TimeZone: s.TimeZone})
	}
	p.declared.description.Schedules = append(p.declared.description.Schedules, schedule)
	p.declared.enqueues = true
}

// declaration collects what setup declares, and its errors.
type declaration struct {
	description metadata.Description
	// enqueues is true if something adds keys without a call of the plugin.
	enqueues bool
	errs     []error
}

func (d *declaration) fail(err error) {
	d.errs = append(d.errs, err)
}

func (d *declaration) err() error {
	return errors.Join(d.errs...)
}

// seconds returns a duration in whole seconds.
func (d *declaration) seconds(what, name string, duration time.Duration) uint32 {
	seconds := duration / time.Second
	if duration%time.Second != 0 || seconds < 0 || seconds > math.MaxUint32 {
		d.fail(errorf("%s %q: %v is not a number of whole seconds", what, name, duration))
		return 1
	}
	return uint32(seconds)
}

func (d *declaration) subscribe(s Subscription, fields []string, enqueue metadata.Enqueue) {
	if s.Name == "" {
		s.Name = s.Target.Plural
	}
	subscription := metadata.Subscription{
		Name:            s.Name,
		Target:          s.Target.wit(),
		Namespaces:      namespaces(s.Namespace),
		LabelSelector:   s.LabelSelector,
		Fields:          fields,
		Content:         content(s.MetadataOnly),
		ResyncSeconds:   d.seconds("the resync of subscription", s.Name, s.Resync),
		Enqueue:         enqueue,
		IgnoreOwnWrites: s.IgnoreOwnWrites,
	}
	for _, condition := range s.Conditions {
		if condition.test == nil {
			d.fail(errorf("subscription %q has an empty condition; make conditions with Exists, Equals and so on", s.Name))
			continue
		}
		test, err := condition.test()
		if err != nil {
			d.fail(errorf("subscription %q: the value for %s: %w", s.Name, condition.pointer, err))
		}
		subscription.Conditions = append(subscription.Conditions, metadata.FieldCondition{Pointer: condition.pointer, Test: test})
	}
	d.description.Subscriptions = append(d.description.Subscriptions, subscription)
}

func (d *declaration) read(r Read) {
	d.description.Reads = append(d.description.Reads, metadata.Read{
		Name: r.Name, Target: r.Target.wit(), Namespaces: namespaces(r.Namespace),
		Content: content(r.MetadataOnly), Wakes: r.Wakes,
	})
	for _, name := range slices.Sorted(maps.Keys(r.Indices)) {
		d.description.Indices = append(d.description.Indices, metadata.Index{
			Name: name, Lister: r.Name, Source: r.Indices[name].source,
		})
	}
}

func content(metadataOnly bool) uint8 {
	if metadataOnly {
		return metadata.Content_Metadata
	}
	return metadata.Content_Full
}

func namespaces(one string) types.Namespaces {
	if one == "" {
		return types.MakeNamespacesAll()
	}
	return types.MakeNamespacesOne(one)
}

func (r GroupVersionResource) wit() types.GroupVersionResource {
	return types.GroupVersionResource{Group: r.Group, Version: r.Version, Plural: r.Plural}
}

func (k ObjectKey) wit() types.ObjectKey {
	return types.ObjectKey{Namespace: k.Namespace, Name: k.Name}
}
