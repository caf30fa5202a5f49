package oarlockctrl

import (
	"strings"
	"testing"
)

func TestMessagesOfEventsAreCutAtTheEndOfACharacter(t *testing.T) {
	for _, message := range []string{"", "short", strings.Repeat("x", 1024), strings.Repeat("é", 512)} {
		if got := cut(message); got != message {
			t.Errorf("a message of %d bytes was cut to %d", len(message), len(got))
		}
	}
	for message, want := range map[string]string{
		strings.Repeat("x", 1025):               strings.Repeat("x", 1024),
		"x" + strings.Repeat("é", 512):          "x" + strings.Repeat("é", 511),
		strings.Repeat("\xf0\x9f\x98\x80", 300): strings.Repeat("\xf0\x9f\x98\x80", 256),
		strings.Repeat("\x80", 2000):            "\uFFFD",
	} {
		if got := cut(message); got != want {
			t.Errorf("a message of %d bytes was cut to %d, want %d", len(message), len(got), len(want))
		}
	}
}
