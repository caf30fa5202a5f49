package oarlocktest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	oarlock "oarlock.dev/sdk"
	"oarlock.dev/sdk/internal/host"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	wit "oarlock.dev/sdk/internal/wit/types"
)

// object is an object, as encoding/json decodes it. It is never changed: a write makes another one.
type object map[string]any

// cluster has the objects.
type cluster struct {
	objects map[oarlock.GroupVersionResource]map[oarlock.ObjectKey]object
	version int
}

func (c *cluster) get(target oarlock.GroupVersionResource, key oarlock.ObjectKey) object {
	return c.objects[target][key]
}

// all returns the objects of a resource, by key.
func (c *cluster) all(target oarlock.GroupVersionResource) []object {
	objects := slices.Collect(maps.Values(c.objects[target]))
	slices.SortFunc(objects, func(a, b object) int {
		return strings.Compare(place(a.key()), place(b.key()))
	})
	return objects
}

// place returns a text by which objects are ordered, as the API server does.
func place(key oarlock.ObjectKey) string { return key.Namespace + "\x00" + key.Name }

// put stores an object, with uid, resourceVersion, generation and creationTimestamp, and returns the one
// before.
func (c *cluster) put(target oarlock.GroupVersionResource, made object, now time.Time) object {
	c.version++
	key := made.key()
	old := c.get(target, key)
	metadata := made.metadata()
	metadata["resourceVersion"] = strconv.Itoa(c.version)
	switch {
	case old == nil:
		if metadata["uid"] == nil {
			metadata["uid"] = fmt.Sprintf("uid-%d", c.version)
		}
		if metadata["generation"] == nil {
			metadata["generation"] = 1.0
		}
		if metadata["creationTimestamp"] == nil {
			metadata["creationTimestamp"] = timestamp(now)
		}
	default:
		metadata["uid"] = old.metadata()["uid"]
		metadata["creationTimestamp"] = old.metadata()["creationTimestamp"]
		if old.isLeaving() {
			metadata["deletionTimestamp"] = old.metadata()["deletionTimestamp"]
		}
		generation, _ := old.metadata()["generation"].(float64)
		if !reflect.DeepEqual(old["spec"], made["spec"]) {
			generation++
		}
		metadata["generation"] = generation
	}
	if c.objects[target] == nil {
		c.objects[target] = map[oarlock.ObjectKey]object{}
	}
	c.objects[target][key] = made
	return old
}

// timestamp returns a time as the API server writes it.
func timestamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func (c *cluster) remove(target oarlock.GroupVersionResource, key oarlock.ObjectKey) {
	delete(c.objects[target], key)
}

// objectFrom returns what encoding/json makes of a value.
func objectFrom(what any) (object, error) {
	text, err := json.Marshal(what)
	if err != nil {
		return nil, err
	}
	var made object
	err = json.Unmarshal(text, &made)
	return made, err
}

func (o object) clone() object {
	clone, _ := objectFrom(o) // what came from JSON goes there
	return clone
}

func (o object) metadata() map[string]any {
	metadata, ok := o["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		o["metadata"] = metadata
	}
	return metadata
}

func (o object) hasFinalizers() bool {
	finalizers, _ := o.metadata()["finalizers"].([]any)
	return len(finalizers) > 0
}

// isLeaving returns whether an object waits for its finalizers to be removed.
func (o object) isLeaving() bool { return o.metadata()["deletionTimestamp"] != nil }

func (o object) metadataOnly() object {
	if o == nil {
		return nil
	}
	return object{"apiVersion": o["apiVersion"], "kind": o["kind"], "metadata": o["metadata"]}
}

func (o object) key() oarlock.ObjectKey {
	namespace, _ := o.metadata()["namespace"].(string)
	name, _ := o.metadata()["name"].(string)
	return oarlock.ObjectKey{Namespace: namespace, Name: name}
}

func (o object) ref() types.ObjectRef {
	uid, _ := o.metadata()["uid"].(string)
	version, _ := o.metadata()["resourceVersion"].(string)
	return types.ObjectRef{Namespace: o.key().Namespace, Name: o.key().Name, Uid: uid, ResourceVersion: version}
}

func (o object) labels() map[string]string {
	labels := map[string]string{}
	found, _ := o.metadata()["labels"].(map[string]any)
	for name, value := range found {
		labels[name], _ = value.(string)
	}
	return labels
}

// at returns the value at a JSON pointer.
func (o object) at(pointer string) (any, bool) {
	values := atAll(map[string]any(o), pointer)
	if len(values) == 0 {
		return nil, false
	}
	return values[0], true
}

// atAll returns the values at a JSON pointer, in which * stands for every element of a list.
func atAll(value any, pointer string) []any {
	if pointer == "" {
		return []any{value}
	}
	segment, rest, more := strings.Cut(pointer[1:], "/")
	if more {
		rest = "/" + rest
	}
	segment = strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
	switch value := value.(type) {
	case map[string]any:
		if field, ok := value[segment]; ok {
			return atAll(field, rest)
		}
	case []any:
		if segment == "*" {
			var found []any
			for _, element := range value {
				found = append(found, atAll(element, rest)...)
			}
			return found
		}
		if position, err := strconv.Atoi(segment); err == nil && position >= 0 && position < len(value) {
			return atAll(value[position], rest)
		}
	}
	return nil
}

func (o object) text(pointer string) host.Text {
	value, ok := o.at(pointer)
	if !ok {
		return wit.None[string]()
	}
	return wit.Some(encode(value))
}

func (o object) texts(pointers []string) []host.Text {
	var texts []host.Text
	for _, pointer := range pointers {
		texts = append(texts, o.text(pointer))
	}
	return texts
}

func (o object) controllerOwner(group, kind string) (name string, ok bool) {
	for _, owner := range atAll(map[string]any(o), "/metadata/ownerReferences/*") {
		owner, _ := owner.(map[string]any)
		version, _ := owner["apiVersion"].(string)
		ownerGroup, _, found := strings.Cut(version, "/")
		if !found {
			ownerGroup = ""
		}
		if owner["controller"] == true && owner["kind"] == kind && ownerGroup == group {
			name, ok = owner["name"].(string)
			return name, ok
		}
	}
	return "", false
}

func encode(value any) string {
	text, _ := json.Marshal(value) // what came from JSON goes there
	return string(text)
}

func cut(text string) (before, after string, found bool) {
	return strings.Cut(text, "/")
}

func targetOf(target types.GroupVersionResource) oarlock.GroupVersionResource {
	return oarlock.GVR(target.Group, target.Version, target.Plural)
}
