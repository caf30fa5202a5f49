package host

import (
	"slices"
	"testing"

	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
)

// recorded records the texts that would reach the host.
type recorded struct {
	texts []string
}

func (r *recorded) add(text string, entries []types.Entry) {
	r.texts = append(r.texts, text)
	for _, entry := range entries {
		r.texts = append(r.texts, entry.Name+"="+entry.Value)
	}
}

func (r *recorded) Emit(_ types.GroupVersionResource, _ types.ObjectRef, _ string, _ uint8, _, note string) error {
	r.add(note, nil)
	return nil
}

func (r *recorded) CounterAdd(name string, _ float64, labels []types.Entry) error {
	r.add(name, labels)
	return nil
}

func (r *recorded) GaugeSet(name string, _ float64, labels []types.Entry) error {
	r.add(name, labels)
	return nil
}

func (r *recorded) Log(_ uint8, message string, pairs []types.Entry) { r.add(message, pairs) }

func (r *recorded) Enabled(level uint8) bool { return level > 1 }

func TestTextsForPeopleAreMadeUTF8(t *testing.T) {
	half := "Größe"[:3]
	entries := []types.Entry{{Name: half, Value: half}, {Name: "whole", Value: "Größe"}}
	var r recorded
	o := ValidOutput{&r}
	if o.Emit(types.GroupVersionResource{}, types.ObjectRef{}, "", 0, "Why", half) != nil ||
		o.CounterAdd("counter", 1, entries) != nil || o.GaugeSet("gauge", 1, entries) != nil {
		t.Error("an output failed")
	}
	o.Log(2, half, entries)
	want := []string{
		"Gr\uFFFD",
		"counter", "Gr\uFFFD=Gr\uFFFD", "whole=Größe",
		"gauge", "Gr\uFFFD=Gr\uFFFD", "whole=Größe",
		"Gr\uFFFD", "Gr\uFFFD=Gr\uFFFD", "whole=Größe",
	}
	if !slices.Equal(r.texts, want) {
		t.Errorf("got  %q\nwant %q", r.texts, want)
	}
	if o.Enabled(1) || !o.Enabled(2) || entries[0].Name != half {
		t.Error("more than the texts was changed")
	}
}
