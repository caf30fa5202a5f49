// Package export_oarlock_plugin_metadata says what the plugin watches and reads.
package export_oarlock_plugin_metadata

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"example.com/my-plugin/host"
	metadata "example.com/my-plugin/imports/oarlock_plugin_metadata"
	types "example.com/my-plugin/imports/oarlock_plugin_types"
)

// Describe is called when the host loads the plugin.
func Describe() witTypes.Result[metadata.Description, string] {
	defer host.Collect()
	resource := types.GroupVersionResource{Group: "apps", Version: "v1", Plural: "deployments"}
	return witTypes.Ok[metadata.Description, string](metadata.Description{
		Name:    "my-plugin",
		Version: "0.1.0",
		Subscriptions: []metadata.Subscription{{
			Name:       "objects",
			Target:     resource,
			Namespaces: types.MakeNamespacesAll(),
			Content:    metadata.Content_Full,
			Enqueue:    metadata.MakeEnqueueItself(),
		}},
		Reads: []metadata.Read{{
			Name:       "objects",
			Target:     resource,
			Namespaces: types.MakeNamespacesAll(),
			Content:    metadata.Content_Full,
		}},
		Stateless: true,
	})
}
