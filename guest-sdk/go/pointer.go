package oarlock

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Pointer returns the JSON pointer of a path: Pointer("metadata", "annotations", "example.com/team") is
// /metadata/annotations/example.com~1team.
func Pointer(segments ...string) string {
	var pointer strings.Builder
	for _, segment := range segments {
		pointer.WriteByte('/')
		_, _ = escape.WriteString(&pointer, segment) // a Builder returns no error
	}
	return pointer.String()
}

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

// at returns the JSON text at a pointer into a JSON text. Ok is false if there is none.
func at(text string, pointer string) (found string, ok bool, err error) {
	if pointer == "" {
		return text, true, nil
	}
	if pointer[0] != '/' {
		return "", false, invalid("the JSON pointer %q does not begin with /", pointer)
	}
	raw := json.RawMessage(text)
	for _, segment := range strings.Split(pointer[1:], "/") {
		segment = unescape.Replace(segment)
		switch firstByte(raw) {
		case '{':
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(raw, &fields); err != nil {
				return "", false, err
			}
			if raw, ok = fields[segment]; !ok {
				return "", false, nil
			}
		case '[':
			var elements []json.RawMessage
			if err := json.Unmarshal(raw, &elements); err != nil {
				return "", false, err
			}
			position, err := strconv.Atoi(segment)
			if err != nil || position < 0 || position >= len(elements) {
				return "", false, nil
			}
			raw = elements[position]
		default:
			return "", false, nil
		}
	}
	return string(raw), true, nil
}

func firstByte(text []byte) byte {
	for _, b := range text {
		if b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			return b
		}
	}
	return 0
}
