package corpus

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The size of a Pod's JSON, managedFields and all.
const (
	smallestPod = 5_000
	largestPod  = 7_000
)

// template is what the Pods of one ReplicaSet share.
type template struct {
	namespace  string
	replicaSet string
	owner      types.UID
	hash       string
	created    metav1.Time
	labels     map[string]string
	notes      map[string]string
	spec       corev1.PodSpec
}

// newTemplate draws until the Pods made of it are of the right size.
func newTemplate(seed uint64, index int) *template {
	r := source(seed, 1, uint64(index))
	for {
		t := drawTemplate(r, index)
		bytes, err := json.Marshal(t.pod(seed, 1<<40))
		if err != nil {
			panic(err) // A Pod always encodes.
		}
		// Addresses, numbers and what happens to a Pod make some bytes of difference.
		if smallestPod+100 < len(bytes) && len(bytes) < largestPod-200 {
			return t
		}
	}
}

func drawTemplate(r *rand.Rand, index int) *template {
	product, role := products[index%len(products)], roles[index/len(products)%len(roles)]
	stage, team := pick(r, stages), pick(r, teams)
	name := fmt.Sprintf("%s-%s", product, role)
	t := &template{
		namespace: fmt.Sprintf("%s-%s", product, stage),
		owner:     uid(r),
		hash:      suffix(r, 9),
		created:   metav1.NewTime(begin.Add(time.Duration(r.IntN(200*24*3600)) * time.Second)),
	}
	t.replicaSet = name + "-" + t.hash
	version := fmt.Sprintf("%d.%d.%d", r.IntN(9), r.IntN(40), r.IntN(20))
	t.labels = map[string]string{
		"app":               name,
		"pod-template-hash": t.hash,
		"team":              team,
	}
	for _, more := range some(r, [][2]string{
		{"app.kubernetes.io/name", name},
		{"app.kubernetes.io/instance", name + "-" + stage},
		{"app.kubernetes.io/version", version},
		{"app.kubernetes.io/component", role},
		{"app.kubernetes.io/part-of", product},
		{"app.kubernetes.io/managed-by", "Helm"},
		{"helm.sh/chart", fmt.Sprintf("service-%d.%d.0", r.IntN(5), r.IntN(30))},
		{"tier", pick(r, []string{"backend", "frontend", "batch"})},
	}, pick(r, []int{0, 0, 1, 2, 4})) {
		t.labels[more[0]] = more[1]
	}
	t.notes = map[string]string{}
	for _, more := range some(r, [][2]string{
		{"checksum/config", hex64(r)},
		{"checksum/secrets", hex64(r)},
		{"prometheus.io/scrape", "true"},
		{"prometheus.io/port", fmt.Sprint(9000 + r.IntN(200))},
		{"kubectl.kubernetes.io/restartedAt", t.created.Format(time.RFC3339)},
		{"kubectl.kubernetes.io/default-container", name},
		{"sidecar.istio.io/inject", "true"},
		{"cluster-autoscaler.kubernetes.io/safe-to-evict", "true"},
	}, pick(r, []int{0, 0, 1, 2, 4})) {
		t.notes[more[0]] = more[1]
	}
	// Fixed before the drawing, or the larger ones would not make it.
	t.spec = drawSpec(r, []int{0, 1, 0, 1, 2}[index%5], name, product, stage, version)
	return t
}

// drawSpec makes that of a Pod with so many containers beside the first one.
func drawSpec(r *rand.Rand, beside int, name, product, stage, version string) corev1.PodSpec {
	rich := 2 - beside
	account := "default"
	if chance(r, 60) {
		account = name
	}
	spec := corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: new(pick(r, []int64{30, 30, 45, 60, 120})),
		DNSPolicy:                     corev1.DNSClusterFirst,
		ServiceAccountName:            account,
		DeprecatedServiceAccount:      account,
		SecurityContext:               &corev1.PodSecurityContext{},
		SchedulerName:                 corev1.DefaultSchedulerName,
		Priority:                      new(int32(0)),
		EnableServiceLinks:            new(true),
		PreemptionPolicy:              new(corev1.PreemptLowerPriority),
	}
	if chance(r, 25*rich) {
		spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsUser: new(int64(1000 + r.IntN(60000))), RunAsNonRoot: new(true), FSGroup: new(int64(1000 + r.IntN(60000))),
		}
	}
	if chance(r, 10*rich) {
		spec.NodeSelector = map[string]string{"node.example.com/pool": pick(r, []string{"general", "memory", "spot", "gpu"})}
	}
	if chance(r, 10*rich) {
		spec.PriorityClassName, spec.Priority = "business-"+stage, new(int32(1000*(1+r.IntN(9))))
	}
	if chance(r, 10*rich) {
		spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry-" + product}}
	}
	if chance(r, 10*rich) {
		spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		}}
	}
	spec.Tolerations = drawTolerations(r)
	spec.Volumes = drawVolumes(r, name, rich)
	image := fmt.Sprintf("%s/%s/%s:v%s", pick(r, registries), product, name, version)
	spec.Containers = []corev1.Container{drawContainer(r, name, image, rich, spec.Volumes)}
	for _, sidecar := range some(r, sidecars, beside) {
		image := fmt.Sprintf("%s/%s:%d.%d.%d", pick(r, registries), sidecar, 1+r.IntN(3), r.IntN(30), r.IntN(10))
		spec.Containers = append(spec.Containers, drawContainer(r, sidecar, image, 0, nil))
	}
	return spec
}

func drawTolerations(r *rand.Rand) []corev1.Toleration {
	var tolerations []corev1.Toleration
	if chance(r, 20) {
		tolerations = append(tolerations, corev1.Toleration{
			Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: pick(r, teams), Effect: corev1.TaintEffectNoSchedule,
		})
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerations = append(tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300)),
		})
	}
	return tolerations
}

func drawVolumes(r *rand.Rand, name string, atMost int) []corev1.Volume {
	return some(r, []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name + "-config"}, DefaultMode: new(int32(420)),
		}}},
		{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: name + "-tls", DefaultMode: new(int32(420)),
		}}},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "spool", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("256Mi")),
		}}},
	}, r.IntN(1+atMost))
}

// drawContainer makes one that is the richer, from 0 to 2, the fewer there are beside it.
func drawContainer(r *rand.Rand, name, image string, rich int, volumes []corev1.Volume) corev1.Container {
	port := int32(8000 + r.IntN(1000))
	c := corev1.Container{
		Name:                     name,
		Image:                    image,
		ImagePullPolicy:          pick(r, []corev1.PullPolicy{corev1.PullIfNotPresent, corev1.PullIfNotPresent, corev1.PullAlways}),
		TerminationMessagePath:   corev1.TerminationMessagePathDefault,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse(fmt.Sprintf("%dm", 25*(1+r.IntN(60)))),
				corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", 32*(1+r.IntN(60)))),
			},
		},
	}
	if chance(r, 30*rich) {
		c.Resources.Limits = corev1.ResourceList{
			corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", 2048+32*r.IntN(60))),
		}
	}
	if rich > 0 {
		c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: port, Protocol: corev1.ProtocolTCP}}
	}
	if chance(r, 20*rich) {
		c.Image += "@sha256:" + hex64(r)
	}
	if chance(r, 10*rich) {
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: "metrics", ContainerPort: port + 1000, Protocol: corev1.ProtocolTCP})
	}
	if chance(r, 15*rich) {
		c.Args = some(r, arguments, 1+r.IntN(4))
	}
	for _, variable := range some(r, variables, r.IntN(1+rich*2)) {
		c.Env = append(c.Env, drawVariable(r, name, variable))
	}
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
				Path: path, Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTP,
			}},
			InitialDelaySeconds: int32(r.IntN(20)), TimeoutSeconds: int32(1 + r.IntN(5)), PeriodSeconds: int32(5 + r.IntN(15)),
			SuccessThreshold: 1, FailureThreshold: 3,
		}
	}
	if chance(r, 20*rich) {
		c.LivenessProbe = probe(pick(r, []string{"/healthz", "/livez", "/health/live"}))
	}
	if chance(r, 20*rich) {
		c.ReadinessProbe = probe(pick(r, []string{"/readyz", "/ready", "/health/ready"}))
	}
	if chance(r, 10*rich) {
		c.SecurityContext = &corev1.SecurityContext{
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			ReadOnlyRootFilesystem:   new(true),
			AllowPrivilegeEscalation: new(false),
		}
	}
	for _, volume := range volumes {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
			Name: volume.Name, MountPath: "/var/run/" + name + "/" + volume.Name, ReadOnly: volume.EmptyDir == nil,
		})
	}
	return c
}

func drawVariable(r *rand.Rand, name, variable string) corev1.EnvVar {
	env := corev1.EnvVar{Name: variable}
	switch r.IntN(6) {
	case 0:
		env.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: name + "-credentials"}, Key: variable,
		}}
	case 1:
		env.ValueFrom = &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
			APIVersion: "v1", FieldPath: pick(r, []string{"metadata.name", "metadata.namespace", "status.podIP", "spec.nodeName"}),
		}}
	case 2:
		env.Value = fmt.Sprint(r.IntN(10000))
	case 3:
		env.Value = fmt.Sprintf("https://%s.%s.svc.cluster.local:%d/v%d", pick(r, products), pick(r, stages), 8000+r.IntN(1000), 1+r.IntN(3))
	case 4:
		env.Value = pick(r, []string{"info", "debug", "json", "true", "false", "30s", "eu-central-1"})
	default:
		env.Value = fmt.Sprintf("%s-%s", name, suffix(r, 8))
	}
	return env
}
