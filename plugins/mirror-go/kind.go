package main

import oarlock "oarlock.dev/sdk"

// kind is a kind of object that mirror copies.
type kind struct {
	name, plural string
	// content are the fields of a source that a copy has.
	content []string
	// sources is the name of the subscription to sources, and of their index by annotation; copies that of
	// the copies, and of their index by source.
	sources, copies string
}

var kinds = []kind{
	{"ConfigMap", "configmaps", []string{"data", "binaryData"}, "configmap-sources", "configmap-copies"},
	{"Secret", "secrets", []string{"data"}, "secret-sources", "secret-copies"},
}

func (k kind) target() oarlock.GroupVersionResource {
	return oarlock.GVR("", "v1", k.plural)
}
