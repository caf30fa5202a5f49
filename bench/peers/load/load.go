// Package load puts the corpus into a real API server, and writes to it at a steady rate.
package load

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"oarlock.dev/bench-peers/corpus"
)

// hands is the number of concurrent requests.
const hands = 32

// Load creates the Pods as the controller manager would, and reports their status as their kubelets would, so
// that managedFields are the server's own.
func Load(arguments []string) error {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "where the API server is")
	n := flags.Int("pods", 10_000, "how many")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	controllers, err := clientOf(*kubeconfig, "kube-controller-manager/v1.36.2 (linux/amd64)")
	if err != nil {
		return err
	}
	kubelets, err := clientOf(*kubeconfig, "kubelet/v1.36.2 (linux/amd64)")
	if err != nil {
		return err
	}
	pods := corpus.Pods(corpus.Seed, *n)
	ctx := context.Background()
	namespaces := map[string]bool{}
	for _, pod := range pods {
		if !namespaces[pod.Namespace] {
			namespaces[pod.Namespace] = true
			namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: pod.Namespace}}
			_, err := controllers.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return err
			}
		}
	}
	errs := make([]error, hands)
	var group sync.WaitGroup
	for hand := range hands {
		group.Go(func() {
			for i := hand; i < len(pods) && errs[hand] == nil; i += hands {
				errs[hand] = create(ctx, controllers, kubelets, pods[i])
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func create(ctx context.Context, controllers, kubelets *kubernetes.Clientset, pod *corev1.Pod) error {
	pod.UID, pod.ResourceVersion, pod.ManagedFields = "", "", nil
	// What admission fills in or looks up.
	pod.Spec.Priority, pod.Spec.PriorityClassName, pod.Spec.PreemptionPolicy = nil, "", nil
	created, err := controllers.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	created.Status = pod.Status
	_, err = kubelets.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, created, metav1.UpdateOptions{})
	return err
}

// Write changes ConfigMaps at a steady rate. It prints, as one line of JSON, when each write had returned, by
// the version that it made.
func Write(arguments []string) error {
	flags := flag.NewFlagSet("write", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "where the API server is")
	n := flags.Int("writes", 1_000, "how many")
	rate := flags.Int("rate", 100, "how many a second")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	client, err := clientOf(*kubeconfig, "oarlock-bench")
	if err != nil {
		return err
	}
	ctx := context.Background()
	maps := client.CoreV1().ConfigMaps("default")
	const objects = 50
	for i := range objects {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("written-", i)}}
		if _, err := maps.Create(ctx, object, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	returned := make(map[string]int64, *n)
	var mutex sync.Mutex
	var group sync.WaitGroup
	errs := make([]error, *n)
	tick := time.NewTicker(time.Second / time.Duration(*rate))
	defer tick.Stop()
	for i := range *n {
		<-tick.C
		group.Go(func() {
			patch := fmt.Appendf(nil, `{"data":{"n":"%d"}}`, i+time.Now().Nanosecond())
			written, err := maps.Patch(ctx, fmt.Sprint("written-", i%objects), types.MergePatchType, patch, metav1.PatchOptions{})
			at := time.Now().UnixNano()
			mutex.Lock()
			defer mutex.Unlock()
			if errs[i] = err; err == nil {
				returned[written.ResourceVersion] = at
			}
		})
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"returned": returned})
}

func clientOf(kubeconfig, agent string) (*kubernetes.Clientset, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.UserAgent, config.ContentType = -1, agent, "application/vnd.kubernetes.protobuf"
	return kubernetes.NewForConfig(rest.CopyConfig(config))
}
