package main

import (
	"slices"
	"strings"

	oarlock "oarlock.dev/sdk"
)

// mirrorTo is the annotation of a source: the namespaces to copy it to, separated by commas, or *.
const mirrorTo = "oarlock.dev/mirror-to"

// parseSource parses the namespace/name in a copy's annotation.
func parseSource(text string) (key oarlock.ObjectKey, ok bool) {
	namespace, name, found := strings.Cut(text, "/")
	ok = found && namespace != "" && name != "" && !strings.Contains(name, "/")
	return oarlock.ObjectKey{Namespace: namespace, Name: name}, ok
}

// targets returns the existing namespaces that an annotation names, except the source's own. * does not
// include the excluded ones.
func targets(annotation, own string, existing, excluded []string) []string {
	var named []string
	for name := range strings.SplitSeq(annotation, ",") {
		named = append(named, strings.TrimSpace(name))
	}
	var chosen []string
	for _, namespace := range existing {
		isChosen := slices.Contains(named, namespace) ||
			slices.Contains(named, "*") && !slices.Contains(excluded, namespace)
		if isChosen && namespace != own {
			chosen = append(chosen, namespace)
		}
	}
	return chosen
}

// annotationOf returns the annotation of a source; ok is false if the object is none: not annotated, being
// deleted, or a copy.
func annotationOf(object map[string]any) (annotation string, ok bool) {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	_, isCopy := annotations[mirroredFrom]
	_, isGoing := metadata["deletionTimestamp"]
	annotation, ok = annotations[mirrorTo].(string)
	return annotation, ok && !isCopy && !isGoing
}
