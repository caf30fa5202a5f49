package corpus

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FirstVersion is the resourceVersion of the list; the first event has the next one, and so on.
const FirstVersion = firstVersion

// Events changes random Pods n times, as kubelets do, and calls `each` with each state. Those of one Pod come
// in order; `each` is called from several goroutines, since Pods are independent.
func Events(seed uint64, pods []*corev1.Pod, n int, each func(event int, pod *corev1.Pod)) {
	r := source(seed, 4, 0)
	of := make([]int32, n)
	for i := range of {
		of[i] = int32(r.IntN(len(pods)))
	}
	Parallel(workers, func(w int) {
		for i, p := range of {
			if int(p)%workers == w {
				pod := pods[p]
				at := metav1.NewTime(begin.Add(240*24*time.Hour + time.Duration(i)*10*time.Millisecond).Truncate(time.Second))
				change(source(seed, 5, uint64(i)), pod, at)
				pod.ResourceVersion = strconv.Itoa(FirstVersion + 1 + i)
				each(i, pod)
			}
		}
	})
}

// change does to a Pod what its kubelet would report: a container restarts, or it becomes unready and ready
// again.
func change(r *rand.Rand, pod *corev1.Pod, at metav1.Time) {
	statuses := pod.Status.ContainerStatuses
	status := &statuses[r.IntN(len(statuses))]
	if chance(r, 10) {
		for i := range statuses {
			statuses[i].LastTerminationState = corev1.ContainerState{}
		}
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: 137, Reason: "OOMKilled", StartedAt: status.State.Running.StartedAt, FinishedAt: at,
			ContainerID: status.ContainerID,
		}
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: at}
		status.ContainerID = "containerd://" + hex64(r)
		status.RestartCount++
	}
	conditions := pod.Status.Conditions
	becomesReady := conditions[2].Status == corev1.ConditionFalse
	for i := range statuses {
		statuses[i].Ready = becomesReady || &statuses[i] != status
	}
	for i := range conditions {
		condition := &conditions[i]
		if condition.Type != corev1.PodReady && condition.Type != corev1.ContainersReady {
			continue
		}
		condition.LastTransitionTime = at
		condition.Status, condition.Reason, condition.Message = corev1.ConditionTrue, "", ""
		if !becomesReady {
			condition.Status, condition.Reason = corev1.ConditionFalse, "ContainersNotReady"
			condition.Message = fmt.Sprintf("containers with unready status: [%s]", status.Name)
		}
	}
	pod.ManagedFields[len(pod.ManagedFields)-1].Time = &at
}
