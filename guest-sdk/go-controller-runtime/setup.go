// Package oarlockctrl runs reconcilers that were written for sigs.k8s.io/controller-runtime as an Oarlock
// plugin.
//
// It has a manager.Manager whose cache and client are those of the host. Controllers are built by
// controller-runtime's own builder, with its own sources, predicates and event handlers; only main.go
// changes:
//
//	func init() {
//		oarlock.Register(oarlockctrl.Setup(oarlockctrl.Options{
//			Name: "guestbook", Version: "0.1.0", Scheme: scheme,
//		}, func(mgr ctrl.Manager) error {
//			r := &controller.GuestbookReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}
//			return r.SetupWithManager(mgr)
//		}))
//	}
//
//	func main() {}
//
// Requests of controllers are keys of the host's work queue: the host delays, retries, parks and shows
// them. There is no leader election, no webhook and no metrics server; the host is what they are for.
package oarlockctrl

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	oarlock "oarlock.dev/sdk"
)

// Options describe the plugin.
type Options struct {
	// Name and Version are those of the component.
	Name, Version string
	// Scheme has the types of the reconcilers. Nil means the one of client-go, with all built-in types.
	Scheme *runtime.Scheme
	// Namespace restricts watches to one namespace. Empty means all that the account may read.
	Namespace string
	// Stateless says that the reconcilers can lose everything they keep between calls; see oarlock.Plugin.
	Stateless bool
	// Requests are what the reconcilers write, and read without watching it: what the markers
	// +kubebuilder:rbac say. `oarlock rbac` prints a Role for them. They grant nothing by themselves.
	Requests []oarlock.Request
	// Resources are the resources of kinds whose plural name is not the usual one.
	Resources map[schema.GroupVersionKind]oarlock.GroupVersionResource
	// ClusterScoped are the cluster-scoped kinds among one's own. Those of Kubernetes are known.
	ClusterScoped []schema.GroupKind
}

// Setup returns the function for oarlock.Register. The function that it gets is what main did between
// making the manager and starting it.
func Setup(options Options, add func(manager.Manager) error) func(*oarlock.Plugin) error {
	return func(p *oarlock.Plugin) error {
		p.Name, p.Version, p.Stateless = options.Name, options.Version, options.Stateless
		if options.Scheme == nil {
			options.Scheme = scheme.Scheme
		}
		ctrllog.SetLogger(logr.FromSlogHandler(oarlock.LogHandler()))
		m := newManager(p, options)
		if err := add(m); err != nil {
			return err
		}
		if len(m.controllers) == 0 {
			return errors.New("no controller was added to the manager")
		}
		for _, c := range m.controllers {
			if err := c.start(m.context); err != nil {
				return fmt.Errorf("controller %s: %w", c.name, err)
			}
		}
		m.informers.declare()
		for _, request := range options.Requests {
			p.Request(request)
		}
		p.Reconciler = oarlock.ReconcilerFunc(m.reconcile)
		return nil
	}
}

// reconcile calls the reconciler of the controller that a key names.
func (m *hosted) reconcile(key oarlock.WorkKey) (oarlock.Result, error) {
	c, ok := m.controllers[key.Kind]
	if !ok {
		return oarlock.Result{}, oarlock.Terminal(fmt.Errorf("there is no controller %q", key.Kind))
	}
	m.client.begin()
	request := reconcile.Request{}
	request.Namespace, request.Name = key.Namespace, key.Name
	log := m.GetLogger().WithValues("controller", c.name, "namespace", key.Namespace, "name", key.Name)
	result, err := c.Reconcile(ctrllog.IntoContext(m.context, log), request)
	switch {
	case errors.Is(err, reconcile.TerminalError(nil)):
		return oarlock.Result{}, oarlock.Terminal(err)
	case err != nil:
		return oarlock.Result{}, err
	case result.RequeueAfter > 0:
		return oarlock.Result{RequeueAfter: result.RequeueAfter}, nil
	case result.Requeue: //nolint:staticcheck // reconcilers still use it
		return oarlock.Result{}, errors.New("the reconciler asked to be called again")
	}
	return oarlock.Result{}, nil
}

func newManager(p *oarlock.Plugin, options Options) *hosted {
	m := &hosted{
		plugin: p, scheme: options.Scheme, mapper: newMapper(options), context: context.Background(),
		controllers: map[string]*controller{},
	}
	m.informers = &informers{hosted: m, namespace: options.Namespace, byKind: map[schema.GroupVersionKind]*informer{}}
	m.client = &client{hosted: m}
	return m
}
