package main

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	appsapply "k8s.io/client-go/applyconfigurations/apps/v1"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/utils/ptr"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}},
		Data:       map[string]string{"k": "v"},
	}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "image"}}, TerminationGracePeriodSeconds: ptr.To[int64](0),
	}
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "a"}}, Spec: podSpec()}
}

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}}, Spec: podSpec()}
}

func selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: selector(), Template: template()},
	}
}

// expect returns an error unless the value is the expected one.
func expect[T comparable](what string, found, wanted T) error {
	if found != wanted {
		return fmt.Errorf("%s: got %v, want %v", what, found, wanted)
	}
	return nil
}

// refused returns an error unless err is of the expected kind.
func refused(what string, err error, is func(error) bool) error {
	if err == nil {
		return fmt.Errorf("%s: the server did not refuse it", what)
	}
	if !is(err) {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// eventually repeats a check until it returns no error, or until the deadline of the check.
func (e *env) eventually(check func() error) error {
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-e.ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (e *env) createMaps(names ...string) error {
	for _, name := range names {
		if _, err := e.typed.CoreV1().ConfigMaps(e.namespace).Create(e.ctx, configMap(name), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func objectLives(e *env) error {
	maps := e.typed.CoreV1().ConfigMaps(e.namespace)
	created, err := maps.Create(e.ctx, configMap("a"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Data["k"] = "w"
	updated, err := maps.Update(e.ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if _, err := maps.Update(e.ctx, created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a stale update: %v", err)
	}
	found, err := maps.Get(e.ctx, "a", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("data", found.Data["k"], "w"); err != nil {
		return err
	}
	if err := expect("version", found.ResourceVersion, updated.ResourceVersion); err != nil {
		return err
	}
	if _, err := maps.Create(e.ctx, configMap("a"), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("a second create: %v", err)
	}
	if err := maps.Delete(e.ctx, "a", metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err = maps.Get(e.ctx, "a", metav1.GetOptions{})
	return refused("get the deleted object", err, apierrors.IsNotFound)
}

func deleteWithPreconditions(e *env) error {
	if err := e.createMaps("a"); err != nil {
		return err
	}
	maps := e.typed.CoreV1().ConfigMaps(e.namespace)
	found, err := maps.Get(e.ctx, "a", metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, wrong := range []metav1.Preconditions{{UID: ptr.To(types.UID("x"))}, {ResourceVersion: ptr.To("1")}} {
		err := maps.Delete(e.ctx, "a", metav1.DeleteOptions{Preconditions: &wrong})
		if err := refused("delete another", err, apierrors.IsConflict); err != nil {
			return err
		}
	}
	return maps.Delete(e.ctx, "a", metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion},
	})
}

func dryDelete(e *env) error {
	if err := e.createMaps("a"); err != nil {
		return err
	}
	maps := e.typed.CoreV1().ConfigMaps(e.namespace)
	if err := maps.Delete(e.ctx, "a", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		return err
	}
	_, err := maps.Get(e.ctx, "a", metav1.GetOptions{})
	return err
}

func deleteMany(e *env) error {
	if err := e.createMaps("a", "b", "c"); err != nil {
		return err
	}
	maps := e.typed.CoreV1().ConfigMaps(e.namespace)
	some := metav1.ListOptions{LabelSelector: "name in (a,b)"}
	if err := maps.DeleteCollection(e.ctx, metav1.DeleteOptions{}, some); err != nil {
		return err
	}
	list, err := maps.List(e.ctx, metav1.ListOptions{LabelSelector: "name"})
	if err != nil {
		return err
	}
	return expect("left", len(list.Items), 1)
}

func deleteManyWithPreconditions(e *env) error {
	if err := e.createMaps("a"); err != nil {
		return err
	}
	maps := e.typed.CoreV1().ConfigMaps(e.namespace)
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To(types.UID("x"))}}
	err := maps.DeleteCollection(e.ctx, options, metav1.ListOptions{LabelSelector: "name=a"})
	if err := refused("delete others", err, apierrors.IsConflict); err != nil {
		return err
	}
	_, err = maps.Get(e.ctx, "a", metav1.GetOptions{})
	return err
}

func patches(e *env) error {
	if err := e.createMaps("a"); err != nil {
		return err
	}
	maps := e.typed.CoreV1().ConfigMaps(e.namespace)
	for kind, body := range map[types.PatchType]string{
		types.JSONPatchType:           `[{"op":"add","path":"/data/j","value":"1"}]`,
		types.MergePatchType:          `{"data":{"m":"1"}}`,
		types.StrategicMergePatchType: `{"data":{"s":"1"}}`,
	} {
		if _, err := maps.Patch(e.ctx, "a", kind, []byte(body), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
	}
	found, err := maps.Get(e.ctx, "a", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect("keys", len(found.Data), 4)
}

func apply(e *env) error {
	maps := e.typed.CoreV1().ConfigMaps(e.namespace)
	wanted := coreapply.ConfigMap("a", e.namespace).WithData(map[string]string{"k": "mine"})
	if _, err := maps.Apply(e.ctx, wanted, metav1.ApplyOptions{FieldManager: "one"}); err != nil {
		return err
	}
	other := coreapply.ConfigMap("a", e.namespace).WithData(map[string]string{"k": "theirs"})
	_, err := maps.Apply(e.ctx, other, metav1.ApplyOptions{FieldManager: "two"})
	if err := refused("apply over another's", err, apierrors.IsConflict); err != nil {
		return err
	}
	found, err := maps.Apply(e.ctx, other, metav1.ApplyOptions{FieldManager: "two", Force: true})
	if err != nil {
		return err
	}
	extracted, err := coreapply.ExtractConfigMap(found, "two")
	if err != nil {
		return err
	}
	return expect("extracted", extracted.Data["k"], "theirs")
}

func applyWorkload(e *env) error {
	pod := coreapply.PodTemplateSpec().WithLabels(map[string]string{"app": "a"}).
		WithSpec(coreapply.PodSpec().WithContainers(coreapply.Container().WithName("c").WithImage("i")))
	spec := appsapply.DeploymentSpec().WithReplicas(2).WithTemplate(pod).
		WithSelector(metaapply.LabelSelector().WithMatchLabels(map[string]string{"app": "a"}))
	wanted := appsapply.Deployment("d", e.namespace).WithSpec(spec)
	found, err := e.typed.AppsV1().Deployments(e.namespace).Apply(e.ctx, wanted, metav1.ApplyOptions{FieldManager: "one"})
	if err != nil {
		return err
	}
	return expect("replicas", *found.Spec.Replicas, 2)
}

func watches(e *env) error {
	maps := e.typed.CoreV1().ConfigMaps(e.namespace)
	list, err := maps.List(e.ctx, metav1.ListOptions{LabelSelector: "name"})
	if err != nil {
		return err
	}
	watching, err := maps.Watch(e.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "name"})
	if err != nil {
		return err
	}
	defer watching.Stop()
	if err := e.createMaps("a"); err != nil {
		return err
	}
	if _, err := maps.Patch(e.ctx, "a", types.MergePatchType, []byte(`{"data":{"k":"w"}}`), metav1.PatchOptions{}); err != nil {
		return err
	}
	if err := maps.Delete(e.ctx, "a", metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, wanted := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		event, err := e.next(watching)
		if err != nil {
			return err
		}
		if err := expect("event", event.Type, wanted); err != nil {
			return err
		}
		if found, is := event.Object.(*corev1.ConfigMap); !is || found.Name != "a" {
			return fmt.Errorf("an event about %T", event.Object)
		}
	}
	return nil
}

func (e *env) next(watching watch.Interface) (watch.Event, error) {
	select {
	case event, open := <-watching.ResultChan():
		if !open {
			return event, errors.New("the watch ended")
		}
		if event.Type == watch.Error {
			return event, apierrors.FromObject(event.Object)
		}
		return event, nil
	case <-e.ctx.Done():
		return watch.Event{}, e.ctx.Err()
	}
}

func watchFromTheBeginning(e *env) error {
	if err := e.createMaps("a", "b"); err != nil {
		return err
	}
	watching, err := e.typed.CoreV1().ConfigMaps(e.namespace).Watch(e.ctx, metav1.ListOptions{
		SendInitialEvents: ptr.To(true), AllowWatchBookmarks: true, LabelSelector: "name",
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	if err != nil {
		return err
	}
	defer watching.Stop()
	for _, wanted := range []watch.EventType{watch.Added, watch.Added, watch.Bookmark} {
		event, err := e.next(watching)
		if err != nil {
			return err
		}
		if err := expect("event", event.Type, wanted); err != nil {
			return err
		}
		if wanted == watch.Bookmark {
			found := event.Object.(*corev1.ConfigMap).Annotations[metav1.InitialEventsAnnotationKey]
			return expect("annotation", found, "true")
		}
	}
	return nil
}

func futureWatch(e *env) error {
	watching, err := e.typed.CoreV1().ConfigMaps(e.namespace).Watch(e.ctx, metav1.ListOptions{ResourceVersion: "999999999"})
	if err != nil {
		return refused("watch from a future version", err, apierrors.IsTimeout)
	}
	watching.Stop()
	return nil
}

func pages(e *env) error {
	if err := e.createMaps("a", "b", "c", "d", "e"); err != nil {
		return err
	}
	maps := e.typed.CoreV1().ConfigMaps(e.namespace)
	options := metav1.ListOptions{Limit: 2, LabelSelector: "name"}
	seen := 0
	for {
		list, err := maps.List(e.ctx, options)
		if err != nil {
			return err
		}
		seen += len(list.Items)
		if list.Continue == "" {
			return expect("listed", seen, 5)
		}
		options.Continue = list.Continue
	}
}

func fieldSelectors(e *env) error {
	for _, name := range []string{"a", "b"} {
		if _, err := e.typed.CoreV1().Pods(e.namespace).Create(e.ctx, pod(name), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	options := metav1.ListOptions{FieldSelector: "status.phase=Pending,metadata.name!=a"}
	list, err := e.typed.CoreV1().Pods(e.namespace).List(e.ctx, options)
	if err != nil {
		return err
	}
	return expect("found", len(list.Items), 1)
}

func secrets(e *env) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}, Data: map[string][]byte{"b": {0, 1, 2, 255}},
		StringData: map[string]string{"t": "text"},
	}
	created, err := e.typed.CoreV1().Secrets(e.namespace).Create(e.ctx, secret, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := expect("bytes", string(created.Data["b"]), "\x00\x01\x02\xff"); err != nil {
		return err
	}
	return expect("text", string(created.Data["t"]), "text")
}

func events(e *env) error {
	about := corev1.ObjectReference{Kind: "Pod", Name: "p", Namespace: e.namespace}
	event := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e"}, EventTime: metav1.NowMicro(), ReportingController: "oarlock.dev/checks",
		ReportingInstance: "one", Action: "Checking", Reason: "Because", Type: corev1.EventTypeNormal, Note: "it happened",
		Regarding: about,
	}
	created, err := e.typed.EventsV1().Events(e.namespace).Create(e.ctx, event, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if !created.EventTime.Equal(ptr.To(metav1.NewMicroTime(event.EventTime.Truncate(time.Microsecond)))) {
		return fmt.Errorf("time: got %v, want %v", created.EventTime, event.EventTime)
	}
	old, err := e.typed.CoreV1().Events(e.namespace).Get(e.ctx, "e", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect("message", old.Message, "it happened")
}

func leases(e *env) error {
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "l"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: ptr.To("me"), RenewTime: ptr.To(metav1.NowMicro())},
	}
	leases := e.typed.CoordinationV1().Leases(e.namespace)
	created, err := leases.Create(e.ctx, lease, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Spec.LeaseTransitions = ptr.To[int32](0)
	updated, err := leases.Update(e.ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if updated.Spec.LeaseTransitions == nil {
		return errors.New("a pointer to zero is gone")
	}
	return nil
}

func status(e *env) error {
	deployments := e.typed.AppsV1().Deployments(e.namespace)
	created, err := deployments.Create(e.ctx, deployment("d"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Status.Replicas, created.Spec.Replicas = 3, ptr.To[int32](9)
	updated, err := deployments.UpdateStatus(e.ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if err := expect("status", updated.Status.Replicas, 3); err != nil {
		return err
	}
	return expect("spec", *updated.Spec.Replicas, 1)
}

func workloads(e *env) error {
	if _, err := e.typed.AppsV1().StatefulSets(e.namespace).Create(e.ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Spec:       appsv1.StatefulSetSpec{Selector: selector(), Template: template(), ServiceName: "s"},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := e.typed.AppsV1().DaemonSets(e.namespace).Create(e.ctx, &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: appsv1.DaemonSetSpec{Selector: selector(), Template: template()},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	job := batchv1.JobSpec{Template: template()}
	job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if _, err := e.typed.BatchV1().CronJobs(e.namespace).Create(e.ctx, &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "c"},
		Spec:       batchv1.CronJobSpec{Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: job}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	created, err := e.typed.BatchV1().Jobs(e.namespace).Create(
		e.ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j"}, Spec: job}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := expect("parallelism", *created.Spec.Parallelism, 1); err != nil {
		return err
	}
	background := metav1.DeletePropagationBackground
	return e.typed.BatchV1().Jobs(e.namespace).Delete(e.ctx, "j", metav1.DeleteOptions{PropagationPolicy: &background})
}

func services(e *env) error {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "s"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "a"}},
	}
	created, err := e.typed.CoreV1().Services(e.namespace).Create(e.ctx, service, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if created.Spec.ClusterIP == "" {
		return errors.New("no cluster IP")
	}
	return expect("target", created.Spec.Ports[0].TargetPort.IntValue(), 80)
}
