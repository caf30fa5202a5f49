package oarlockctrl_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/reference"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	oarlockctrl "oarlock.dev/controller-runtime"
	oarlock "oarlock.dev/sdk"
	"oarlock.dev/sdk/oarlocktest"
)

// backup asks for a Job at intervals: a custom resource with a status, as kubebuilder scaffolds them.
type backup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   backupSpec   `json:"spec,omitempty"`
	Status backupStatus `json:"status,omitempty"`
}

type backupSpec struct {
	Every metav1.Duration `json:"every"`
	Keep  int             `json:"keep"`
}

type backupStatus struct {
	Active []corev1.ObjectReference `json:"active,omitempty"`
	Last   *metav1.Time             `json:"last,omitempty"`
}

type backupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []backup `json:"items"`
}

func (b *backup) DeepCopyObject() runtime.Object {
	c := *b
	b.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.Active, c.Status.Last = slices.Clone(b.Status.Active), b.Status.Last.DeepCopy()
	return &c
}

func (l *backupList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = slices.Clone(l.Items)
	return &c
}

var (
	backupVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}
	backups       = oarlock.GVR("example.com", "v1", "backups")
	jobs          = oarlock.GVR("batch", "v1", "jobs")
)

const (
	byBackup  = ".metadata.controller"
	dueAt     = "example.com/due"
	finalizer = "example.com/jobs"
)

// Clock is what a reconciler takes, so that a test gives it another time.
type Clock interface{ Now() time.Time }

type hostClock struct{}

func (hostClock) Now() time.Time { return oarlock.Now() }

// BackupReconciler has the calls of a reconciler that owns Jobs, as kubebuilder's documentation teaches
// them: an index on the owner, references in the status, owner references, deletes with a propagation, a
// clock of its own, and a finalizer.
type BackupReconciler struct {
	client.Client
	Scheme *runtime.Scheme
	Clock
}

func (r *BackupReconciler) SetupWithManager(mgr ctrl.Manager) error {
	if r.Clock == nil {
		r.Clock = hostClock{}
	}
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &batchv1.Job{}, byBackup, func(obj client.Object) []string {
		owner := metav1.GetControllerOf(obj)
		if owner == nil || owner.APIVersion != backupVersion.String() || owner.Kind != "Backup" {
			return nil
		}
		return []string{owner.Name}
	})
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).For(&backup{}).Owns(&batchv1.Job{}).Named("backup").Complete(r)
}

func (r *BackupReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var b backup
	if err := r.Get(ctx, request.NamespacedName, &b); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !b.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.finalize(ctx, &b)
	}
	if controllerutil.AddFinalizer(&b, finalizer) {
		if err := r.Update(ctx, &b); err != nil {
			return ctrl.Result{}, err
		}
	}
	ended, err := r.observe(ctx, &b)
	if err != nil {
		return ctrl.Result{}, err
	}
	for len(ended) > b.Spec.Keep {
		if err := r.Delete(ctx, &ended[0], client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		log.FromContext(ctx).V(0).Info("deleted an old Job", "job", ended[0].Name)
		ended = ended[1:]
	}
	due := b.CreationTimestamp.Add(b.Spec.Every.Duration)
	if b.Status.Last != nil {
		due = b.Status.Last.Add(b.Spec.Every.Duration)
	}
	if wait := due.Sub(r.Now()); wait > 0 || len(b.Status.Active) > 0 {
		return ctrl.Result{RequeueAfter: max(wait, 0)}, nil
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.Namespace, Name: fmt.Sprintf("%s-%d", b.Name, due.Unix()),
		Annotations: map[string]string{dueAt: due.Format(time.RFC3339)},
	}}
	if err := ctrl.SetControllerReference(&b, job, r.Scheme); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, client.IgnoreAlreadyExists(r.Create(ctx, job))
}

// observe writes what the Jobs show into the status, and returns those that have ended, the oldest first.
func (r *BackupReconciler) observe(ctx context.Context, b *backup) (ended []batchv1.Job, err error) {
	var children batchv1.JobList
	if err := r.List(ctx, &children, client.InNamespace(b.Namespace), client.MatchingFields{byBackup: b.Name}); err != nil {
		return nil, err
	}
	b.Status.Active = nil
	for _, job := range children.Items {
		due, err := time.Parse(time.RFC3339, job.Annotations[dueAt])
		if err != nil {
			return nil, err
		}
		if b.Status.Last == nil || b.Status.Last.Time.Before(due) {
			b.Status.Last = &metav1.Time{Time: due}
		}
		if job.Status.Succeeded > 0 {
			ended = append(ended, job)
			continue
		}
		active, err := reference.GetReference(r.Scheme, &job)
		if err != nil {
			return nil, err
		}
		b.Status.Active = append(b.Status.Active, *active)
	}
	slices.SortFunc(ended, func(a, b batchv1.Job) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return ended, r.Status().Update(ctx, b)
}

func (r *BackupReconciler) finalize(ctx context.Context, b *backup) error {
	err := r.DeleteAllOf(ctx, &batchv1.Job{}, client.InNamespace(b.Namespace), client.PropagationPolicy(metav1.DeletePropagationForeground))
	if err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(b, finalizer)
	return r.Update(ctx, b)
}

func startedBackups(t *testing.T) *oarlocktest.Host {
	t.Helper()
	types := runtime.NewScheme()
	must(t, scheme.AddToScheme(types))
	types.AddKnownTypeWithName(backupVersion.WithKind("Backup"), &backup{})
	types.AddKnownTypeWithName(backupVersion.WithKind("BackupList"), &backupList{})
	metav1.AddToGroupVersion(types, backupVersion)
	options := oarlockctrl.Options{Name: "backup", Version: "0.1.0", Scheme: types}
	host := oarlocktest.New(t, oarlockctrl.Setup(options, func(mgr manager.Manager) error {
		return (&BackupReconciler{Client: mgr.GetClient(), Scheme: mgr.GetScheme()}).SetupWithManager(mgr)
	}), nil)
	must(t, host.Start())
	return host
}

// kept returns the names of the Jobs of a test.
func kept(t *testing.T, host *oarlocktest.Host, from, to int) (names []string) {
	t.Helper()
	for hour := from; hour <= to; hour++ {
		name := nameOfJob(hour)
		if host.Object(jobs, oarlock.ObjectKey{Namespace: "a", Name: name}) != nil {
			names = append(names, name)
		}
	}
	return names
}

func nameOfJob(hour int) string {
	return fmt.Sprintf("db-%d", time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC).Unix())
}

func statusOf(host *oarlocktest.Host) string {
	object := host.Object(backups, oarlock.ObjectKey{Namespace: "a", Name: "db"})
	status, _ := object["status"].(map[string]any)
	names := []any{}
	active, _ := status["active"].([]any)
	for _, one := range active {
		one := one.(map[string]any)
		names = append(names, one["apiVersion"], one["kind"], one["namespace"], one["name"], one["uid"] != nil)
	}
	return fmt.Sprint(status["last"], names)
}

func TestAReconcilerOwnsJobsThatItFindsByAnIndexAndCreatesWhenTheyAreDue(t *testing.T) {
	host := startedBackups(t)
	// A Job without an owner is not found by the index.
	must(t, host.Apply(jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "other"}}))
	must(t, host.Apply(backups, &backup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "db"},
		Spec:       backupSpec{Every: metav1.Duration{Duration: time.Hour}, Keep: 1},
	}))
	if delay, ok := host.Delay(oarlock.WorkKey{Kind: "backup", ObjectKey: oarlock.ObjectKey{Namespace: "a", Name: "db"}}); !ok || delay != time.Hour {
		t.Errorf("the request waits %v, %v", delay, ok)
	}
	for hour := 1; hour <= 3; hour++ {
		must(t, host.Advance(time.Hour))
		name := nameOfJob(hour)
		last := time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC).Format(time.RFC3339)
		if got, want := statusOf(host), fmt.Sprint(last, []any{"batch/v1", "Job", "a", name, true}); got != want {
			t.Errorf("hour %d: got %s, want %s", hour, got, want)
		}
		// That the Job ends wakes its owner.
		job := host.Object(jobs, oarlock.ObjectKey{Namespace: "a", Name: name})
		owner := job["metadata"].(map[string]any)["ownerReferences"].([]any)[0].(map[string]any)
		if owner["kind"] != "Backup" || owner["name"] != "db" || owner["controller"] != true || owner["uid"] == nil {
			t.Errorf("unexpected owner %v", owner)
		}
		job["status"] = map[string]any{"succeeded": 1}
		must(t, host.Apply(jobs, job))
		if got, want := statusOf(host), fmt.Sprint(last, []any{}); got != want {
			t.Errorf("hour %d: got %s, want %s", hour, got, want)
		}
	}
	if got, want := kept(t, host, 0, 4), []string{nameOfJob(3)}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	deletes := 0
	for _, write := range host.Writes() {
		if write.Err != nil {
			t.Errorf("%s %v: %v", write.Verb, write.Key, write.Err)
		}
		if write.Verb == "delete" {
			deletes++
			if write.Body != oarlock.Background {
				t.Errorf("%v was deleted with the propagation %v", write.Key, write.Body)
			}
		}
	}
	if deletes != 2 {
		t.Errorf("%d Jobs were deleted", deletes)
	}
}

func TestAFinalizerIsAddedAndHoldsTheObjectUntilItsWorkIsDone(t *testing.T) {
	host := startedBackups(t)
	db := oarlock.ObjectKey{Namespace: "a", Name: "db"}
	must(t, host.Apply(backups, &backup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "db"},
		Spec:       backupSpec{Every: metav1.Duration{Duration: time.Hour}},
	}))
	must(t, host.Advance(time.Hour))
	if finalizers := host.Object(backups, db)["metadata"].(map[string]any)["finalizers"]; fmt.Sprint(finalizers) != "["+finalizer+"]" {
		t.Errorf("unexpected finalizers %v", finalizers)
	}
	host.Writes()
	must(t, host.Delete(backups, db))
	if host.Object(backups, db) != nil || len(kept(t, host, 0, 2)) != 0 {
		t.Error("the object or its Job is still there")
	}
	writes := host.Writes()
	if len(writes) != 2 || writes[0].Verb != "delete" || writes[0].Body != oarlock.Foreground || writes[1].Verb != "patch" {
		t.Errorf("unexpected writes %v", writes)
	}
}

func TestDeletesSayWhatHappensToDependents(t *testing.T) {
	for policy, want := range map[metav1.DeletionPropagation]oarlock.Propagation{
		metav1.DeletePropagationBackground: oarlock.Background,
		metav1.DeletePropagationForeground: oarlock.Foreground,
		metav1.DeletePropagationOrphan:     oarlock.Orphan,
	} {
		host := started(t, func(ctx context.Context, c client.Client, request ctrl.Request) (ctrl.Result, error) {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}}
			err := c.Delete(ctx, job, client.PropagationPolicy(policy))
			if err == nil {
				// The second delete finds nothing.
				err = c.Delete(ctx, job, client.PropagationPolicy(policy))
			}
			if !apierrors.IsNotFound(err) {
				t.Errorf("unexpected error %v", err)
			}
			return ctrl.Result{}, nil
		})
		must(t, host.Apply(jobs, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "x"}}))
		must(t, host.Apply(deployments, map[string]any{"metadata": map[string]any{"namespace": "a", "name": "web"}}))
		if writes := host.Writes(); len(writes) != 2 || writes[0].Body != want {
			t.Errorf("%s: unexpected writes %v", policy, writes)
		}
	}
}
