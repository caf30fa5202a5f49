package main

import (
	"reflect"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

// goFields returns the properties of each type's fields that OpenAPI does not have. First, whether Go writes
// the empty field: "omit" if not, "always" if it does. A pointer has neither: Go writes the value that it
// points to, even if it is empty. Second, the field's number in Protobuf: "pb=3", or "pb=2.5" for a field of
// a struct that only JSON inlines.
func goFields() map[string]map[string]string {
	fields := map[string]map[string]string{}
	seen := map[reflect.Type]bool{}
	var visit func(t reflect.Type)
	visit = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map || t.Kind() == reflect.Array {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct || seen[t] {
			return
		}
		seen[t] = true
		of := map[string]string{}
		fields[short(openAPIName(t))] = of
		for _, field := range reflect.VisibleFields(t) {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			visit(field.Type)
			if name == "" || name == "-" {
				continue
			}
			omitEmpty, omitZero := strings.Contains(options, "omitempty"), strings.Contains(options, "omitzero")
			switch field.Type.Kind() {
			case reflect.Pointer, reflect.Interface:
				of[name] = ""
			case reflect.Struct:
				if omitZero {
					of[name] = "omit"
				} else {
					of[name] = "always"
				}
			default:
				if omitEmpty || omitZero {
					of[name] = "omit"
				} else {
					of[name] = "always"
				}
			}
			if number := protobufNumber(t, field.Index); number != "" {
				of[name] = strings.TrimSpace(of[name] + " pb=" + number)
			}
		}
	}
	for _, t := range scheme.Scheme.AllKnownTypes() {
		visit(t)
	}
	visit(reflect.TypeFor[apiextensions.CustomResourceDefinition]())
	visit(reflect.TypeFor[metav1.ObjectMeta]())
	return fields
}

// openAPIName returns io.k8s.api.core.v1.Pod for k8s.io/api/core/v1.Pod.
func openAPIName(t reflect.Type) string {
	path := strings.Replace(t.PkgPath(), "k8s.io/", "io.k8s.", 1)
	return strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

// protobufNumber returns the numbers on the path to a field, which may be promoted from embedded structs;
// empty if a number is missing.
func protobufNumber(t reflect.Type, index []int) string {
	var numbers []string
	for at := range index {
		tag := t.FieldByIndex(index[:at+1]).Tag.Get("protobuf")
		parts := strings.Split(tag, ",")
		if len(parts) < 2 {
			return ""
		}
		numbers = append(numbers, parts[1])
	}
	return strings.Join(numbers, ".")
}
