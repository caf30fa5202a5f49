// A plugin that logs what it is told about ConfigMaps.
//
// The same plugin exists in five languages. Each binds to the contract in `wit/` directly, without an SDK, and shows one
// of everything: fields that come along with a call, a field that is pulled, a read of the cache, the configuration and
// the log.
//
// Its code is where the generated bindings call it: in the packages exports/export_oarlock_plugin_*.
package main

import _ "oarlock.dev/plugins/hello-go/exports/wit_exports"

// main is never called: the host calls the exports.
func main() {}
