// Package hello has what the plugin's two halves share.
package hello

import (
	"encoding/json"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
)

// Name is the name of the plugin's one subscription and of its one lister.
const Name = "configmaps"

// Fields come along with every notification. Updates that change none of them are skipped; the resourceVersion changes
// with each, so that here none is.
var Fields = []string{"/metadata/resourceVersion", "/data/greeting"}

// Greeting is the place of the greeting among Fields.
const Greeting = 1

// Text returns the string that a field holds, if the field is there and holds one.
func Text(field witTypes.Option[string]) (text string, ok bool) {
	if field.IsNone() {
		return "", false
	}
	err := json.Unmarshal([]byte(field.Some()), &text)
	return text, err == nil
}
