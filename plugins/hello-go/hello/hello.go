// Package hello has the parts that both packages of the plugin use.
package hello

import (
	"encoding/json"

	witTypes "go.bytecodealliance.org/pkg/wit/types"
)

// Name is the name of the plugin's one subscription and of its one lister.
const Name = "configmaps"

// Fields are the fields that every notification carries. The host skips updates that change none of them.
// Every update changes the resourceVersion, so the host skips none.
var Fields = []string{"/metadata/resourceVersion", "/data/greeting"}

// Greeting is the index of the greeting in Fields.
const Greeting = 1

// Text returns the string value of a field, if the field has one.
func Text(field witTypes.Option[string]) (text string, ok bool) {
	if field.IsNone() {
		return "", false
	}
	err := json.Unmarshal([]byte(field.Some()), &text)
	return text, err == nil
}
