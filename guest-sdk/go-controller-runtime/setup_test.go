package oarlockctrl_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	oarlockctrl "oarlock.dev/controller-runtime"
	oarlock "oarlock.dev/sdk"
	"oarlock.dev/sdk/oarlocktest"
)

var (
	deployments = oarlock.GVR("apps", "v1", "deployments")
	replicaSets = oarlock.GVR("apps", "v1", "replicasets")
	configMaps  = oarlock.GVR("", "v1", "configmaps")
	secrets     = oarlock.GVR("", "v1", "secrets")
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// started returns a host with the reconciler for Deployments, which owns ReplicaSets and watches ConfigMaps
// that name one.
func started(t *testing.T, reconcileOne func(context.Context, client.Client, reconcile.Request) (reconcile.Result, error)) *oarlocktest.Host {
	t.Helper()
	options := oarlockctrl.Options{Name: "test", Version: "0.1.0", Scheme: runtime.NewScheme()}
	host := oarlocktest.New(t, oarlockctrl.Setup(options, func(mgr manager.Manager) error {
		// Types may come later than the manager.
		if err := scheme.AddToScheme(mgr.GetScheme()); err != nil {
			return err
		}
		err := mgr.GetFieldIndexer().IndexField(context.Background(), &appsv1.ReplicaSet{}, "owner", func(obj client.Object) []string {
			if owner := metav1.GetControllerOf(obj); owner != nil {
				return []string{owner.Name}
			}
			return nil
		})
		if err != nil {
			return err
		}
		byAnnotation := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
			key := client.ObjectKey{Namespace: obj.GetNamespace(), Name: obj.GetAnnotations()["for"]}
			return []reconcile.Request{{NamespacedName: key}}
		})
		return ctrl.NewControllerManagedBy(mgr).
			For(&appsv1.Deployment{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
			Owns(&appsv1.ReplicaSet{}).
			Watches(&corev1.ConfigMap{}, byAnnotation).
			Complete(reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
				return reconcileOne(ctx, mgr.GetClient(), request)
			}))
	}), nil)
	must(t, host.Start())
	return host
}

func metadata(name string, annotations map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "a", Name: name, Annotations: annotations}
}

func TestRequestsComeFromForOwnsWatchesAndPredicates(t *testing.T) {
	var seen []string
	host := started(t, func(_ context.Context, _ client.Client, request reconcile.Request) (reconcile.Result, error) {
		seen = append(seen, request.String())
		return reconcile.Result{RequeueAfter: time.Minute}, nil
	})
	expect := func(what string, want ...string) {
		t.Helper()
		if !slices.Equal(seen, want) {
			t.Errorf("%s: got %q, want %q", what, seen, want)
		}
		seen = nil
	}
	must(t, host.Apply(deployments, &appsv1.Deployment{ObjectMeta: metadata("web", nil)}))
	expect("a new object", "a/web")
	must(t, host.Apply(deployments, &appsv1.Deployment{ObjectMeta: metadata("web", map[string]string{"x": "y"})}))
	expect("a change that the predicate drops")
	must(t, host.Advance(time.Minute))
	expect("RequeueAfter", "a/web")
	yes := true
	owned := &appsv1.ReplicaSet{ObjectMeta: metadata("web-1", nil)}
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Controller: &yes}}
	must(t, host.Apply(replicaSets, owned))
	expect("a dependent", "a/web")
	must(t, host.Delete(replicaSets, oarlock.ObjectKey{Namespace: "a", Name: "web-1"}))
	expect("a deleted dependent", "a/web")
	must(t, host.Apply(configMaps, &corev1.ConfigMap{ObjectMeta: metadata("settings", map[string]string{"for": "other"})}))
	expect("an object that is mapped", "a/other")
}

func TestTheClientReadsWhatIsWatchedFromTheCacheAndWritesWhatHasChanged(t *testing.T) {
	host := started(t, func(ctx context.Context, c client.Client, request reconcile.Request) (reconcile.Result, error) {
		var deployment appsv1.Deployment
		if err := c.Get(ctx, request.NamespacedName, &deployment); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		var secret corev1.Secret
		err := c.Get(ctx, client.ObjectKey{Namespace: "a", Name: "none"}, &secret)
		if !apierrors.IsNotFound(err) || !errors.Is(err, oarlock.ErrNotFound) {
			t.Errorf("unexpected error %v", err)
		}
		replicaSet := &appsv1.ReplicaSet{ObjectMeta: metadata(request.Name+"-1", nil)}
		if err := ctrl.SetControllerReference(&deployment, replicaSet, c.Scheme()); err != nil {
			return reconcile.Result{}, err
		}
		if err := c.Create(ctx, replicaSet); client.IgnoreAlreadyExists(err) != nil {
			return reconcile.Result{}, err
		}
		var list appsv1.ReplicaSetList
		if err := c.List(ctx, &list, client.InNamespace("a"), client.MatchingFields{"owner": request.Name}); err != nil {
			return reconcile.Result{}, err
		}
		deployment.Status.Replicas = int32(len(list.Items))
		if err := c.Status().Update(ctx, &deployment); err != nil {
			return reconcile.Result{}, err
		}
		deployment.Labels = map[string]string{"seen": "yes"}
		return reconcile.Result{}, c.Update(ctx, &deployment)
	})
	must(t, host.Apply(secrets, &corev1.Secret{ObjectMeta: metadata("there", nil)}))
	must(t, host.Apply(deployments, &appsv1.Deployment{ObjectMeta: metadata("web", nil)}))
	there := host.Object(deployments, oarlock.ObjectKey{Namespace: "a", Name: "web"})
	labels, _ := there["metadata"].(map[string]any)["labels"].(map[string]any)
	status, _ := there["status"].(map[string]any)
	if labels["seen"] != "yes" || status["replicas"] != 1.0 {
		t.Errorf("unexpected object %v", there)
	}
	var verbs []string
	for _, write := range host.Writes() {
		if write.Err == nil {
			verbs = append(verbs, write.Verb+" "+write.Target.Plural+" "+write.Subresource)
		}
	}
	want := []string{"create replicasets ", "patch deployments status", "patch deployments "}
	if !slices.Equal(verbs, want) {
		t.Errorf("got %q, want %q: the second run changes nothing", verbs, want)
	}
}

func TestAnUpdateOfAnOldVersionIsAConflict(t *testing.T) {
	var found error
	host := started(t, func(ctx context.Context, c client.Client, request reconcile.Request) (reconcile.Result, error) {
		old := &appsv1.Deployment{ObjectMeta: metadata(request.Name, map[string]string{"x": "y"})}
		old.ResourceVersion = "1234"
		found = c.Update(ctx, old)
		return reconcile.Result{}, nil
	})
	must(t, host.Apply(deployments, &appsv1.Deployment{ObjectMeta: metadata("web", nil)}))
	if !apierrors.IsConflict(found) {
		t.Errorf("unexpected error %v", found)
	}
}

func TestSetupRefusesWhatAPluginCannotRun(t *testing.T) {
	host := oarlocktest.New(t, oarlockctrl.Setup(oarlockctrl.Options{Name: "test", Version: "0.1.0"}, func(mgr manager.Manager) error {
		return mgr.Add(manager.RunnableFunc(func(context.Context) error { return nil }))
	}), nil)
	if err := host.Describe(); err == nil || !strings.Contains(err.Error(), "a plugin cannot run anything else between calls") {
		t.Errorf("unexpected error %v", err)
	}
	host = oarlocktest.New(t, oarlockctrl.Setup(oarlockctrl.Options{Name: "test", Version: "0.1.0"}, func(manager.Manager) error { return nil }), nil)
	if err := host.Describe(); err == nil || !strings.Contains(err.Error(), "no controller was added") {
		t.Errorf("unexpected error %v", err)
	}
}
