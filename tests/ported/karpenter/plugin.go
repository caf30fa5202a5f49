// Two controllers of Karpenter as an Oarlock plugin: nodeclaim.expiration deletes NodeClaims that have
// expired, nodeclaim.podevents notes in their status when a Pod was last bound or ended. Both packages are
// those of Karpenter's module, unchanged; this file is in the place of its main.
package main

//go:generate -command fetch go run oarlock.dev/controller-runtime/fetch
//go:generate fetch sigs.k8s.io/karpenter pkg/apis/crds/karpenter.sh_nodeclaims.yaml nodeclaims.yaml

import (
	"context"
	"errors"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwok "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	karpenter "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/expiration"
	"sigs.k8s.io/karpenter/pkg/controllers/nodeclaim/podevents"

	oarlockctrl "oarlock.dev/controller-runtime"
	oarlock "oarlock.dev/sdk"
)

func init() {
	nodeClaims := oarlock.GVR("karpenter.sh", "v1", "nodeclaims")
	oarlock.Register(oarlockctrl.Setup(oarlockctrl.Options{
		Name: "karpenter", Version: "0.1.0", Scheme: scheme.Scheme, Stateless: true,
		ClusterScoped: []schema.GroupKind{{Group: "karpenter.sh", Kind: "NodeClaim"}},
		Requests: []oarlock.Request{
			{Target: nodeClaims, Verbs: []string{"delete"}},
			{Target: nodeClaims, Subresource: "status", Verbs: []string{"patch"}},
		},
	}, setup))
}

// setup is what Karpenter's operator does for these controllers.
func setup(mgr ctrl.Manager) error {
	ctx := context.Background()
	byProviderID := func(obj client.Object) []string {
		return []string{obj.(*karpenter.NodeClaim).Status.ProviderID}
	}
	// Nodes are read, so the cache is to have them.
	_, watchNodes := mgr.GetCache().GetInformer(ctx, &corev1.Node{})
	return errors.Join(
		watchNodes,
		mgr.GetFieldIndexer().IndexField(ctx, &karpenter.NodeClaim{}, "status.providerID", byProviderID),
		expiration.NewController(clock.RealClock{}, mgr.GetClient(), provider{}).Register(ctx, mgr),
		podevents.NewController(clock.RealClock{}, mgr.GetClient(), provider{}).Register(ctx, mgr),
	)
}

// provider is a cloud whose nodes are those of Karpenter's kwok provider. These controllers ask it for
// nothing else.
type provider struct{ cloudprovider.CloudProvider }

func (provider) GetSupportedNodeClasses() []status.Object {
	return []status.Object{&kwok.KWOKNodeClass{}}
}

func main() {}
