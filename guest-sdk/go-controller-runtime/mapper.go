package oarlockctrl

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	oarlock "oarlock.dev/sdk"
)

// mapper maps kinds to resources without discovery: by the usual plural names, and by the options.
type mapper struct {
	scheme        *runtime.Scheme
	resources     map[schema.GroupVersionKind]oarlock.GroupVersionResource
	clusterScoped []schema.GroupKind

	mutex sync.Mutex
	// made has the first types of the scheme, so many of them.
	made  *meta.DefaultRESTMapper
	types int
}

var _ meta.RESTMapper = &mapper{}

// builtIn are the cluster-scoped kinds of Kubernetes, by group.
var builtIn = map[string][]string{
	"":                             {"Namespace", "Node", "PersistentVolume", "ComponentStatus"},
	"admissionregistration.k8s.io": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"networking.k8s.io":            {"IngressClass", "IPAddress", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"StorageClass", "CSIDriver", "CSINode", "VolumeAttachment", "VolumeAttributesClass"},
}

func newMapper(options Options) *mapper {
	return &mapper{scheme: options.Scheme, resources: options.Resources, clusterScoped: options.ClusterScoped}
}

// current returns a mapper of all types that the scheme has now: setup may add some.
func (m *mapper) current() *meta.DefaultRESTMapper {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.scheme.AllKnownTypes()
	if m.made != nil && m.types == len(known) {
		return m.made
	}
	m.made, m.types = meta.NewDefaultRESTMapper(m.scheme.PrioritizedVersionsAllGroups()), len(known)
	for kind := range known {
		scope := meta.RESTScopeNamespace
		if m.isClusterScoped(kind.GroupKind()) {
			scope = meta.RESTScopeRoot
		}
		target := m.resource(kind)
		plural := schema.GroupVersionResource{Group: target.Group, Version: target.Version, Resource: target.Plural}
		_, singular := meta.UnsafeGuessKindToResource(kind)
		m.made.AddSpecific(kind, plural, singular, scope)
	}
	return m.made
}

// KindFor returns the kind of a resource.
func (m *mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.current().KindFor(resource)
}

// KindsFor returns the kinds of a resource.
func (m *mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.current().KindsFor(resource)
}

// ResourceFor returns the whole name of a resource.
func (m *mapper) ResourceFor(part schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.current().ResourceFor(part)
}

// ResourcesFor returns the whole names of resources.
func (m *mapper) ResourcesFor(part schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.current().ResourcesFor(part)
}

// RESTMapping returns the resource of a kind.
func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.current().RESTMapping(kind, versions...)
}

// RESTMappings returns the resources of a kind.
func (m *mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.current().RESTMappings(kind, versions...)
}

// ResourceSingularizer returns the singular name of a resource.
func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return m.current().ResourceSingularizer(resource)
}

func (m *mapper) resource(kind schema.GroupVersionKind) oarlock.GroupVersionResource {
	if named, ok := m.resources[kind]; ok {
		return named
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return oarlock.GVR(plural.Group, plural.Version, plural.Resource)
}

func (m *mapper) isClusterScoped(kind schema.GroupKind) bool {
	return slices.Contains(builtIn[kind.Group], kind.Kind) || slices.Contains(m.clusterScoped, kind)
}
