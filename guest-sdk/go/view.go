package oarlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
)

// tag is the key of the struct tag with a field's JSON pointer.
const tag = "pointer"

// view is the part of an object that a type asks for.
type view struct {
	// pointers are those of a struct's fields.
	pointers []string
	// fields are the places of these fields in the struct.
	fields [][]int
	// keys is true for struct{}, which has no part of the object.
	keys bool
	// err says what is wrong with the type.
	err error
}

// views has the views that were made.
var views sync.Map // reflect.Type → view

// viewOf returns the view of a type: the fields with a pointer, or else the whole object.
func viewOf[T any]() view {
	kind := reflect.TypeFor[T]()
	if known, ok := views.Load(kind); ok {
		return known.(view)
	}
	made := newView(kind)
	views.Store(kind, made)
	return made
}

func newView(kind reflect.Type) view {
	if kind.Kind() != reflect.Struct {
		return view{}
	}
	if kind.NumField() == 0 {
		return view{keys: true}
	}
	var v view
	for _, field := range reflect.VisibleFields(kind) {
		pointer, ok := field.Tag.Lookup(tag)
		if !ok {
			continue
		}
		switch {
		case !field.IsExported():
			v.fail("field %s of %v has a pointer and is not exported", field.Name, kind)
		case !strings.HasPrefix(pointer, "/"):
			v.fail("field %s of %v: the JSON pointer %q does not begin with /", field.Name, kind, pointer)
		case throughPointer(kind, field.Index):
			v.fail("field %s of %v is that of an embedded pointer: embed the struct itself", field.Name, kind)
		}
		v.pointers = append(v.pointers, pointer)
		v.fields = append(v.fields, field.Index)
	}
	return v
}

// fail notes an error.
func (v *view) fail(format string, arguments ...any) {
	v.err = errors.Join(v.err, errorf(format, arguments...))
}

// throughPointer returns whether a field is one of an embedded pointer, which may be nil.
func throughPointer(kind reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if kind = kind.Field(i).Type; kind.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

// view returns a view, and notes its error.
func (p *Plugin) view(v view) view {
	if v.err != nil {
		p.declared.fail(v.err)
	}
	return v
}

// projection returns the view as the contract has it.
func (v view) projection() types.Projection {
	switch {
	case v.keys:
		return types.MakeProjectionKeys()
	case len(v.pointers) > 0:
		return types.MakeProjectionFields(v.pointers)
	default:
		return types.MakeProjectionJson()
	}
}

// decode decodes JSON text into a value. The common simple values take a short way.
func decode(text string, into any) error {
	switch into := into.(type) {
	case *json.RawMessage:
		*into = json.RawMessage(text)
		return nil
	case *string:
		if plain, ok := plainString(text); ok {
			*into = plain
			return nil
		}
	case *bool:
		if text == "true" || text == "false" {
			*into = text == "true"
			return nil
		}
	}
	return json.Unmarshal([]byte(text), into)
}

// plainString returns the string that a JSON text of a string without escapes stands for.
func plainString(text string) (string, bool) {
	if len(text) < 2 || text[0] != '"' || strings.IndexByte(text, '\\') >= 0 {
		return "", false
	}
	return text[1 : len(text)-1], true
}

func invalid(format string, arguments ...any) error {
	return &Error{Kind: ErrInvalid, Message: fmt.Sprintf(format, arguments...)}
}
