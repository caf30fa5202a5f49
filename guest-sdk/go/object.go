package oarlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"oarlock.dev/sdk/internal/host"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	wit "oarlock.dev/sdk/internal/wit/types"
)

// Object is one state of an object. Its content is read and decoded when it is asked for.
//
// The object of a notification is valid until the handler returns.
type Object[T any] struct {
	ObjectRef
	source source
}

// Value returns the object as a T.
//
// If T is a struct with fields that have the tag `pointer`, it returns these fields of the object; a field
// that the object lacks keeps its zero value. Else it decodes the whole object, by the rules of
// encoding/json: T may be map[string]any, json.RawMessage, or a type of k8s.io/api.
func (o Object[T]) Value() (value T, err error) {
	view := viewOf[T]()
	switch {
	case view.err != nil:
		return value, view.err
	case view.keys:
		return value, nil
	case len(view.pointers) == 0:
		text, err := o.JSON()
		if err != nil {
			return value, err
		}
		if err := decode(text, &value); err != nil {
			return value, fmt.Errorf("%v is not a %T: %w", o.ObjectKey, value, err)
		}
		return value, nil
	}
	if o.source == nil {
		return value, errNoObject
	}
	texts, err := o.source.fields(view.pointers)
	if err != nil {
		return value, err
	}
	fields := reflect.ValueOf(&value).Elem()
	for i, text := range texts {
		if text.IsNone() || text.Some() == "null" {
			continue
		}
		field := fields.FieldByIndex(view.fields[i])
		if err := decode(text.Some(), field.Addr().Interface()); err != nil {
			return value, fmt.Errorf("%v: %s is not a %v: %w", o.ObjectKey, view.pointers[i], field.Type(), err)
		}
	}
	return value, nil
}

// JSON returns the whole object as JSON text, with apiVersion and kind. Fields that the operator prunes
// from the cache (by default metadata.managedFields) are missing.
func (o Object[T]) JSON() (string, error) {
	if o.source == nil {
		return "", errNoObject
	}
	return o.source.json()
}

// Field returns the JSON text at a JSON pointer; nil if the object has no such field.
func (o Object[T]) Field(pointer string) (json.RawMessage, error) {
	if o.source == nil {
		return nil, errNoObject
	}
	texts, err := o.source.fields([]string{pointer})
	if err != nil || texts[0].IsNone() {
		return nil, err
	}
	return json.RawMessage(texts[0].Some()), nil
}

// Get returns the field at a JSON pointer, decoded by the rules of encoding/json. It is the zero value if
// the object has no such field; to see the difference, ask for a pointer: Get[*int32].
func Get[V any](from interface {
	Field(pointer string) (json.RawMessage, error)
}, pointer string) (value V, err error) {
	text, err := from.Field(pointer)
	if err != nil || text == nil {
		return value, err
	}
	if err := decode(string(text), &value); err != nil {
		return value, fmt.Errorf("%s is not a %T: %w", pointer, value, err)
	}
	return value, nil
}

var (
	errNoObject = errors.New("oarlock: the zero Object has no content")
	errReturned = errors.New("oarlock: the object of a notification was read after its handler had returned")
)

// source is where the content of an object comes from.
type source interface {
	fields(pointers []string) ([]host.Text, error)
	json() (string, error)
}

// notified is the object of the notification of a call.
type notified struct {
	version uint8
	call    uint64
	// pointers and values are those of the declared fields, if the notification carries them.
	pointers []string
	values   []host.Text
}

func (n *notified) fields(pointers []string) ([]host.Text, error) {
	if len(n.values) >= len(pointers) && slices.Equal(pointers, n.pointers[:len(pointers)]) {
		return n.values[:len(pointers)], nil
	}
	if len(pointers) == 1 {
		if i := slices.Index(n.pointers, pointers[0]); i >= 0 {
			return n.values[i : i+1], nil
		}
	}
	if err := n.isPresent(); err != nil {
		return nil, err
	}
	texts, err := host.Current().Event.Fields(n.version, pointers)
	return texts, fault(err)
}

func (n *notified) json() (string, error) {
	if err := n.isPresent(); err != nil {
		return "", err
	}
	text, err := host.Current().Event.JSON(n.version)
	return text, fault(err)
}

// isPresent returns an error if another call has begun: the host has the object of that one now.
func (n *notified) isPresent() error {
	if n.call != currentCall {
		return errReturned
	}
	return nil
}

// answered is an object in an answer of the cache or the client.
type answered struct {
	pointers []string
	row      types.Row
}

func (a *answered) fields(pointers []string) ([]host.Text, error) {
	if slices.Equal(pointers, a.pointers) && len(a.row.Fields) == len(pointers) {
		return a.row.Fields, nil
	}
	texts := make([]host.Text, len(pointers))
	for i, pointer := range pointers {
		declared := slices.Index(a.pointers, pointer)
		switch {
		case declared >= 0 && declared < len(a.row.Fields):
			texts[i] = a.row.Fields[declared]
		case a.row.Json.IsSome():
			text, ok, err := at(a.row.Json.Some(), pointer)
			if err != nil {
				return nil, err
			}
			if ok {
				texts[i] = wit.Some(text)
			}
		default:
			return nil, fmt.Errorf("oarlock: %s is not among the fields that were read of %s: %q",
				pointer, a.row.Object.Name, a.pointers)
		}
	}
	return texts, nil
}

func (a *answered) json() (string, error) {
	if a.row.Json.IsNone() {
		return "", fmt.Errorf("oarlock: only the fields %q were read of %s; read it as json.RawMessage for all",
			a.pointers, a.row.Object.Name)
	}
	return a.row.Json.Some(), nil
}
