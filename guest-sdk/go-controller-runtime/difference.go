package oarlockctrl

import (
	"maps"
	"reflect"
)

// difference returns the merge patch that makes one object of another; nil if they are equal. Lists are
// replaced as a whole. metadata.resourceVersion does not count.
func difference(from, to map[string]any) map[string]any {
	patch := changes(from, to)
	if metadata, ok := patch["metadata"].(map[string]any); ok {
		for _, name := range []string{"resourceVersion", "managedFields"} {
			delete(metadata, name)
		}
		if len(metadata) == 0 {
			delete(patch, "metadata")
		}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}

// sent returns what an object is after an update: a write of the object leaves the status, a write of the
// status leaves the rest.
func sent(from, to map[string]any, subresource string) map[string]any {
	rest, status := to, from
	if subresource != "" {
		rest, status = from, to
	}
	now := maps.Clone(rest)
	delete(now, "status")
	if status, ok := status["status"]; ok {
		now["status"] = status
	}
	return now
}

func changes(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range from {
		if _, ok := to[name]; !ok {
			patch[name] = nil
		}
	}
	for name, value := range to {
		before, exists := from[name]
		if exists && reflect.DeepEqual(before, value) {
			continue
		}
		fromFields, fromIsObject := before.(map[string]any)
		toFields, toIsObject := value.(map[string]any)
		if fromIsObject && toIsObject {
			patch[name] = changes(fromFields, toFields)
		} else if value != nil || exists {
			patch[name] = value
		}
	}
	return patch
}
