// Package export_oarlock_plugin_metadata has the description of the plugin.
package export_oarlock_plugin_metadata

import (
	"fmt"

	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"oarlock.dev/plugins/hello-go/gc"
	"oarlock.dev/plugins/hello-go/hello"
	config "oarlock.dev/plugins/hello-go/imports/oarlock_plugin_config"
	metadata "oarlock.dev/plugins/hello-go/imports/oarlock_plugin_metadata"
	types "oarlock.dev/plugins/hello-go/imports/oarlock_plugin_types"
)

type result = witTypes.Result[metadata.Description, string]

// Describe is called when the plugin is loaded.
func Describe() result {
	defer gc.Collect()
	selector, err := labelSelector()
	if err != nil {
		return witTypes.Err[metadata.Description](err.Error())
	}
	configMaps := types.GroupVersionResource{Version: "v1", Plural: "configmaps"}
	return witTypes.Ok[metadata.Description, string](metadata.Description{
		Name:    "hello-go",
		Version: "0.1.0",
		Subscriptions: []metadata.Subscription{{
			Name:          hello.Name,
			Target:        configMaps,
			Namespaces:    types.MakeNamespacesAll(),
			LabelSelector: selector,
			Fields:        hello.Fields,
			Content:       metadata.Content_Full,
			Enqueue:       metadata.MakeEnqueueNothing(),
		}},
		Reads: []metadata.Read{{
			Name:       hello.Name,
			Target:     configMaps,
			Namespaces: types.MakeNamespacesAll(),
			Content:    metadata.Content_Full,
		}},
	})
}

func labelSelector() (string, error) {
	configured := config.Get("/labelSelector")
	switch {
	case configured.IsErr():
		return "", fmt.Errorf("cannot read the configuration: %v", configured.Err())
	case configured.Ok().IsNone():
		return "app=hello", nil
	}
	selector, ok := hello.Text(configured.Ok())
	if !ok {
		return "", fmt.Errorf("labelSelector in the configuration is not a string")
	}
	return selector, nil
}
