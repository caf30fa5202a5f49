package oarlock

import (
	"bytes"
	"encoding/json"
	"fmt"

	"oarlock.dev/sdk/internal/host"
)

// Config decodes the operator's configuration, the value of config in the plugin's file, into a struct.
// What the configuration leaves out keeps its value, so that a struct holds the defaults. A name that the
// struct does not have is an error.
func Config(into any) error {
	decoder := json.NewDecoder(bytes.NewReader([]byte(host.Current().Config())))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fmt.Errorf("config in the plugin's file: %w", err)
	}
	return nil
}
