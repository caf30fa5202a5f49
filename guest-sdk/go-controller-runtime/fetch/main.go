// Command fetch copies a file of a required module into the current folder, for go generate:
//
//	go run oarlock.dev/controller-runtime/fetch MODULE FILE NAME
package main

import (
	"errors"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("fetch: ")
	if len(os.Args) != 4 {
		log.Fatal("usage: fetch MODULE FILE NAME")
	}
	if err := fetch(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func fetch(module, file, name string) error {
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return err
	}
	root := strings.TrimSpace(string(folder))
	if root == "" {
		return errors.New(module + " is not downloaded: go mod download")
	}
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return err
	}
	return os.WriteFile(name, text, 0o644)
}
