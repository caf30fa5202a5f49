// The reconciler of controller-runtime's examples/builtins, as an Oarlock plugin: it sets the label
// hello=world of ReplicaSets. controller.go is that of controller-runtime, unchanged; this file replaces
// its main.go.
package main

//go:generate -command fetch go run oarlock.dev/controller-runtime/fetch
//go:generate fetch sigs.k8s.io/controller-runtime examples/builtins/controller.go controller.go

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	oarlockctrl "oarlock.dev/controller-runtime"
	oarlock "oarlock.dev/sdk"
)

func init() {
	oarlock.Register(oarlockctrl.Setup(oarlockctrl.Options{
		Name: "replicaset", Version: "0.1.0", Stateless: true,
		Requests: []oarlock.Request{{Target: oarlock.GVR("apps", "v1", "replicasets"), Verbs: []string{"patch"}}},
	}, setup))
}

// setup is what examples/builtins/main.go does with its manager, without the webhooks.
func setup(mgr ctrl.Manager) error {
	return ctrl.
		NewControllerManagedBy(mgr).
		Named("foo-controller").
		WatchesRawSource(source.Kind(mgr.GetCache(), &appsv1.ReplicaSet{},
			&handler.TypedEnqueueRequestForObject[*appsv1.ReplicaSet]{})).
		WatchesRawSource(source.Kind(mgr.GetCache(), &corev1.Pod{},
			handler.TypedEnqueueRequestForOwner[*corev1.Pod](mgr.GetScheme(), mgr.GetRESTMapper(), &appsv1.ReplicaSet{}, handler.OnlyControllerOwner()))).
		Complete(&reconcileReplicaSet{client: mgr.GetClient()})
}

func main() {}
