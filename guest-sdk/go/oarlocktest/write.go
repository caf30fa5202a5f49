package oarlocktest

import (
	"errors"
	"reflect"

	oarlock "oarlock.dev/sdk"
	client "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_client"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	wit "oarlock.dev/sdk/internal/wit/types"
)

func (h clientOf) Apply(target types.GroupVersionResource, key types.ObjectKey, subresource, json string, _ bool, preconditions client.Preconditions) (client.Written, error) {
	body := parse(json)
	return h.write("apply", target, keyOf(key), subresource, body, preconditions, func(there object) (object, error) {
		if there == nil {
			there = object{"metadata": map[string]any{"namespace": key.Namespace, "name": key.Name}}
		}
		return merge(map[string]any(there.clone()), body).(map[string]any), nil
	})
}

func (h clientOf) Patch(target types.GroupVersionResource, key types.ObjectKey, subresource string, kind uint8, text string, preconditions client.Preconditions) (client.Written, error) {
	body := parse(text)
	return h.write("patch", target, keyOf(key), subresource, body, preconditions, func(there object) (object, error) {
		switch {
		case there == nil:
			return nil, failed(oarlock.ErrNotFound, "no %s %v", target.Plural, keyOf(key))
		case kind == client.PatchKind_JsonPatch:
			return nil, errors.New("oarlocktest has no JSON patches; use a merge patch, or a case of `oarlock plugin test`")
		}
		return merge(map[string]any(there.clone()), body).(map[string]any), nil
	})
}

func (h clientOf) Replace(target types.GroupVersionResource, key types.ObjectKey, subresource, json string) (client.Written, error) {
	made, _ := objectFrom(parse(json))
	version := wit.Some(made.ref().ResourceVersion)
	preconditions := client.Preconditions{Uid: wit.None[string](), ResourceVersion: version}
	return h.write("replace", target, keyOf(key), subresource, made, preconditions, func(there object) (object, error) {
		if there == nil {
			return nil, failed(oarlock.ErrNotFound, "no %s %v", target.Plural, keyOf(key))
		}
		return made, nil
	})
}

func (h clientOf) Delete(target types.GroupVersionResource, key types.ObjectKey, propagation uint8, _ wit.Option[uint32], preconditions client.Preconditions) error {
	_, err := h.write("delete", target, keyOf(key), "", oarlock.Propagation(propagation), preconditions, func(there object) (object, error) {
		if there == nil {
			return nil, failed(oarlock.ErrNotFound, "no %s %v", target.Plural, keyOf(key))
		}
		return nil, nil
	})
	return err
}

// write notes a write and makes it: change returns the object that the write makes of the one that is
// there.
func (h clientOf) write(verb string, target types.GroupVersionResource, key oarlock.ObjectKey, subresource string, body any, preconditions client.Preconditions, change func(object) (object, error)) (client.Written, error) {
	resource := targetOf(target)
	there := h.cluster.get(resource, key)
	note := Write{Verb: verb, Target: resource, Subresource: subresource, Key: key, Body: body}
	if made, isObject := body.(object); isObject {
		note.Body = map[string]any(made.clone())
	}
	made, err := change(there)
	switch {
	case h.nextError != nil:
		err = failed(h.nextError, "as the test wants")
		h.nextError = nil
	case err == nil && there != nil:
		err = unmet(there, preconditions)
	}
	note.Err = err
	h.writes = append(h.writes, note)
	if err != nil {
		return client.Written{}, err
	}
	if verb == "delete" {
		h.remove(resource, key)
		return client.Written{}, nil
	}
	if there != nil {
		made = limited(there, made, subresource)
		if reflect.DeepEqual(there, made) {
			ref := there.ref()
			return client.Written{Name: ref.Name, Uid: ref.Uid, ResourceVersion: ref.ResourceVersion}, nil
		}
	}
	h.put(resource, made, &note)
	ref := made.ref()
	return client.Written{Name: ref.Name, Uid: ref.Uid, ResourceVersion: ref.ResourceVersion}, nil
}

// limited returns the object that a write to a subresource makes: status and the rest do not touch each
// other, if the object has a status.
func limited(there, made object, subresource string) object {
	from, base := made, there
	switch {
	case subresource == "status":
	case subresource == "scale":
		limited := there.clone()
		replicas, _ := made.at("/spec/replicas")
		spec, _ := limited["spec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
		}
		spec["replicas"] = replicas
		limited["spec"] = spec
		return limited
	default:
		from, base = there, made
	}
	limited := base.clone()
	if status, ok := from["status"]; ok {
		limited["status"] = status
	} else {
		delete(limited, "status")
	}
	return limited
}

func unmet(there object, preconditions client.Preconditions) error {
	ref := there.ref()
	if uid := preconditions.Uid; uid.IsSome() && uid.Some() != ref.Uid {
		return failed(oarlock.ErrConflict, "%v has another uid", there.key())
	}
	if version := preconditions.ResourceVersion; version.IsSome() && version.Some() != ref.ResourceVersion {
		return failed(oarlock.ErrConflict, "%v has changed", there.key())
	}
	return nil
}

// merge applies a JSON merge patch.
func merge(there, patch any) any {
	fields, isObject := patch.(map[string]any)
	if !isObject {
		return patch
	}
	merged, isObject := there.(map[string]any)
	if !isObject {
		merged = map[string]any{}
	}
	for name, value := range fields {
		if value == nil {
			delete(merged, name)
		} else {
			merged[name] = merge(merged[name], value)
		}
	}
	return merged
}

func keyOf(key types.ObjectKey) oarlock.ObjectKey {
	return oarlock.ObjectKey{Namespace: key.Namespace, Name: key.Name}
}
