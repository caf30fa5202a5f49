package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"

	oarlock "oarlock.dev/sdk"
)

// mirrored has what the plugin reads and writes of one kind.
type mirrored struct {
	kind
	lister     *oarlock.Lister[map[string]any]
	client     *oarlock.Client[map[string]any]
	recorder   oarlock.Recorder
	namespaces *oarlock.Lister[namespace]
	excluded   []string
}

// namespace is the part of a Namespace that mirror reads.
type namespace struct {
	Deleted *string `pointer:"/metadata/deletionTimestamp"`
}

// reconcile makes the copies of one source match its annotation. A source that does not exist has no
// copies.
func (m mirrored) reconcile(source oarlock.ObjectKey) error {
	found, err := m.lister.Get(source)
	if oarlock.IgnoreNotFound(err) != nil {
		return err
	}
	var object map[string]any
	var wanted []string
	if err == nil {
		if object, err = found.Value(); err != nil {
			return oarlock.Terminal(err)
		}
		if annotation, ok := annotationOf(object); ok {
			existing, err := m.existing()
			if err != nil {
				return err
			}
			wanted = targets(annotation, source.Namespace, existing, m.excluded)
		}
	}
	there := map[string]oarlock.Object[map[string]any]{}
	for row, err := range m.lister.ByIndex(m.copies, source.String()) {
		if err != nil {
			return err
		}
		// An object with another name is not a copy, whatever its annotation says.
		if row.Name != source.Name || row.Namespace == source.Namespace {
			continue
		}
		there[row.Namespace] = row
		if !slices.Contains(wanted, row.Namespace) {
			if err := m.delete(source, row.ObjectRef); err != nil {
				return err
			}
		}
	}
	for _, namespace := range wanted {
		row, exists := there[namespace]
		if exists {
			err = m.update(source, object, row)
		} else {
			err = m.create(source, object, found.ObjectRef, namespace)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// existing returns the namespaces that can be written to: those that are not on their way out.
func (m mirrored) existing() ([]string, error) {
	var names []string
	for row, err := range m.namespaces.List("") {
		if err != nil {
			return nil, err
		}
		value, err := row.Value()
		if err != nil {
			return nil, err
		}
		if value.Deleted == nil {
			names = append(names, row.Name)
		}
	}
	return names, nil
}

func (m mirrored) create(source oarlock.ObjectKey, object map[string]any, regarding oarlock.ObjectRef, namespace string) error {
	_, err := m.client.Create(namespace, copyOf(m.kind, object, source, namespace))
	if err == nil {
		slog.Info("copied", "kind", m.name, "source", source, "to", namespace)
	}
	if !errors.Is(err, oarlock.ErrAlreadyExists) {
		return err
	}
	// Either the cache does not have mirror's own copy yet, or another object has the name.
	existing, err := m.client.Get(oarlock.ObjectKey{Namespace: namespace, Name: source.Name})
	if errors.Is(err, oarlock.ErrNotFound) {
		return fmt.Errorf("the object in %s was just deleted", namespace)
	}
	if err != nil {
		return err
	}
	value, err := existing.Value()
	if err != nil {
		return err
	}
	if belongsTo(value, source) {
		return fmt.Errorf("the copy in %s is not in the cache yet", namespace)
	}
	m.refuse(source, regarding, namespace)
	return nil
}

func (m mirrored) update(source oarlock.ObjectKey, object map[string]any, row oarlock.Object[map[string]any]) error {
	there, err := row.Value()
	if err != nil {
		return oarlock.Terminal(err)
	}
	if there["type"] != object["type"] {
		// The API server does not allow to change the type of a Secret. The notification of this delete
		// reconciles the source again, which creates the copy.
		return m.delete(source, row.ObjectRef)
	}
	patch := difference(m.kind, there, object)
	if patch == nil {
		return nil
	}
	if _, err := m.client.Patch(row.Key(), oarlock.MergePatch(patch), row.Unchanged()); err != nil {
		return err
	}
	slog.Info("updated", "kind", m.name, "source", source, "in", row.Namespace)
	return nil
}

func (m mirrored) delete(source oarlock.ObjectKey, object oarlock.ObjectRef) error {
	err := m.client.Delete(object.Key(), oarlock.DeleteOptions{Preconditions: object.Unchanged()})
	if oarlock.IgnoreNotFound(err) != nil {
		return err
	}
	slog.Info("deleted", "kind", m.name, "source", source, "in", object.Namespace)
	return nil
}

// refuse logs, and records as an Event of the source, that an object of another owner has the name of the
// copy.
func (m mirrored) refuse(source oarlock.ObjectKey, regarding oarlock.ObjectRef, namespace string) {
	slog.Warn("not overwritten", "kind", m.name, "source", source, "in", namespace)
	err := m.recorder.Eventf(regarding, oarlock.Warning, "MirrorRefused",
		"%s %s/%s exists and is not a copy of this object", m.name, namespace, source.Name)
	if err != nil {
		slog.Warn("no event recorded", "error", err)
	}
}
