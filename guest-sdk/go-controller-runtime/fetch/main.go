// Command fetch copies a file of a required module into the current folder, for go generate:
//
//	go run oarlock.dev/controller-runtime/fetch MODULE FILE NAME
//
// It leaves out the function main of a Go source, and the imports that only main needs: with them, a
// component would have the servers of controller-runtime's own manager. Other files, such as a
// CustomResourceDefinition, are copied as they are.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
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
	if path.Ext(file) == ".go" {
		if text, err = withoutMain(text); err != nil {
			return fmt.Errorf("%s of %s: %w", file, module, err)
		}
	}
	return os.WriteFile(name, text, 0o644)
}

// withoutMain returns a source without the function main and what only main imports.
func withoutMain(text []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", text, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var main ast.Decl
	file.Decls = slices.DeleteFunc(file.Decls, func(decl ast.Decl) bool {
		function, ok := decl.(*ast.FuncDecl)
		isMain := ok && function.Recv == nil && function.Name.Name == "main"
		if isMain {
			main = decl
		}
		return isMain
	})
	if main == nil {
		return text, nil
	}
	file.Comments = slices.DeleteFunc(file.Comments, func(comment *ast.CommentGroup) bool {
		return comment.Pos() >= main.Pos() && comment.End() <= main.End()
	})
	used := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok {
			if name, ok := selector.X.(*ast.Ident); ok {
				used[name.Name] = true
			}
		}
		return true
	})
	for _, decl := range file.Decls {
		if imports, ok := decl.(*ast.GenDecl); ok && imports.Tok == token.IMPORT {
			imports.Specs = slices.DeleteFunc(imports.Specs, func(spec ast.Spec) bool {
				return !used[nameOf(spec.(*ast.ImportSpec))]
			})
		}
	}
	var made bytes.Buffer
	err = format.Node(&made, files, file)
	return made.Bytes(), err
}

// nameOf returns the name of an imported package.
func nameOf(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(strings.Trim(spec.Path.Value, `"`))
}
