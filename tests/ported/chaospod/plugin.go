// The reconciler of controller-runtime's examples/crd, as an Oarlock plugin: for each ChaosPod it creates a
// Pod, deletes it after a while, and creates it again. controller.go is examples/crd/main.go, without its
// function main.
package main

//go:generate -command fetch go run oarlock.dev/controller-runtime/fetch
//go:generate fetch sigs.k8s.io/controller-runtime examples/crd/main.go controller.go

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	api "sigs.k8s.io/controller-runtime/examples/crd/pkg"

	oarlockctrl "oarlock.dev/controller-runtime"
	oarlock "oarlock.dev/sdk"
)

func init() {
	oarlock.Register(oarlockctrl.Setup(oarlockctrl.Options{
		Name: "chaospod", Version: "0.1.0", Scheme: scheme.Scheme, Stateless: true,
		Requests: []oarlock.Request{
			{Target: oarlock.GVR("chaosapps.metamagical.io", "v1", "chaospods"), Verbs: []string{"patch"}},
			{Target: oarlock.GVR("", "v1", "pods"), Verbs: []string{"create", "delete"}},
		},
	}, setup))
}

// setup is what main does between making the manager and starting it, without the webhook.
func setup(mgr ctrl.Manager) error {
	if err := api.AddToScheme(mgr.GetScheme()); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.ChaosPod{}).
		Owns(&corev1.Pod{}).
		Complete(&reconciler{Client: mgr.GetClient(), scheme: mgr.GetScheme()})
}

func main() {}
