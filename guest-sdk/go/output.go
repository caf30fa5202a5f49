package oarlock

import (
	"fmt"
	"maps"
	"slices"

	"oarlock.dev/sdk/internal/host"
	events "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_events"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
)

// EventType is the type of a Kubernetes Event.
type EventType uint8

// The types of Events.
const (
	Normal  = EventType(events.EventType_Normal)
	Warning = EventType(events.EventType_Warning)
)

// Recorder records Kubernetes Events about the objects of a resource.
type Recorder struct {
	Target GroupVersionResource
	// Kind is the kind of the objects, such as Deployment.
	Kind string
}

// Event records an Event. It does not wait for the API server: the host queues the Event, counts similar
// Events as one, and drops Events beyond a rate. Reason is one CamelCase word; note has at most 1,024
// bytes.
func (r Recorder) Event(regarding ObjectRef, eventType EventType, reason, note string) error {
	ref := types.ObjectRef{
		Namespace: regarding.Namespace, Name: regarding.Name, Uid: regarding.UID, ResourceVersion: regarding.ResourceVersion,
	}
	return fault(host.Current().Output.Emit(r.Target.wit(), ref, r.Kind, uint8(eventType), reason, note))
}

// Eventf is like Event, with a format of package fmt.
func (r Recorder) Eventf(regarding ObjectRef, eventType EventType, reason, format string, arguments ...any) error {
	return r.Event(regarding, eventType, reason, fmt.Sprintf(format, arguments...))
}

// Labels are the labels of a metric.
type Labels map[string]string

// Counter is the name of a counter on the host's metrics page: oarlock_guest_NAME_total.
type Counter string

// Add increases the counter. By must not be negative.
func (c Counter) Add(by float64, labels Labels) error {
	return fault(host.Current().Output.CounterAdd(string(c), by, labels.entries()))
}

// Gauge is the name of a gauge on the host's metrics page: oarlock_guest_NAME.
type Gauge string

// Set sets the gauge.
func (g Gauge) Set(value float64, labels Labels) error {
	return fault(host.Current().Output.GaugeSet(string(g), value, labels.entries()))
}

func (l Labels) entries() []types.Entry {
	entries := make([]types.Entry, 0, len(l))
	for _, name := range slices.Sorted(maps.Keys(l)) {
		entries = append(entries, types.Entry{Name: name, Value: l[name]})
	}
	return entries
}
