// A plugin that keeps ConfigMaps and Secrets as copies in other namespaces.
//
// It copies an object with the annotation `oarlock.dev/mirror-to: "team-a,team-b"` (or `*`) into those
// namespaces, as long as the object and its annotation exist. Every change of a source, a copy or a
// namespace leads to the same comparison, with data from the cache: the copies that a source should have,
// and the copies that it has. So the plugin keeps no state, and reaches the correct state after any number
// of missed events.
package main

import (
	"errors"
	"time"

	oarlock "oarlock.dev/sdk"
)

// resync is the interval at which a source is reconciled without an event: an object that prevented a copy
// may be gone.
const resync = 300 * time.Second

// allSourcesAfter is the delay after which all sources are reconciled for Namespaces that are delivered as
// initial adds, of which many follow each other.
const allSourcesAfter = time.Second

// allSources is the only key of the work queue: it stands for all sources.
var allSources = oarlock.WorkKey{Kind: "all-sources"}

// mirror reconciles the sources of both kinds.
type mirror []mirrored

func setup(p *oarlock.Plugin) error {
	p.Name, p.Version, p.Stateless = "mirror", "0.1.0", true
	var config struct {
		ExcludedNamespaces []string `json:"excludedNamespaces"`
	}
	if err := oarlock.Config(&config); err != nil {
		return err
	}
	namespaces := oarlock.GVR("", "v1", "namespaces")
	existing := oarlock.NewLister[namespace](p, oarlock.Read{Target: namespaces})
	var m mirror
	for _, k := range kinds {
		isSource := oarlock.Pointer("metadata", "annotations", mirrorTo)
		isCopy := oarlock.Pointer("metadata", "annotations", mirroredFrom)
		of := mirrored{
			kind: k,
			lister: oarlock.NewLister[map[string]any](p, oarlock.Read{Target: k.target(), Indices: oarlock.Indices{
				k.sources: oarlock.ByPointer(isSource), k.copies: oarlock.ByPointer(isCopy),
			}}),
			client:     oarlock.NewClient[map[string]any](p, k.target(), "get", "create", "patch", "delete"),
			recorder:   oarlock.Recorder{Target: k.target(), Kind: k.name},
			namespaces: existing,
			excluded:   config.ExcludedNamespaces,
		}
		m = append(m, of)
		oarlock.Watch(p, oarlock.Subscription{
			Name: k.sources, Target: k.target(), Conditions: []oarlock.Condition{oarlock.Exists(isSource)}, Resync: resync,
		}, sources(of))
		oarlock.Watch(p, oarlock.Subscription{
			Name: k.copies, Target: k.target(), Conditions: []oarlock.Condition{oarlock.Exists(isCopy)},
		}, copies(of))
	}
	oarlock.Watch(p, oarlock.Subscription{Target: namespaces}, oarlock.HandlerFuncs[any]{
		AddFunc: func(added oarlock.Added[any]) error {
			if added.InInitialList {
				// The account may see Namespaces only now, after it was notified of the sources.
				return oarlock.AddKeyAfter(allSources, allSourcesAfter)
			}
			return m.reconcileAll()
		},
	})
	p.Synced = func(synced oarlock.Synced) error {
		if synced.Remaining > 0 {
			return nil
		}
		return m.deleteOrphans()
	}
	p.Reconciler = oarlock.ReconcilerFunc(func(oarlock.WorkKey) (oarlock.Result, error) {
		return oarlock.Result{}, m.reconcileAll()
	})
	return nil
}

// sources handles the notifications of sources.
func sources(m mirrored) oarlock.Handler[any] {
	return oarlock.HandlerFuncs[any]{
		AddFunc:    func(added oarlock.Added[any]) error { return m.reconcile(added.Key()) },
		UpdateFunc: func(updated oarlock.Updated[any]) error { return m.reconcile(updated.New.Key()) },
		DeleteFunc: func(deleted oarlock.Deleted[any]) error { return m.reconcile(deleted.Key()) },
	}
}

// copied is the part of a copy that names its source.
type copied = oarlock.Object[any]

// copies handles the notifications of copies: it reconciles the source that a copy names.
func copies(m mirrored) oarlock.Handler[any] {
	changed := func(object copied) error {
		from, err := oarlock.Get[string](object, oarlock.Pointer("metadata", "annotations", mirroredFrom))
		if err != nil {
			return err
		}
		source, ok := parseSource(from)
		if !ok {
			return nil
		}
		return m.reconcile(source)
	}
	return oarlock.HandlerFuncs[any]{
		AddFunc: func(added oarlock.Added[any]) error { return changed(added.Object) },
		UpdateFunc: func(updated oarlock.Updated[any]) error {
			// A copy whose annotation a user changed belongs to another source now: both sources are
			// reconciled.
			return errors.Join(changed(updated.Old), changed(updated.New))
		},
		DeleteFunc: func(deleted oarlock.Deleted[any]) error { return changed(deleted.Object) },
	}
}

// reconcileAll reconciles all sources, for Namespaces that mirror did not know.
func (m mirror) reconcileAll() error {
	for _, of := range m {
		annotations, err := of.lister.IndexValues(of.sources)
		if err != nil {
			return err
		}
		for _, annotation := range annotations {
			for source, err := range oarlock.As[struct{}](of.lister).ByIndex(of.sources, annotation) {
				if err != nil {
					return err
				}
				if err := of.reconcile(source.Key()); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// deleteOrphans deletes the copies of sources that were deleted while the plugin did not run.
func (m mirror) deleteOrphans() error {
	for _, of := range m {
		values, err := of.lister.IndexValues(of.copies)
		if err != nil {
			return err
		}
		for _, value := range values {
			if source, ok := parseSource(value); ok {
				if err := of.reconcile(source); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func init() { oarlock.Register(setup) }

func main() {}
