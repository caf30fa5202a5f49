// Package oarlocktest runs a plugin in a native test: it takes the host's place, with objects in memory and
// a clock that stands still.
//
//	func TestIt(t *testing.T) {
//		h := oarlocktest.New(t, setup, nil)
//		h.Start()
//		err := h.Apply(oarlock.GVR("", "v1", "configmaps"), map[string]any{
//			"metadata": map[string]any{"namespace": "default", "name": "a"},
//		})
//		…
//	}
//
// It does what plugins notice most: matching, declared fields, the work queue, indices, preconditions. It
// has no access control, no back-off (an error is returned to the test), no limits and no pages. The cases
// of `oarlock plugin test` run the component on the real host.
package oarlocktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"slices"
	"testing"
	"time"

	oarlock "oarlock.dev/sdk"
	"oarlock.dev/sdk/internal/host"
	handler "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_handler"
	metadata "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_metadata"
	reconciler "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_reconciler"
)

// maxCalls is the number of calls after which a test has a plugin that never comes to rest.
const maxCalls = 10_000

// Host takes the host's place.
type Host struct {
	t           testing.TB
	guest       host.Guest
	config      string
	description metadata.Description
	cluster     cluster
	now         time.Time
	isStarted   bool

	pending []func() error
	keys    []oarlock.WorkKey
	delayed map[oarlock.WorkKey]time.Time
	waking  map[oarlock.WorkKey][]string
	running *oarlock.WorkKey
	event   *change

	writes    []Write
	events    []Event
	logs      []Log
	metrics   map[string]float64
	nextError error
}

// Write is a request of the plugin that changed something, or failed to.
type Write struct {
	// Verb is create, apply, patch, replace or delete.
	Verb        string
	Target      oarlock.GroupVersionResource
	Subresource string
	Key         oarlock.ObjectKey
	// Body is the object or patch, decoded; of a delete, the oarlock.Propagation.
	Body any
	// Err is why it failed, or nil.
	Err error
}

// Event is a Kubernetes Event that the plugin recorded.
type Event struct {
	Kind         string
	Key          oarlock.ObjectKey
	Type         oarlock.EventType
	Reason, Note string
}

// Log is a line of the plugin's log. Level is trace, debug, info, warn or error.
type Log struct {
	Level, Message string
	Pairs          map[string]string
}

// New returns a host for a plugin with this setup function, and this configuration (what encoding/json
// makes of it; nil for none). It takes the host's place until the test ends; tests with it cannot be
// parallel.
func New(t testing.TB, setup func(*oarlock.Plugin) error, config any) *Host {
	t.Helper()
	if config == nil {
		config = struct{}{}
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatalf("the configuration is not JSON: %v", err)
	}
	h := &Host{
		t: t, guest: host.NewGuest(setup), config: string(text),
		now:     time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		cluster: cluster{objects: map[oarlock.GroupVersionResource]map[oarlock.ObjectKey]object{}},
		delayed: map[oarlock.WorkKey]time.Time{}, waking: map[oarlock.WorkKey][]string{}, metrics: map[string]float64{},
	}
	before, logger, writer, flags := host.Install(h.imports()), slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(oarlock.LogHandler()))
	t.Cleanup(func() {
		host.Install(before)
		slog.SetDefault(logger)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	return h
}

// Describe calls setup, and returns its error.
func (h *Host) Describe() error {
	var err error
	h.description, err = h.guest.Describe()
	return err
}

// Start delivers the objects that were applied before as initial adds, and returns the errors of the calls.
func (h *Host) Start() error {
	h.t.Helper()
	if err := h.Describe(); err != nil {
		return err
	}
	h.isStarted = true
	for _, subscription := range h.description.Subscriptions {
		for _, object := range h.cluster.all(targetOf(subscription.Target)) {
			h.notify(subscription, change{new: object, initial: true})
		}
	}
	for i, subscription := range h.description.Subscriptions {
		synced := handler.Synced{Subscription: subscription.Name, Remaining: uint32(len(h.description.Subscriptions) - i - 1)}
		h.pending = append(h.pending, func() error { return h.guest.OnSynced(synced) })
	}
	for _, schedule := range h.description.Schedules {
		if schedule.AtStart {
			h.add(scheduleKey(schedule))
		}
	}
	return h.settle()
}

// Apply creates or replaces an object, delivers the change, and returns the errors of the calls. The object
// is what encoding/json makes of it. It gets a uid and a resourceVersion.
func (h *Host) Apply(target oarlock.GroupVersionResource, what any) error {
	h.t.Helper()
	made, err := objectFrom(what)
	if err != nil || made.key().Name == "" {
		h.t.Fatalf("not an object with a name: %v (%v)", what, err)
	}
	h.put(target, made, nil)
	return h.settle()
}

// Delete deletes an object, delivers the change, and returns the errors of the calls.
func (h *Host) Delete(target oarlock.GroupVersionResource, key oarlock.ObjectKey) error {
	h.t.Helper()
	if h.cluster.get(target, key) == nil {
		h.t.Fatalf("there is no %v %v", target, key)
	}
	h.remove(target, key)
	return h.settle()
}

// Advance lets time pass: keys whose delay ends, and schedules with an interval, are reconciled. It returns
// the errors of the calls.
func (h *Host) Advance(duration time.Duration) error {
	h.t.Helper()
	before := h.now
	h.now = h.now.Add(duration)
	for _, schedule := range h.description.Schedules {
		if schedule.Trigger.Tag() != metadata.Trigger_EverySeconds {
			continue
		}
		interval := time.Duration(schedule.Trigger.EverySeconds()) * time.Second
		if before.Truncate(interval) != h.now.Truncate(interval) {
			h.add(scheduleKey(schedule))
		}
	}
	for key, due := range h.delayed {
		if !due.After(h.now) {
			delete(h.delayed, key)
			h.add(key)
		}
	}
	return h.settle()
}

// Delay returns how long a key still waits, and whether it does.
func (h *Host) Delay(key oarlock.WorkKey) (time.Duration, bool) {
	due, ok := h.delayed[key]
	return due.Sub(h.now), ok
}

// Object returns an object as the API server has it, or nil.
func (h *Host) Object(target oarlock.GroupVersionResource, key oarlock.ObjectKey) map[string]any {
	return h.cluster.get(target, key)
}

// Writes returns the requests since the last call of Writes.
func (h *Host) Writes() []Write { return take(&h.writes) }

// Events returns the recorded Events since the last call of Events.
func (h *Host) Events() []Event { return take(&h.events) }

// Logs returns the lines of the log since the last call of Logs.
func (h *Host) Logs() []Log { return take(&h.logs) }

// Metric returns the value of a metric: `name` or `name{label="value"}`, with sorted labels.
func (h *Host) Metric(series string) (float64, bool) {
	value, ok := h.metrics[series]
	return value, ok
}

// FailNextWrite lets the next write fail with this error, such as oarlock.ErrConflict.
func (h *Host) FailNextWrite(err error) { h.nextError = err }

func take[T any](from *[]T) []T {
	taken := *from
	*from = nil
	return taken
}

// settle calls the plugin until there is nothing left to do.
func (h *Host) settle() error {
	h.t.Helper()
	if !h.isStarted {
		return nil
	}
	var errs []error
	for calls := 0; ; calls++ {
		switch {
		case calls == maxCalls:
			h.t.Fatalf("the plugin does not come to rest: %d calls", calls)
		case len(h.pending) > 0:
			next := h.pending[0]
			h.pending = h.pending[1:]
			errs = append(errs, next())
		case len(h.keys) > 0:
			next := h.keys[0]
			h.keys = h.keys[1:]
			errs = append(errs, h.reconcile(next))
		default:
			return errors.Join(errs...)
		}
	}
}

func (h *Host) reconcile(key oarlock.WorkKey) error {
	h.running = &key
	delete(h.waking, key)
	outcome, err := h.guest.Reconcile(keyToWit(key))
	h.running = nil
	if err != nil {
		return fmt.Errorf("reconcile %s %v: %w", key.Kind, key.ObjectKey, err)
	}
	if outcome.Tag() == reconciler.Outcome_RequeueAfter {
		h.addAfter(key, time.Duration(outcome.RequeueAfter())*time.Millisecond)
	}
	return nil
}

func (h *Host) add(key oarlock.WorkKey) {
	delete(h.delayed, key)
	if !slices.Contains(h.keys, key) {
		h.keys = append(h.keys, key)
	}
}

func (h *Host) addAfter(key oarlock.WorkKey, delay time.Duration) {
	due := h.now.Add(delay)
	if there, ok := h.delayed[key]; !ok || due.Before(there) {
		h.delayed[key] = due
	}
}

func scheduleKey(schedule metadata.Schedule) oarlock.WorkKey {
	if schedule.Key.IsSome() {
		return keyFromWit(schedule.Key.Some())
	}
	return oarlock.WorkKey{Kind: schedule.Name}
}
