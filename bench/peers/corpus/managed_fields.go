package corpus

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// merged has the keys of the lists that server-side apply merges by element. All other lists are one field.
var merged = map[string][]string{
	"conditions": {"type"}, "containers": {"name"}, "env": {"name"}, "imagePullSecrets": {"name"},
	"ownerReferences": {"uid"}, "podIPs": {"ip"}, "ports": {"containerPort", "protocol"},
	"topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"}, "volumeMounts": {"mountPath"}, "volumes": {"name"},
}

// leaves are structures that count as one field.
var leaves = map[string]bool{"fieldRef": true, "secretKeyRef": true, "nodeSelector": true, "labelSelector": true}

// controllerManagerEntry returns the entry of the creator of the Pod. Call it before other managers change
// the Pod.
func controllerManagerEntry(pod *corev1.Pod) metav1.ManagedFieldsEntry {
	meta := metav1.ObjectMeta{
		GenerateName: pod.GenerateName, Labels: pod.Labels, Annotations: pod.Annotations, OwnerReferences: pod.OwnerReferences,
	}
	spec := pod.Spec
	// Set by admission, not by the controller.
	spec.Priority, spec.PreemptionPolicy = nil, nil
	set := fieldSet(struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
		Spec     corev1.PodSpec    `json:"spec"`
	}{meta, spec})
	delete(set["f:metadata"].(map[string]any), "f:creationTimestamp")
	return entry("kube-controller-manager", "", pod.CreationTimestamp, set)
}

// kubeletEntry returns the entry of the kubelet, which reports the status of the Pod.
func kubeletEntry(pod *corev1.Pod, at metav1.Time) metav1.ManagedFieldsEntry {
	status := pod.Status
	status.QOSClass = ""
	var conditions []corev1.PodCondition
	for _, condition := range status.Conditions {
		// The scheduler sets this field by a binding, which has no entry in managedFields.
		if condition.Type != corev1.PodScheduled {
			conditions = append(conditions, condition)
		}
	}
	status.Conditions = conditions
	set := fieldSet(struct {
		Status corev1.PodStatus `json:"status"`
	}{status})
	return entry("kubelet", "status", at, set)
}

func entry(manager, subresource string, at metav1.Time, set map[string]any) metav1.ManagedFieldsEntry {
	raw, err := json.Marshal(set)
	if err != nil {
		panic(err) // Maps of maps always encode.
	}
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: raw}, Subresource: subresource,
	}
}

// fieldSet returns the fields that are set, as fieldsV1 writes them.
func fieldSet(of any) map[string]any {
	bytes, err := json.Marshal(of)
	if err != nil {
		panic(err) // Kubernetes' types always encode.
	}
	var tree map[string]any
	if err := json.Unmarshal(bytes, &tree); err != nil {
		panic(err) // It has just been encoded.
	}
	set := map[string]any{}
	for name, value := range tree {
		set["f:"+name] = fieldsOf(name, value, false)
	}
	return set
}

func fieldsOf(name string, value any, hasSelf bool) map[string]any {
	set := map[string]any{}
	switch value := value.(type) {
	case map[string]any:
		if leaves[name] {
			return set
		}
		if hasSelf {
			set["."] = map[string]any{}
		}
		for name, value := range value {
			set["f:"+name] = fieldsOf(name, value, owned(name))
		}
	case []any:
		keys, isMerged := merged[name]
		if !isMerged {
			return set
		}
		if name != "containers" && name != "conditions" {
			set["."] = map[string]any{}
		}
		for _, element := range value {
			element, _ := element.(map[string]any)
			inner := map[string]any{".": map[string]any{}}
			for name, value := range element {
				inner["f:"+name] = fieldsOf(name, value, owned(name))
			}
			set[keyOf(keys, element)] = inner
		}
	}
	return set
}

// owned has the structures that count as fields themselves: roughly those behind a pointer.
func owned(name string) bool {
	switch name {
	case "metadata", "spec", "status", "resources":
		return false
	default:
		return true
	}
}

func keyOf(keys []string, element map[string]any) string {
	key := map[string]any{}
	for _, name := range keys {
		key[name] = element[name]
	}
	bytes, err := json.Marshal(key)
	if err != nil {
		panic(fmt.Sprintf("key of %v: %v", element, err))
	}
	return "k:" + string(bytes)
}
