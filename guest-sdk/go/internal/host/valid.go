package host

import (
	"strings"

	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
)

// ValidOutput makes the texts for people UTF-8. A string of Go may be no text, such as the half of one, and
// the host ends an instance that passes it.
type ValidOutput struct {
	Of Output
}

// Emit implements [Output].
func (o ValidOutput) Emit(target types.GroupVersionResource, regarding types.ObjectRef, kind string, eventType uint8, reason, note string) error {
	return o.Of.Emit(target, regarding, kind, eventType, reason, Valid(note))
}

// CounterAdd implements [Output].
func (o ValidOutput) CounterAdd(name string, by float64, labels []types.Entry) error {
	return o.Of.CounterAdd(name, by, validEntries(labels))
}

// GaugeSet implements [Output].
func (o ValidOutput) GaugeSet(name string, value float64, labels []types.Entry) error {
	return o.Of.GaugeSet(name, value, validEntries(labels))
}

// Log implements [Output].
func (o ValidOutput) Log(level uint8, message string, pairs []types.Entry) {
	o.Of.Log(level, Valid(message), validEntries(pairs))
}

// Enabled implements [Output].
func (o ValidOutput) Enabled(level uint8) bool { return o.Of.Enabled(level) }

// Valid returns a text as UTF-8.
func Valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

func validEntries(entries []types.Entry) []types.Entry {
	made := make([]types.Entry, len(entries))
	for i, entry := range entries {
		made[i] = types.Entry{Name: Valid(entry.Name), Value: Valid(entry.Value)}
	}
	return made
}
