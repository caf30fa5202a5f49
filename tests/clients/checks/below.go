package main

import (
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
)

// Checks of subresources.

func binding(e *env) error {
	pods := e.typed.CoreV1().Pods(e.namespace)
	if _, err := pods.Create(e.ctx, pod("p"), metav1.CreateOptions{}); err != nil {
		return err
	}
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Annotations: map[string]string{"a": "b"}},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "n"},
	}
	if err := pods.Bind(e.ctx, binding, metav1.CreateOptions{}); err != nil {
		return err
	}
	found, err := pods.Get(e.ctx, "p", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("node", found.Spec.NodeName, "n"); err != nil {
		return err
	}
	if err := expect("annotation", found.Annotations["a"], "b"); err != nil {
		return err
	}
	return refused("bind again", pods.Bind(e.ctx, binding, metav1.CreateOptions{}), apierrors.IsConflict)
}

func eviction(e *env) error {
	pods := e.typed.CoreV1().Pods(e.namespace)
	if _, err := pods.Create(e.ctx, pod("p"), metav1.CreateOptions{}); err != nil {
		return err
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: e.namespace}}
	if err := pods.EvictV1(e.ctx, eviction); err != nil {
		return err
	}
	_, err := pods.Get(e.ctx, "p", metav1.GetOptions{})
	return refused("get the evicted Pod", err, apierrors.IsNotFound)
}

func evictionAgainstBudget(e *env) error {
	pods := e.typed.CoreV1().Pods(e.namespace)
	created, err := pods.Create(e.ctx, pod("p"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Status.Phase = corev1.PodRunning
	created.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if _, err := pods.UpdateStatus(e.ctx, created, metav1.UpdateOptions{}); err != nil {
		return err
	}
	budgets := e.typed.PolicyV1().PodDisruptionBudgets(e.namespace)
	budget, err := budgets.Create(e.ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: selector()},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	// A budget without a status gets a Retry-After, and client-go would wait that long.
	budget.Status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, CurrentHealthy: 1, DesiredHealthy: 1, ExpectedPods: 1,
	}
	if budget, err = budgets.UpdateStatus(e.ctx, budget, metav1.UpdateOptions{}); err != nil {
		return err
	}
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: e.namespace}}
	err = pods.EvictV1(e.ctx, eviction)
	if err := refused("evict against the budget", err, apierrors.IsTooManyRequests); err != nil {
		return err
	}
	budget.Status.DisruptionsAllowed, budget.Status.CurrentHealthy = 1, 2
	if _, err := budgets.UpdateStatus(e.ctx, budget, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := pods.EvictV1(e.ctx, eviction); err != nil {
		return fmt.Errorf("evict with the budget's permission: %w", err)
	}
	found, err := budgets.Get(e.ctx, "b", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect("disruptions left", found.Status.DisruptionsAllowed, 0)
}

func ephemeralContainers(e *env) error {
	pods := e.typed.CoreV1().Pods(e.namespace)
	created, err := pods.Create(e.ctx, pod("p"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	debug := corev1.EphemeralContainer{
		EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "debug", Image: "i"}, TargetContainerName: "c",
	}
	created.Spec.EphemeralContainers = append(created.Spec.EphemeralContainers, debug)
	if _, err := pods.Update(e.ctx, created, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) {
		return fmt.Errorf("through the Pod itself: %v", err)
	}
	updated, err := pods.UpdateEphemeralContainers(e.ctx, "p", created, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if err := expect("containers", len(updated.Spec.EphemeralContainers), 1); err != nil {
		return err
	}
	patch := []byte(`{"spec":{"ephemeralContainers":[{"name":"more","image":"i"}]}}`)
	updated, err = pods.Patch(e.ctx, "p", types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "ephemeralcontainers")
	if err != nil {
		return err
	}
	return expect("containers", len(updated.Spec.EphemeralContainers), 2)
}

func finalizeNamespace(e *env) error {
	namespaces := e.typed.CoreV1().Namespaces()
	name := e.namespace + "-f"
	created, err := namespaces.Create(
		e.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Spec.Finalizers = append(created.Spec.Finalizers, "oarlock.dev/hold")
	updated, err := namespaces.Finalize(e.ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	if err := expect("finalizers", len(updated.Spec.Finalizers), 2); err != nil {
		return err
	}
	if err := namespaces.Delete(e.ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	found, err := namespaces.Get(e.ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	found.Spec.Finalizers = nil
	if _, err := namespaces.Finalize(e.ctx, found, metav1.UpdateOptions{}); err != nil {
		return err
	}
	_, err = namespaces.Get(e.ctx, name, metav1.GetOptions{})
	return refused("get the finalized namespace", err, apierrors.IsNotFound)
}

func scaleWorkloads(e *env) error {
	if _, err := e.typed.AppsV1().Deployments(e.namespace).Create(e.ctx, deployment("d"), metav1.CreateOptions{}); err != nil {
		return err
	}
	deployments := e.typed.AppsV1().Deployments(e.namespace)
	scale, err := deployments.GetScale(e.ctx, "d", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("selector", scale.Status.Selector, "app=a"); err != nil {
		return err
	}
	scale.Spec.Replicas = 5
	if _, err := deployments.UpdateScale(e.ctx, "d", scale, metav1.UpdateOptions{}); err != nil {
		return err
	}
	found, err := deployments.Get(e.ctx, "d", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("replicas", *found.Spec.Replicas, 5); err != nil {
		return err
	}
	if _, err := deployments.UpdateScale(e.ctx, "d", scale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		return fmt.Errorf("a stale scale: %v", err)
	}
	sets := e.typed.AppsV1().StatefulSets(e.namespace)
	if _, err := sets.Create(e.ctx, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: appsv1.StatefulSetSpec{Selector: selector(), Template: template()},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	wanted := &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: e.namespace}, Spec: autoscalingv1.ScaleSpec{Replicas: 0},
	}
	updated, err := sets.UpdateScale(e.ctx, "s", wanted, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	return expect("replicas", updated.Spec.Replicas, 0)
}

func patchScale(e *env) error {
	if _, err := e.typed.AppsV1().Deployments(e.namespace).Create(e.ctx, deployment("d"), metav1.CreateOptions{}); err != nil {
		return err
	}
	patched := &autoscalingv1.Scale{}
	if err := e.typed.AppsV1().RESTClient().Patch(types.MergePatchType).Namespace(e.namespace).Resource("deployments").
		Name("d").SubResource("scale").Body([]byte(`{"spec":{"replicas":3}}`)).Do(e.ctx).Into(patched); err != nil {
		return err
	}
	if err := expect("replicas", patched.Spec.Replicas, 3); err != nil {
		return err
	}
	found, err := e.typed.AppsV1().Deployments(e.namespace).Get(e.ctx, "d", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect("replicas", *found.Spec.Replicas, 3)
}

// Checks of tokens and rights.

func (e *env) account(name string) (*corev1.ServiceAccount, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return e.typed.CoreV1().ServiceAccounts(e.namespace).Create(e.ctx, account, metav1.CreateOptions{})
}

func (e *env) token(account string, spec authenticationv1.TokenRequestSpec) (string, error) {
	request, err := e.typed.CoreV1().ServiceAccounts(e.namespace).CreateToken(
		e.ctx, account, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return request.Status.Token, nil
}

func (e *env) review(token string, audiences ...string) (authenticationv1.TokenReviewStatus, error) {
	review, err := e.typed.AuthenticationV1().TokenReviews().Create(e.ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences},
	}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.TokenReviewStatus{}, err
	}
	return review.Status, nil
}

func (e *env) as(token string) kubernetes.Interface {
	config := rest.AnonymousClientConfig(e.config)
	config.BearerToken = token
	return kubernetes.NewForConfigOrDie(config)
}

func tokens(e *env) error {
	account, err := e.account("a")
	if err != nil {
		return err
	}
	token, err := e.token("a", authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](600)})
	if err != nil {
		return err
	}
	me, err := e.as(token).AuthenticationV1().SelfSubjectReviews().Create(
		e.ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("system:serviceaccount:%s:a", e.namespace)
	if err := expect("user", me.Status.UserInfo.Username, name); err != nil {
		return err
	}
	status, err := e.review(token)
	if err != nil {
		return err
	}
	if err := expect("authenticated", status.Authenticated, true); err != nil {
		return err
	}
	return expect("uid", status.User.UID, string(account.UID))
}

func shortTokens(e *env) error {
	if _, err := e.account("a"); err != nil {
		return err
	}
	_, err := e.token("a", authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](60)})
	return refused("a token for a minute", err, apierrors.IsInvalid)
}

func tokensDieWithTheirAccount(e *env) error {
	if _, err := e.account("a"); err != nil {
		return err
	}
	token, err := e.token("a", authenticationv1.TokenRequestSpec{})
	if err != nil {
		return err
	}
	accounts := e.typed.CoreV1().ServiceAccounts(e.namespace)
	if err := accounts.Delete(e.ctx, "a", metav1.DeleteOptions{}); err != nil {
		return err
	}
	ask := func() error {
		_, err := e.as(token).CoreV1().Pods(e.namespace).List(e.ctx, metav1.ListOptions{})
		return refused("use the token of a deleted object", err, apierrors.IsUnauthorized)
	}
	if err := e.eventually(ask); err != nil {
		return err
	}
	// A recreated account with this name is another account.
	if _, err := e.account("a"); err != nil {
		return err
	}
	return ask()
}

func tokensDieWithTheirPod(e *env) error {
	if _, err := e.account("default-of-pod"); err != nil {
		return err
	}
	wanted := pod("p")
	wanted.Spec.ServiceAccountName = "default-of-pod"
	created, err := e.typed.CoreV1().Pods(e.namespace).Create(e.ctx, wanted, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	token, err := e.token("default-of-pod", authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			Kind: "Pod", APIVersion: "v1", Name: "p", UID: created.UID,
		},
	})
	if err != nil {
		return err
	}
	status, err := e.review(token)
	if err != nil {
		return err
	}
	if err := expect("authenticated", status.Authenticated, true); err != nil {
		return err
	}
	if err := e.typed.CoreV1().Pods(e.namespace).Delete(e.ctx, "p", metav1.DeleteOptions{}); err != nil {
		return err
	}
	return e.eventually(func() error {
		status, err := e.review(token)
		if err != nil {
			return err
		}
		return expect("authenticated", status.Authenticated, false)
	})
}

func audiences(e *env) error {
	if _, err := e.account("a"); err != nil {
		return err
	}
	token, err := e.token("a", authenticationv1.TokenRequestSpec{Audiences: []string{"vault", "other"}})
	if err != nil {
		return err
	}
	_, err = e.as(token).CoreV1().Pods(e.namespace).List(e.ctx, metav1.ListOptions{})
	if err := refused("use a token for another audience", err, apierrors.IsUnauthorized); err != nil {
		return err
	}
	status, err := e.review(token)
	if err != nil {
		return err
	}
	if err := expect("authenticated without audience", status.Authenticated, false); err != nil {
		return err
	}
	if status, err = e.review(token, "vault", "third"); err != nil {
		return err
	}
	if err := expect("authenticated", status.Authenticated, true); err != nil {
		return err
	}
	if len(status.Audiences) != 1 || status.Audiences[0] != "vault" {
		return fmt.Errorf("audiences: found %v", status.Audiences)
	}
	return nil
}

func rights(e *env) error {
	if _, err := e.account("a"); err != nil {
		return err
	}
	token, err := e.token("a", authenticationv1.TokenRequestSpec{})
	if err != nil {
		return err
	}
	list := func() error {
		_, err := e.as(token).CoreV1().ConfigMaps(e.namespace).List(e.ctx, metav1.ListOptions{})
		return err
	}
	if err := refused("list without a right", list(), apierrors.IsForbidden); err != nil {
		return err
	}
	if _, err := e.typed.RbacV1().Roles(e.namespace).Create(e.ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := e.typed.RbacV1().RoleBindings(e.namespace).Create(e.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "r"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "a", Namespace: e.namespace}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return e.eventually(list)
}

// Checks of garbage collection.

func (e *env) family() (owner *corev1.ConfigMap, err error) {
	maps := e.typed.CoreV1().ConfigMaps(e.namespace)
	if owner, err = maps.Create(e.ctx, configMap("owner"), metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	for _, name := range []string{"one", "two"} {
		owned := configMap(name)
		owned.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID, BlockOwnerDeletion: ptr.To(true),
		}}
		if _, err := maps.Create(e.ctx, owned, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
	}
	return owner, nil
}

func (e *env) left(selector string) (int, error) {
	list, err := e.typed.CoreV1().ConfigMaps(e.namespace).List(e.ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}

func collect(policy metav1.DeletionPropagation, survivors int) func(*env) error {
	return func(e *env) error {
		if _, err := e.family(); err != nil {
			return err
		}
		maps := e.typed.CoreV1().ConfigMaps(e.namespace)
		if err := maps.Delete(e.ctx, "owner", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			return err
		}
		// The real server runs without a garbage collector and always fails this check, so the deadline is short.
		deadline := time.Now().Add(5 * time.Second)
		for {
			found, err := e.left("name")
			if err != nil {
				return err
			}
			if found == survivors {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("after 5 s %d objects remain, want %d", found, survivors)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if survivors == 0 {
			return nil
		}
		one, err := maps.Get(e.ctx, "one", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(one.OwnerReferences) != 0 {
			return errors.New("an orphan has an owner")
		}
		return nil
	}
}
