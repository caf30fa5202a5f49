// A plugin that logs every notification about ConfigMaps.
//
// The same plugin exists in five languages. Each uses the contract in `wit/` directly, without an SDK, and
// shows one example of each kind: declared fields, a field that it reads itself, a read of the cache, the
// configuration and the log.
//
// The generated bindings call the packages exports/export_oarlock_plugin_*, which have the code.
package main

import _ "oarlock.dev/plugins/hello-go/exports/wit_exports"

// main is never called: the host calls the exports.
func main() {}
