package corpus

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Small makes n small objects, in the order of namespace and name: ConfigMaps of two short entries.
func Small(seed uint64, n int) []*corev1.ConfigMap {
	const perNamespace = 1000
	maps := make([]*corev1.ConfigMap, n)
	Parallel(n, func(i int) {
		r := source(seed, 6, uint64(i))
		maps[i] = &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace:         fmt.Sprintf("tenant-%04d", i/perNamespace),
				Name:              fmt.Sprintf("settings-%03d-%s", i%perNamespace, suffix(r, 5)),
				UID:               uid(r),
				ResourceVersion:   fmt.Sprint(firstVersion - 1 - r.IntN(900_000)),
				CreationTimestamp: after(r, metav1.NewTime(begin), 200*24*3600),
				Labels:            map[string]string{"app": pick(r, products), "team": pick(r, teams)},
			},
			Data: map[string]string{"revision": fmt.Sprint(r.IntN(1000)), "token": suffix(r, 12)},
		}
	})
	return maps
}
