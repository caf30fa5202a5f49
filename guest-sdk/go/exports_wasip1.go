package oarlock

import (
	"log/slog"

	_ "oarlock.dev/sdk/internal/args"                    // before packages that read os.Args
	_ "oarlock.dev/sdk/internal/wit/exports/wit_exports" // the functions that the host calls
)

func init() {
	slog.SetDefault(slog.New(LogHandler()))
}
