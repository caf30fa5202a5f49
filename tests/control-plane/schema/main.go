// Command schema generates the table of built-in types of host/dev-cluster (src/schema/builtin.txt) from the
// OpenAPI documents in the module k8s.io/kubernetes: the fields of each type, their types, and the properties
// that patches and field ownership need (merge keys, list types).
//
// 	go run ./schema -kubernetes "$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)" FILE          writes the table
//  go run ./schema -kubernetes "$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)" -check FILE   exits with 1 if
//  the table is out of date
//
// "cargo xtask builtin-types" runs this command.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The documents of the groups that the embedded API server serves.
var documents = []string{
	"api__v1", "apis__apiextensions.k8s.io__v1", "apis__apps__v1", "apis__authentication.k8s.io__v1",
	"apis__authorization.k8s.io__v1", "apis__autoscaling__v1", "apis__autoscaling__v2", "apis__batch__v1", "apis__certificates.k8s.io__v1", "apis__coordination.k8s.io__v1",
	"apis__discovery.k8s.io__v1", "apis__events.k8s.io__v1", "apis__networking.k8s.io__v1", "apis__policy__v1",
	"apis__rbac.authorization.k8s.io__v1", "apis__scheduling.k8s.io__v1", "apis__storage.k8s.io__v1",
}

// Types that the server reads or writes, but that are the kind of no resource. They belong to every group,
// and are named by their type.
var messageTypes = []string{"DeleteOptions", "Status", "ListMeta"}

// Kinds of messages that are not stored.
var messages = []string{
	"DeleteOptions", "WatchEvent", "APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status",
}

type gvk struct{ Group, Version, Kind string }

type definition struct {
	Type                 string                `json:"type"`
	Format               string                `json:"format"`
	Ref                  string                `json:"$ref"`
	AllOf                []definition          `json:"allOf"`
	OneOf                []definition          `json:"oneOf"`
	Items                *definition           `json:"items"`
	AdditionalProperties *definition           `json:"additionalProperties"`
	Properties           map[string]definition `json:"properties"`
	Required             []string              `json:"required"`
	Default              any                   `json:"default"`

	GVK           []gvk    `json:"x-kubernetes-group-version-kind"`
	ListType      string   `json:"x-kubernetes-list-type"`
	ListMapKeys   []string `json:"x-kubernetes-list-map-keys"`
	MapType       string   `json:"x-kubernetes-map-type"`
	PatchStrategy string   `json:"x-kubernetes-patch-strategy"`
	PatchMergeKey string   `json:"x-kubernetes-patch-merge-key"`
	IntOrString   bool     `json:"x-kubernetes-int-or-string"`
}

func main() {
	check := flag.Bool("check", false, "write nothing, and exit with 1 if the file is out of date")
	kubernetes := flag.String("kubernetes", "", "folder of the module k8s.io/kubernetes (required)")
	flag.Parse()
	if flag.NArg() != 1 || *kubernetes == "" {
		fmt.Fprintln(os.Stderr, "usage: schema -kubernetes FOLDER [-check] FILE")
		os.Exit(2)
	}
	if err := run(flag.Arg(0), *kubernetes, *check); err != nil {
		fmt.Fprintln(os.Stderr, "schema:", err)
		os.Exit(1)
	}
}

func run(path, kubernetes string, check bool) error {
	_, version, _ := strings.Cut(filepath.Base(kubernetes), "@")
	definitions := map[string]definition{}
	for _, name := range documents {
		text, err := os.ReadFile(filepath.Join(kubernetes, "api/openapi-spec/v3", name+"_openapi.json"))
		if err != nil {
			return err
		}
		var document struct {
			Components struct{ Schemas map[string]definition }
		}
		if err := json.Unmarshal(text, &document); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for name, d := range document.Components.Schemas {
			definitions[name] = d
		}
	}
	table := render(definitions, version)
	if !check {
		return os.WriteFile(path, table, 0o644)
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(committed, table) {
		return fmt.Errorf("%s does not match %s: run this command without -check", path, version)
	}
	return nil
}

func render(definitions map[string]definition, version string) []byte {
	wanted := map[string]bool{}
	var want func(name string)
	var visit func(d definition)
	visit = func(d definition) {
		if target := d.reference(); target != "" {
			want(target)
		}
		for _, inner := range []*definition{d.Items, d.AdditionalProperties} {
			if inner != nil {
				visit(*inner)
			}
		}
		for _, field := range d.Properties {
			visit(field)
		}
	}
	want = func(name string) {
		if !wanted[name] && len(definitions[name].Properties) > 0 {
			wanted[name] = true
			visit(definitions[name])
		}
	}
	for name, d := range definitions {
		for _, k := range d.GVK {
			if !slices.Contains(messages, k.Kind) && !strings.HasSuffix(k.Kind, "List") {
				want(name)
			}
		}
	}
	for _, name := range messageTypes {
		want("io.k8s.apimachinery.pkg.apis.meta.v1." + name)
	}
	fields := goFields()
	names := make([]string, 0, len(wanted))
	for name := range wanted {
		names = append(names, name)
	}
	slices.Sort(names)

	var out bytes.Buffer
	fmt.Fprintf(&out, "# Generated by tests/control-plane/schema from k8s.io/kubernetes %s. Do not edit.\n", version)
	for _, name := range names {
		d := definitions[name]
		fmt.Fprint(&out, short(name))
		for _, k := range d.GVK {
			if slices.Contains(messages, k.Kind) {
				continue
			}
			fmt.Fprintf(&out, " kind=%s/%s/%s", k.Group, k.Version, k.Kind)
		}
		if d.MapType == "atomic" {
			fmt.Fprint(&out, " atomic")
		}
		fmt.Fprintln(&out)
		inOrder := make([]string, 0, len(d.Properties))
		for field := range d.Properties {
			inOrder = append(inOrder, field)
		}
		slices.Sort(inOrder)
		for _, field := range inOrder {
			words := d.Properties[field].describe(definitions, slices.Contains(d.Required, field))
			if written := fields[short(name)][field]; written != "" {
				words += " " + written
			}
			fmt.Fprintf(&out, "  %s %s\n", field, words)
		}
	}
	return out.Bytes()
}

// describe returns the rest of a field's line: its type, then its properties.
func (d definition) describe(definitions map[string]definition, required bool) string {
	words := []string{d.typeOf(definitions)}
	if required {
		words = append(words, "required")
	}
	if target, found := definitions[d.reference()]; d.MapType == "atomic" || found && target.MapType == "atomic" {
		words = append(words, "atomic")
	}
	switch d.ListType {
	case "map":
		words = append(words, "list=map("+strings.Join(d.ListMapKeys, ",")+")")
	case "set":
		words = append(words, "list=set")
	}
	if d.PatchStrategy != "" {
		words = append(words, "patch="+d.PatchStrategy)
	}
	if d.PatchMergeKey != "" {
		words = append(words, "key="+d.PatchMergeKey)
	}
	// An empty default only means that the field is not a pointer.
	switch value := d.Default.(type) {
	case nil, map[string]any:
	case string:
		if value != "" {
			words = append(words, "default="+quote(value))
		}
	case float64:
		if value != 0 {
			words = append(words, "default="+quote(value))
		}
	case bool:
		if value {
			words = append(words, "default=true")
		}
	default:
		words = append(words, "default="+quote(value))
	}
	return strings.Join(words, " ")
}

func quote(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // The value was decoded from JSON.
	}
	return strings.ReplaceAll(string(text), " ", "\\u0020")
}

func (d definition) typeOf(definitions map[string]definition) string {
	if target := d.reference(); target != "" {
		inner := definitions[target]
		if len(inner.Properties) > 0 {
			return short(target)
		}
		switch name := short(target); name {
		case "api.resource.Quantity":
			return "quantity"
		case "pkg.util.intstr.IntOrString", "util.intstr.IntOrString":
			return "int-or-string"
		case "meta.v1.Time":
			return "time"
		case "meta.v1.MicroTime":
			return "micro-time"
		case "apiextensions.v1.JSONSchemaPropsOrBool":
			return "schema-or-bool"
		case "apiextensions.v1.JSONSchemaPropsOrArray":
			return "schema-or-list"
		case "apiextensions.v1.JSONSchemaPropsOrStringArray":
			return "schema-or-strings"
		}
		return inner.typeOf(definitions)
	}
	switch {
	case d.Items != nil:
		return "[" + d.Items.typeOf(definitions) + "]"
	case d.AdditionalProperties != nil:
		return "{" + d.AdditionalProperties.typeOf(definitions) + "}"
	case d.IntOrString || d.Format == "int-or-string":
		return "int-or-string"
	case d.Type == "string" && d.Format == "byte":
		return "bytes"
	case d.Type == "string" && d.Format == "date-time":
		return "time"
	case d.Type == "integer" || d.Type == "number" || d.Type == "boolean" || d.Type == "string":
		return d.Type
	default:
		return "any"
	}
}

func (d definition) reference() string {
	ref := d.Ref
	if ref == "" && len(d.AllOf) == 1 {
		ref = d.AllOf[0].Ref
	}
	return strings.TrimPrefix(ref, "#/components/schemas/")
}

// short returns core.v1.Pod for io.k8s.api.core.v1.Pod.
func short(name string) string {
	for _, prefix := range []string{
		"io.k8s.apiextensions-apiserver.pkg.apis.", "io.k8s.apimachinery.pkg.apis.", "io.k8s.apimachinery.pkg.", "io.k8s.api.",
	} {
		if rest, found := strings.CutPrefix(name, prefix); found {
			return rest
		}
	}
	return name
}
