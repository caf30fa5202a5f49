package oarlockctrl_test

import (
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"

	oarlockctrl "oarlock.dev/controller-runtime"
	oarlock "oarlock.dev/sdk"
)

// In an init function of package main, in the place of what main does with ctrl.NewManager.
func Example() {
	scheme := runtime.NewScheme() // with the types of the reconcilers
	oarlock.Register(oarlockctrl.Setup(oarlockctrl.Options{
		Name: "backup", Version: "0.1.0", Scheme: scheme,
	}, func(mgr ctrl.Manager) error {
		r := &BackupReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}
		return r.SetupWithManager(mgr)
	}))
}
