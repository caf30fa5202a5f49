// An Oarlock plugin.
//
// The generated bindings call the packages exports/export_oarlock_plugin_*, which have the code.
package main

import _ "example.com/my-plugin/exports/wit_exports"

// main is never called: the host calls the exports.
func main() {}
