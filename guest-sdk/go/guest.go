package oarlock

import (
	"errors"
	"fmt"

	"oarlock.dev/sdk/internal/host"
	handler "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_handler"
	metadata "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_metadata"
	reconciler "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_reconciler"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	queue "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_work_queue"
)

// currentCall is the number of the call that the plugin handles.
var currentCall uint64

func init() {
	host.NewGuest = func(setup any) host.Guest { return &guest{setup: setup.(func(*Plugin) error)} }
}

// guest is the registered plugin as the host calls it.
type guest struct {
	setup func(*Plugin) error
	// plugin is what setup filled in, once it has succeeded.
	plugin *Plugin
}

// prepared returns the plugin after setup.
func (g *guest) prepared() (*Plugin, error) {
	currentCall++
	if g.plugin != nil {
		return g.plugin, nil
	}
	plugin := &Plugin{}
	if err := g.setup(plugin); err != nil {
		return nil, err
	}
	if plugin.Name == "" || plugin.Version == "" {
		plugin.declared.fail(errorf("the plugin needs a Name and a Version"))
	}
	if plugin.declared.enqueues && plugin.Reconciler == nil {
		plugin.declared.fail(errorf("subscriptions or schedules add keys to the work queue, but the plugin has no Reconciler"))
	}
	if err := plugin.declared.err(); err != nil {
		return nil, err
	}
	g.plugin = plugin
	return plugin, nil
}

func (g *guest) Describe() (metadata.Description, error) {
	plugin, err := g.prepared()
	if err != nil {
		return metadata.Description{}, err
	}
	if err := worldFits(plugin); err != nil {
		return metadata.Description{}, err
	}
	description := plugin.declared.description
	description.Name, description.Version, description.Stateless = plugin.Name, plugin.Version, plugin.Stateless
	return description, nil
}

func (g *guest) watch(subscription string) (watch, error) {
	plugin, err := g.prepared()
	if err != nil {
		return nil, err
	}
	watch, ok := plugin.watches[subscription]
	if !ok {
		return nil, Terminal(fmt.Errorf("no handler for subscription %q", subscription))
	}
	return watch, nil
}

func (g *guest) OnAdd(added handler.Added) error {
	watch, err := g.watch(added.Subscription)
	if err != nil {
		return err
	}
	return watch.onAdd(added)
}

func (g *guest) OnUpdate(updated handler.Updated) error {
	watch, err := g.watch(updated.Subscription)
	if err != nil {
		return err
	}
	return watch.onUpdate(updated)
}

func (g *guest) OnDelete(deleted handler.Deleted) error {
	watch, err := g.watch(deleted.Subscription)
	if err != nil {
		return err
	}
	return watch.onDelete(deleted)
}

func (g *guest) OnSynced(synced handler.Synced) error {
	plugin, err := g.prepared()
	if err != nil || plugin.Synced == nil {
		return err
	}
	return plugin.Synced(Synced{Subscription: synced.Subscription, Remaining: int(synced.Remaining)})
}

func (g *guest) Reconcile(key queue.WorkKey) (reconciler.Outcome, error) {
	plugin, err := g.prepared()
	if err != nil {
		return reconciler.Outcome{}, err
	}
	if plugin.Reconciler == nil {
		return reconciler.Outcome{}, Terminal(errors.New("a key was added to the work queue, but the plugin has no Reconciler"))
	}
	result, err := plugin.Reconciler.Reconcile(WorkKey{key.Kind, ObjectKey{key.Object.Namespace, key.Object.Name}})
	if err != nil {
		return reconciler.Outcome{}, err
	}
	if result.RequeueAfter > 0 {
		return reconciler.MakeOutcomeRequeueAfter(milliseconds(result.RequeueAfter)), nil
	}
	return reconciler.MakeOutcomeDone(), nil
}

func (g *guest) Failure(err error) types.Failure {
	return failure(err)
}

// world is the world of the component, which the build sets with -ldflags=-X; empty in a native test.
var world string

// worldFits returns an error if the component does not export what the plugin handles.
func worldFits(plugin *Plugin) error {
	const hint = `%s, but the component is of the world %q: write world = "plugin" in oarlock.toml`
	switch {
	case world == "handler-plugin" && plugin.Reconciler != nil:
		return errorf(hint, "the plugin has a Reconciler", world)
	case world == "reconciler-plugin" && len(plugin.watches) > 0:
		return errorf(hint, "the plugin handles notifications with Watch", world)
	case world == "reconciler-plugin" && plugin.Synced != nil:
		return errorf(hint, "the plugin has a function Synced", world)
	}
	return nil
}
