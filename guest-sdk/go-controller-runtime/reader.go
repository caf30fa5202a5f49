package oarlockctrl

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrlclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	oarlock "oarlock.dev/sdk"
)

type (
	raw    = json.RawMessage
	object = oarlock.Object[raw]
)

// Get reads an object that is watched.
func (i *informers) Get(ctx context.Context, key ctrlclient.ObjectKey, obj ctrlclient.Object, _ ...ctrlclient.GetOption) error {
	_, err := i.get(key, obj)
	return err
}

// List reads objects that are watched.
func (i *informers) List(ctx context.Context, list ctrlclient.ObjectList, options ...ctrlclient.ListOption) error {
	return i.hosted.list(list, options, func(kind schema.GroupVersionKind, chosen ctrlclient.ListOptions) (iter.Seq2[object, error], fieldFilter, error) {
		found, ok := i.watched(kind)
		if !ok {
			return nil, nil, fmt.Errorf("%v is not watched", kind)
		}
		return found.list(chosen), found.filter, nil
	})
}

// watched returns the informer of a kind, if there is one.
func (i *informers) watched(kind schema.GroupVersionKind) (*informer, bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	found, ok := i.byKind[kind]
	return found, ok && found.lister != nil
}

// get reads an object that is watched, and returns its text.
func (i *informers) get(key ctrlclient.ObjectKey, obj ctrlclient.Object) (string, error) {
	kind, err := apiutil.GVKForObject(obj, i.scheme)
	if err != nil {
		return "", err
	}
	found, ok := i.watched(kind)
	if !ok {
		return "", fmt.Errorf("%v is not watched", kind)
	}
	row, err := found.lister.Get(oarlock.ObjectKey{Namespace: key.Namespace, Name: key.Name})
	if err != nil {
		return "", fault(err)
	}
	text, err := row.JSON()
	if err != nil {
		return "", err
	}
	return text, decodeInto(text, obj)
}

func (i *informer) list(chosen ctrlclient.ListOptions) iter.Seq2[object, error] {
	lister := i.lister
	if chosen.Namespace != "" {
		lister = lister.InNamespace(chosen.Namespace)
	}
	return lister.List(selectorText(chosen))
}

// filter returns whether an object has a value in an index.
func (i *informer) filter(field, value string) (func(ctrlclient.Object) bool, error) {
	extract, ok := i.indices[field]
	if !ok {
		return nil, fmt.Errorf("%v has no index %q; declare it with mgr.GetFieldIndexer()", i.kind, field)
	}
	return func(obj ctrlclient.Object) bool { return slices.Contains(extract(obj), value) }, nil
}

// live reads from the API server.
type live struct {
	*hosted
}

// Get asks for an object.
func (l *live) Get(_ context.Context, key ctrlclient.ObjectKey, obj ctrlclient.Object, _ ...ctrlclient.GetOption) error {
	_, err := l.get(key, obj, "")
	return err
}

func (l *live) get(key ctrlclient.ObjectKey, obj ctrlclient.Object, subresource string) (string, error) {
	client, err := l.clientFor(obj)
	if err != nil {
		return "", err
	}
	if subresource != "" {
		client = client.Subresource(subresource)
	}
	row, err := client.Get(oarlock.ObjectKey{Namespace: key.Namespace, Name: key.Name})
	if err != nil {
		return "", fault(err)
	}
	text, err := row.JSON()
	if err != nil {
		return "", err
	}
	return text, decodeInto(text, obj)
}

// List asks for objects.
func (l *live) List(_ context.Context, list ctrlclient.ObjectList, options ...ctrlclient.ListOption) error {
	return l.list(list, options, func(kind schema.GroupVersionKind, chosen ctrlclient.ListOptions) (iter.Seq2[object, error], fieldFilter, error) {
		client := oarlock.NewClient[raw](nil, l.mapper.resource(kind))
		if chosen.Namespace != "" {
			client = client.InNamespace(chosen.Namespace)
		}
		fields := ""
		if chosen.FieldSelector != nil {
			fields = chosen.FieldSelector.String()
		}
		return client.List(selectorText(chosen), fields), nil, nil
	})
}

// fieldFilter returns whether an object has a value in a field.
type fieldFilter func(field, value string) (func(ctrlclient.Object) bool, error)

// list reads objects into a list. The filter is nil if the rows are filtered by field already.
func (m *hosted) list(
	list ctrlclient.ObjectList, options []ctrlclient.ListOption,
	read func(schema.GroupVersionKind, ctrlclient.ListOptions) (iter.Seq2[object, error], fieldFilter, error),
) error {
	var chosen ctrlclient.ListOptions
	chosen.ApplyOptions(options)
	kind, err := apiutil.GVKForObject(list, m.scheme)
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	rows, filter, err := read(kind, chosen)
	if err != nil {
		return err
	}
	tests, err := fieldTests(chosen, filter)
	if err != nil {
		return err
	}
	items := []runtime.Object{}
	for row, err := range rows {
		if err != nil {
			return fault(err)
		}
		text, err := row.JSON()
		if err != nil {
			return err
		}
		item, err := m.newItem(list, kind)
		if err != nil {
			return err
		}
		if err := decodeInto(text, item); err != nil {
			return err
		}
		isWanted := !slices.ContainsFunc(tests, func(test func(ctrlclient.Object) bool) bool { return !test(item) })
		if isWanted {
			m.client.remember(kind, item, text)
			items = append(items, item)
		}
		if chosen.Limit > 0 && int64(len(items)) == chosen.Limit {
			break
		}
	}
	return meta.SetList(list, items)
}

// fieldTests returns the tests of a field selector.
func fieldTests(chosen ctrlclient.ListOptions, filter fieldFilter) (tests []func(ctrlclient.Object) bool, err error) {
	if chosen.FieldSelector == nil || filter == nil {
		return nil, nil
	}
	for _, requirement := range chosen.FieldSelector.Requirements() {
		wanted := requirement.Value
		var test func(ctrlclient.Object) bool
		switch requirement.Field {
		case "metadata.name":
			test = func(obj ctrlclient.Object) bool { return obj.GetName() == wanted }
		case "metadata.namespace":
			test = func(obj ctrlclient.Object) bool { return obj.GetNamespace() == wanted }
		default:
			if test, err = filter(requirement.Field, wanted); err != nil {
				return nil, err
			}
		}
		tests = append(tests, test)
	}
	return tests, nil
}

func (m *hosted) newItem(list ctrlclient.ObjectList, kind schema.GroupVersionKind) (ctrlclient.Object, error) {
	switch list.(type) {
	case *unstructured.UnstructuredList:
		return &unstructured.Unstructured{}, nil
	case *metav1.PartialObjectMetadataList:
		return &metav1.PartialObjectMetadata{}, nil
	}
	made, err := m.scheme.New(kind)
	if err != nil {
		return nil, err
	}
	obj, ok := made.(ctrlclient.Object)
	if !ok {
		return nil, fmt.Errorf("%T is no object", made)
	}
	return obj, nil
}

func (m *hosted) clientFor(obj runtime.Object) (*oarlock.Client[raw], error) {
	kind, err := apiutil.GVKForObject(obj, m.scheme)
	if err != nil {
		return nil, err
	}
	return oarlock.NewClient[raw](nil, m.mapper.resource(kind)), nil
}

func selectorText(chosen ctrlclient.ListOptions) string {
	if chosen.LabelSelector == nil {
		return ""
	}
	return chosen.LabelSelector.String()
}

// decodeInto decodes an object, as if it were a new one.
func decodeInto(text string, obj ctrlclient.Object) error {
	if _, ok := obj.(*unstructured.Unstructured); !ok {
		reflect.ValueOf(obj).Elem().SetZero()
	}
	return json.Unmarshal([]byte(text), obj)
}
