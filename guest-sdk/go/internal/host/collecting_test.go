package host

import (
	"runtime"
	"runtime/debug"
	"testing"

	client "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_client"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
	wit "oarlock.dev/sdk/internal/wit/types"
)

// answered answers each request.
type answered struct{ Client }

func (answered) Get(types.GroupVersionResource, types.ObjectKey, string) (string, error) {
	return "", nil
}

func (answered) List(types.GroupVersionResource, types.Namespaces, string, string, types.Projection, types.PageRequest) (types.Page, error) {
	return types.Page{}, nil
}

func (answered) Create(types.GroupVersionResource, string, string) (client.Written, error) {
	return client.Written{}, nil
}

func (answered) Apply(types.GroupVersionResource, types.ObjectKey, string, string, bool, client.Preconditions) (client.Written, error) {
	return client.Written{}, nil
}

func (answered) Patch(types.GroupVersionResource, types.ObjectKey, string, uint8, string, client.Preconditions) (client.Written, error) {
	return client.Written{}, nil
}

func (answered) Replace(types.GroupVersionResource, types.ObjectKey, string, string) (client.Written, error) {
	return client.Written{}, nil
}

func (answered) Delete(types.GroupVersionResource, types.ObjectKey, uint8, wit.Option[uint32], client.Preconditions) error {
	return nil
}

// kept keeps the compiler from leaving out an allocation.
var kept []byte

func TestEachRequestCollectsTheGarbageOfTheOnesBefore(t *testing.T) {
	// As in a component.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var target types.GroupVersionResource
	var key types.ObjectKey
	var conditions client.Preconditions
	c := CollectingClient{answered{}}
	for name, request := range map[string]func(){
		"get": func() { c.Get(target, key, "") },
		"list": func() {
			c.List(target, types.MakeNamespacesAll(), "", "", types.MakeProjectionKeys(), types.PageRequest{})
		},
		"create":  func() { c.Create(target, "", "") },
		"apply":   func() { c.Apply(target, key, "", "", false, conditions) },
		"patch":   func() { c.Patch(target, key, "", client.PatchKind_MergePatch, "", conditions) },
		"replace": func() { c.Replace(target, key, "", "") },
		"delete":  func() { c.Delete(target, key, client.Propagation_Background, wit.None[uint32](), conditions) },
	} {
		c.Get(target, key, "")
		if n := collections(request); n != 0 {
			t.Errorf("%s without garbage: %d collections", name, n)
		}
		kept = make([]byte, 9<<20)
		kept = nil
		if n := collections(request); n != 1 {
			t.Errorf("%s after 9 MiB of garbage: %d collections", name, n)
		}
	}
}

// collections returns the number of collections during a call.
func collections(call func()) uint32 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}
