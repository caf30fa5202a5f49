package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	discoveryv1 "k8s.io/api/discovery/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
)

var (
	configMaps  = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	definitions = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// Checks of metadata clients and dynamic clients.

func metadataLives(e *env) error {
	if err := e.createMaps("a", "b"); err != nil {
		return err
	}
	maps := e.metadata.Resource(configMaps).Namespace(e.namespace)
	found, err := maps.Get(e.ctx, "a", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("label", found.Labels["name"], "a"); err != nil {
		return err
	}
	list, err := maps.List(e.ctx, metav1.ListOptions{LabelSelector: "name"})
	if err != nil {
		return err
	}
	if err := expect("listed", len(list.Items), 2); err != nil {
		return err
	}
	if err := maps.Delete(e.ctx, "a", metav1.DeleteOptions{}); err != nil {
		return err
	}
	return maps.DeleteCollection(e.ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "name"})
}

func (e *env) follows(informer cache.SharedIndexInformer, start func(<-chan struct{})) error {
	names := make(chan string, 100)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if found, is := object.(metav1.Object); is {
			names <- found.GetName()
		}
	}}); err != nil {
		return err
	}
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { names <- "error: " + err.Error() }); err != nil {
		return err
	}
	stop := make(chan struct{})
	defer close(stop)
	start(stop)
	for _, wanted := range []string{"before", "after"} {
		for found := ""; found != wanted; {
			select {
			case found = <-names:
				if strings.HasPrefix(found, "error: ") {
					return errors.New(found)
				}
			case <-e.ctx.Done():
				return fmt.Errorf("received no event for the object %q", wanted)
			}
		}
		if wanted == "before" {
			if err := e.createMaps("after"); err != nil {
				return err
			}
		}
	}
	return nil
}

func typedInformer(e *env) error {
	if err := e.createMaps("before"); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(e.typed, 0, informers.WithNamespace(e.namespace))
	return e.follows(factory.Core().V1().ConfigMaps().Informer(), factory.Start)
}

func dynamicInformer(e *env) error {
	if err := e.createMaps("before"); err != nil {
		return err
	}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(e.dynamic, 0, e.namespace, nil)
	return e.follows(factory.ForResource(configMaps).Informer(), factory.Start)
}

func metadataInformer(e *env) error {
	if err := e.createMaps("before"); err != nil {
		return err
	}
	factory := metadatainformer.NewFilteredSharedInformerFactory(e.metadata, 0, e.namespace, nil)
	return e.follows(factory.ForResource(configMaps).Informer(), factory.Start)
}

// Checks of custom resources.

func (e *env) define(schema map[string]any) (dynamic.ResourceInterface, schema.GroupVersionResource, error) {
	group := e.namespace + ".oarlock.dev"
	resource := groupVersionResource(group)
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "boats." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": schema},
				"subresources": map[string]any{
					"status": map[string]any{},
					"scale": map[string]any{
						"specReplicasPath": ".spec.rowers", "statusReplicasPath": ".status.rowers",
						"labelSelectorPath": ".status.selector",
					},
				},
			}},
		},
	}}
	created, err := e.dynamic.Resource(definitions).Create(e.ctx, definition, metav1.CreateOptions{})
	if err != nil {
		return nil, resource, err
	}
	boats := e.dynamic.Resource(resource).Namespace(e.namespace)
	return boats, resource, e.eventually(func() error {
		found, err := e.dynamic.Resource(definitions).Get(e.ctx, created.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		conditions, _, _ := unstructured.NestedSlice(found.Object, "status", "conditions")
		for _, condition := range conditions {
			if of := condition.(map[string]any); of["type"] == "Established" && of["status"] == "True" {
				_, err := boats.List(e.ctx, metav1.ListOptions{})
				return err
			}
		}
		return errors.New("not established")
	})
}

func groupVersionResource(group string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: "boats"}
}

func open() map[string]any {
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return map[string]any{"type": "object", "properties": map[string]any{"spec": anything, "status": anything}}
}

func boat(group, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Boat", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"rowers": int64(2)},
	}}
}

func customResources(e *env) error {
	boats, resource, err := e.define(open())
	if err != nil {
		return err
	}
	created, err := boats.Create(e.ctx, boat(resource.Group, "b"), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Object["status"] = map[string]any{"rowers": int64(1)}
	updated, err := boats.UpdateStatus(e.ctx, created, metav1.UpdateOptions{})
	if err != nil {
		return err
	}
	rowers, _, _ := unstructured.NestedInt64(updated.Object, "status", "rowers")
	if err := expect("status", rowers, 1); err != nil {
		return err
	}
	metadata, err := e.metadata.Resource(resource).Namespace(e.namespace).List(e.ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	if err := expect("listed", len(metadata.Items), 1); err != nil {
		return err
	}
	return boats.DeleteCollection(e.ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

func scaleCustomResources(e *env) error {
	boats, resource, err := e.define(open())
	if err != nil {
		return err
	}
	if _, err := boats.Create(e.ctx, boat(resource.Group, "b"), metav1.CreateOptions{}); err != nil {
		return err
	}
	// The scale of a custom resource has no Protobuf.
	config := rest.CopyConfig(e.config)
	config.ContentType, config.AcceptContentTypes = "application/json", "application/json"
	groups, err := restmapper.GetAPIGroupResources(e.discovery)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	resolver := scale.NewDiscoveryScaleKindResolver(e.discovery)
	scales, err := scale.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc, resolver)
	if err != nil {
		return err
	}
	found, err := scales.Scales(e.namespace).Get(e.ctx, resource.GroupResource(), "b", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := expect("replicas", found.Spec.Replicas, 2); err != nil {
		return err
	}
	found.Spec.Replicas = 8
	if _, err := scales.Scales(e.namespace).Update(e.ctx, resource.GroupResource(), found, metav1.UpdateOptions{}); err != nil {
		return err
	}
	now, err := boats.Get(e.ctx, "b", metav1.GetOptions{})
	if err != nil {
		return err
	}
	rowers, _, _ := unstructured.NestedInt64(now.Object, "spec", "rowers")
	return expect("rowers", rowers, 8)
}

func rules(e *env) error {
	schema := open()
	schema["properties"].(map[string]any)["spec"] = map[string]any{
		"type": "object", "properties": map[string]any{"rowers": map[string]any{"type": "integer"}},
		"x-kubernetes-validations": []any{map[string]any{"rule": "self.rowers < 9", "message": "too many"}},
	}
	boats, resource, err := e.define(schema)
	if err != nil {
		return err
	}
	wrong := boat(resource.Group, "b")
	wrong.Object["spec"] = map[string]any{"rowers": int64(9)}
	if _, err := boats.Create(e.ctx, wrong, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "too many") {
		return fmt.Errorf("nine rowers: %v", err)
	}
	_, err = boats.Create(e.ctx, boat(resource.Group, "b"), metav1.CreateOptions{})
	return err
}

// Checks of discovery and OpenAPI.

func discoverResources(e *env) error {
	_, lists, err := e.discovery.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	// Every resource with the verb list can be listed.
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") || !contains(resource.Verbs, "list") {
				continue
			}
			if _, err := e.dynamic.Resource(version.WithResource(resource.Name)).List(e.ctx, metav1.ListOptions{Limit: 1}); err != nil {
				return fmt.Errorf("%s in %s: %w", resource.Name, list.GroupVersion, err)
			}
		}
	}
	return nil
}

func contains(list []string, wanted string) bool {
	for _, one := range list {
		if one == wanted {
			return true
		}
	}
	return false
}

func openAPI(e *env) error {
	document, err := e.discovery.OpenAPISchema()
	if err != nil {
		return fmt.Errorf("v2: %w", err)
	}
	found := false
	for _, definition := range document.GetDefinitions().GetAdditionalProperties() {
		found = found || definition.GetName() == "io.k8s.api.core.v1.ConfigMap"
	}
	if !found {
		return errors.New("v2 has no ConfigMap")
	}
	paths, err := e.discovery.OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	core, there := paths["api/v1"]
	if !there {
		return errors.New("v3 has no api/v1")
	}
	text, err := core.Schema("application/json")
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), "io.k8s.api.core.v1.ConfigMap") {
		return errors.New("v3 has no ConfigMap")
	}
	return nil
}

func leads(e *env) error {
	lock, err := resourcelock.New(
		resourcelock.LeasesResourceLock, e.namespace, "lock", e.typed.CoreV1(), e.typed.CoordinationV1(),
		resourcelock.ResourceLockConfig{Identity: "me"})
	if err != nil {
		return err
	}
	leading := make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: 5 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 100 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { close(leading) }, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(e.ctx)
	ended := make(chan struct{})
	go func() { elector.Run(ctx); close(ended) }()
	select {
	case <-leading:
	case <-e.ctx.Done():
		cancel()
		return errors.New("never led")
	}
	defer func() { cancel(); <-ended }()
	lease, err := e.typed.CoordinationV1().Leases(e.namespace).Get(e.ctx, "lock", metav1.GetOptions{})
	if err != nil {
		return err
	}
	return expect("holder", ptr.Deref(lease.Spec.HolderIdentity, ""), "me")
}

// Checks of groups that not every server has.

func autoscalers(e *env) error {
	_, err := e.typed.AutoscalingV2().HorizontalPodAutoscalers(e.namespace).Create(e.ctx, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "h"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "d"},
			MaxReplicas:    3,
		},
	}, metav1.CreateOptions{})
	return err
}

func endpointSlices(e *env) error {
	_, err := e.typed.DiscoveryV1().EndpointSlices(e.namespace).Create(e.ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "s"}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.2.3"}}},
	}, metav1.CreateOptions{})
	return err
}

func classes(e *env) error {
	remove := metav1.DeleteOptions{}
	if _, err := e.typed.StorageV1().StorageClasses().Create(e.ctx, &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace}, Provisioner: "oarlock.dev/none",
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, err := e.typed.SchedulingV1().PriorityClasses().Create(e.ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace}, Value: 5,
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := e.typed.SchedulingV1().PriorityClasses().Delete(e.ctx, e.namespace, remove); err != nil {
		return err
	}
	return e.typed.StorageV1().StorageClasses().Delete(e.ctx, e.namespace, remove)
}

func certificates(e *env) error {
	_, err := e.typed.CertificatesV1().CertificateSigningRequests().List(e.ctx, metav1.ListOptions{})
	return err
}

func webhooks(e *env) error {
	webhooks := e.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	if _, err := webhooks.Create(e.ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: e.namespace},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return webhooks.Delete(e.ctx, e.namespace, metav1.DeleteOptions{})
}
