package oarlockctrl

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	oarlock "oarlock.dev/sdk"
)

// mapper maps kinds to resources without discovery: by the usual plural names, and by the options.
type mapper struct {
	*meta.DefaultRESTMapper
	resources     map[schema.GroupVersionKind]oarlock.GroupVersionResource
	clusterScoped []schema.GroupKind
}

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
	m := &mapper{
		DefaultRESTMapper: meta.NewDefaultRESTMapper(options.Scheme.PrioritizedVersionsAllGroups()),
		resources:         options.Resources, clusterScoped: options.ClusterScoped,
	}
	for kind := range options.Scheme.AllKnownTypes() {
		scope := meta.RESTScopeNamespace
		if m.isClusterScoped(kind.GroupKind()) {
			scope = meta.RESTScopeRoot
		}
		target := m.resource(kind)
		plural := schema.GroupVersionResource{Group: target.Group, Version: target.Version, Resource: target.Plural}
		_, singular := meta.UnsafeGuessKindToResource(kind)
		m.AddSpecific(kind, plural, singular, scope)
	}
	return m
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
