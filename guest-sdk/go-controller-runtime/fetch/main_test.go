package main

import (
	"strings"
	"testing"
)

func TestMainAndWhatOnlyItImportsAreLeftOut(t *testing.T) {
	made, err := withoutMain([]byte(`package main

import (
	"fmt"
	"os"

	other "example.com/x"
)

// used is kept.
func used() { fmt.Println(other.X) }

func main() {
	// Gone.
	os.Exit(1)
}
`))
	if err != nil {
		t.Fatal(err)
	}
	for text, isThere := range map[string]bool{
		"fmt.Println(other.X)": true, `"fmt"`: true, `other "example.com/x"`: true, "// used is kept.": true,
		`"os"`: false, "func main": false, "Gone": false,
	} {
		if strings.Contains(string(made), text) != isThere {
			t.Errorf("%q: %v expected in\n%s", text, isThere, made)
		}
	}
}
