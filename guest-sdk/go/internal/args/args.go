// Package args gives the process a name: a component has no arguments, and packages such as klog read
// os.Args[0] when they are initialized.
//
// It imports nothing but os, so it is initialized before them: Go initializes packages in the order of
// their import paths, each after its imports, and a package that uses os.Args[0] also imports
// path/filepath, which comes later.
package args

import "os"

func init() {
	if len(os.Args) == 0 {
		os.Args = []string{"plugin"}
	}
}
