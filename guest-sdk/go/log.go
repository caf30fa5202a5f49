package oarlock

import (
	"context"
	"log/slog"
	"time"

	"oarlock.dev/sdk/internal/host"
	log "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_log"
	types "oarlock.dev/sdk/internal/wit/imports/oarlock_plugin_types"
)

// LogHandler returns a handler of package log/slog that writes to the host's log. In a component it is the
// default one: slog.Info writes to the host's log, and so does package log.
//
// Attributes become pairs of texts; a group is a prefix of the names in it. The host adds time and plugin.
func LogHandler() slog.Handler {
	return &logHandler{}
}

type logHandler struct {
	prefix string
	pairs  []types.Entry
}

func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return host.Current().Output.Enabled(levelOf(level))
}

func (h *logHandler) Handle(_ context.Context, record slog.Record) error {
	pairs := h.pairs[:len(h.pairs):len(h.pairs)]
	record.Attrs(func(attr slog.Attr) bool {
		pairs = appendAttr(pairs, h.prefix, attr)
		return true
	})
	host.Current().Output.Log(levelOf(record.Level), record.Message, pairs)
	return nil
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	pairs := h.pairs[:len(h.pairs):len(h.pairs)]
	for _, attr := range attrs {
		pairs = appendAttr(pairs, h.prefix, attr)
	}
	return &logHandler{h.prefix, pairs}
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &logHandler{h.prefix + name + ".", h.pairs}
}

func appendAttr(pairs []types.Entry, prefix string, attr slog.Attr) []types.Entry {
	value := attr.Value.Resolve()
	switch {
	case value.Kind() == slog.KindGroup:
		if attr.Key != "" {
			prefix += attr.Key + "."
		}
		for _, member := range value.Group() {
			pairs = appendAttr(pairs, prefix, member)
		}
		return pairs
	case attr.Equal(slog.Attr{}):
		return pairs
	case value.Kind() == slog.KindTime:
		return append(pairs, types.Entry{Name: prefix + attr.Key, Value: value.Time().Format(time.RFC3339Nano)})
	default:
		return append(pairs, types.Entry{Name: prefix + attr.Key, Value: value.String()})
	}
}

func levelOf(level slog.Level) log.Level {
	switch {
	case level < slog.LevelDebug:
		return log.Level_Trace
	case level < slog.LevelInfo:
		return log.Level_Debug
	case level < slog.LevelWarn:
		return log.Level_Info
	case level < slog.LevelError:
		return log.Level_Warn
	default:
		return log.Level_Error
	}
}
