package corpus

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodes is the number of nodes.
const nodes = 300

// pod makes the Pod with this number, in the state after the report of its kubelet.
//
// Each container has its own imageID on purpose; in a real cluster Pods share image ids.
func (t *template) pod(seed uint64, index int) *corev1.Pod {
	r := source(seed, 2, uint64(index))
	node := r.IntN(nodes)
	created := after(r, t.created, 30*24*3600)
	started := after(r, created, 5)
	ready := after(r, metav1.NewTime(started.Add(20*time.Second)), 90)
	name := t.replicaSet + "-" + suffix(r, 5)
	hostIP := fmt.Sprintf("10.12.%d.%d", node/250, 2+node%250)
	podIP := fmt.Sprintf("10.%d.%d.%d", 64+node/128, node%128*2+r.IntN(2), 2+r.IntN(250))
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:              name,
			GenerateName:      t.replicaSet + "-",
			Namespace:         t.namespace,
			UID:               uid(r),
			ResourceVersion:   fmt.Sprint(firstVersion - 1 - r.IntN(900_000)),
			Generation:        1,
			CreationTimestamp: created,
			Labels:            t.labels,
			Annotations:       t.notes,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: t.replicaSet, UID: t.owner,
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: t.spec,
	}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{controllerManagerEntry(pod)}
	// From here on, what admission, the scheduler and the kubelet add.
	addTokenVolume(&pod.Spec, "kube-api-access-"+suffix(r, 5))
	pod.Spec.NodeName = fmt.Sprintf("ip-10-12-%d-%d.eu-central-1", node/250, 2+node%250)
	condition := func(kind corev1.PodConditionType, at metav1.Time) corev1.PodCondition {
		return corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at}
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodRunning,
		Conditions: []corev1.PodCondition{
			condition(corev1.PodReadyToStartContainers, started),
			condition(corev1.PodInitialized, created),
			condition(corev1.PodReady, ready),
			condition(corev1.ContainersReady, ready),
			condition(corev1.PodScheduled, created),
		},
		HostIP:    hostIP,
		HostIPs:   []corev1.HostIP{{IP: hostIP}},
		PodIP:     podIP,
		PodIPs:    []corev1.PodIP{{IP: podIP}},
		StartTime: &created,
		QOSClass:  corev1.PodQOSBurstable,
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name:        c.Name,
			State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: after(r, started, 20)}},
			Ready:       true,
			Image:       c.Image,
			ImageID:     withoutTag(c.Image) + "@sha256:" + hex64(r),
			ContainerID: "containerd://" + hex64(r),
			Started:     new(true),
		})
	}
	pod.ManagedFields = append(pod.ManagedFields, kubeletEntry(pod, ready))
	return pod
}

// addTokenVolume does what the admission plugin for ServiceAccounts does. The template's own slices stay as
// they are.
func addTokenVolume(spec *corev1.PodSpec, name string) {
	volume := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(int32(420)),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}}
	spec.Volumes = append(spec.Volumes[:len(spec.Volumes):len(spec.Volumes)], volume)
	containers := append([]corev1.Container(nil), spec.Containers...)
	for i := range containers {
		mounts := containers[i].VolumeMounts
		containers[i].VolumeMounts = append(mounts[:len(mounts):len(mounts)], corev1.VolumeMount{
			Name: name, ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
		})
	}
	spec.Containers = containers
}

func withoutTag(image string) string {
	for i := len(image) - 1; i >= 0; i-- {
		switch image[i] {
		case '@':
			return withoutTag(image[:i])
		case ':':
			return image[:i]
		case '/':
			return image
		}
	}
	return image
}
