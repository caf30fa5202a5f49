package main

import (
	"maps"
	"reflect"

	oarlock "oarlock.dev/sdk"
)

// mirroredFrom is the annotation of a copy: namespace/name of its source. mirror never changes an object
// without it.
const mirroredFrom = "oarlock.dev/mirrored-from"

const managedBy = "app.kubernetes.io/managed-by"

// copyOf returns the copy of a source for a namespace.
func copyOf(k kind, source map[string]any, key oarlock.ObjectKey, namespace string) map[string]any {
	made := map[string]any{
		"apiVersion": "v1",
		"kind":       k.name,
		"metadata": map[string]any{
			"name":        key.Name,
			"namespace":   namespace,
			"labels":      map[string]any{managedBy: "oarlock-mirror"},
			"annotations": map[string]any{mirroredFrom: key.String()},
		},
	}
	for _, field := range append([]string{"type"}, k.content...) {
		if value, ok := source[field]; ok {
			made[field] = value
		}
	}
	return made
}

// belongsTo returns whether the object is annotated as a copy of this source.
func belongsTo(object map[string]any, source oarlock.ObjectKey) bool {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	return annotations[mirroredFrom] == source.String()
}

// difference returns the merge patch that makes a copy equal to its source; nil if it is equal already.
func difference(k kind, there, source map[string]any) map[string]any {
	var patch map[string]any
	for _, field := range k.content {
		before, _ := there[field].(map[string]any)
		after, _ := source[field].(map[string]any)
		changes := map[string]any{}
		for name := range before {
			if _, ok := after[name]; !ok {
				changes[name] = nil
			}
		}
		for name, value := range maps.All(after) {
			if !reflect.DeepEqual(before[name], value) {
				changes[name] = value
			}
		}
		if len(changes) > 0 {
			if patch == nil {
				patch = map[string]any{}
			}
			patch[field] = changes
		}
	}
	return patch
}
