package server

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// form is the encoding of objects.
type form string

const (
	formJSON             form = "json"
	formProtobuf         form = "protobuf"
	formMetadataJSON     form = "metadata-json"
	formMetadataProtobuf form = "metadata-protobuf"
)

// object is the common interface of Kubernetes' types.
type object interface {
	metav1.ObjectMetaAccessor
	Marshal() ([]byte, error)
}

// encode returns one object: as JSON, or as the inner Protobuf message.
func (f form) encode(of object) []byte {
	meta, _ := of.GetObjectMeta().(*metav1.ObjectMeta)
	var encoded []byte
	var err error
	switch f {
	case formJSON:
		encoded, err = json.Marshal(of)
	case formProtobuf:
		encoded, err = of.Marshal()
	default:
		partial := &metav1.PartialObjectMetadata{
			TypeMeta:   metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
			ObjectMeta: *meta,
		}
		if f == formMetadataJSON {
			encoded, err = json.Marshal(partial)
		} else {
			encoded, err = partial.Marshal()
		}
	}
	if err != nil {
		panic(err) // Kubernetes' types always encode.
	}
	return bytes.Clone(encoded)
}

func (f form) isJSON() bool     { return f == formJSON || f == formMetadataJSON }
func (f form) isMetadata() bool { return f == formMetadataJSON || f == formMetadataProtobuf }

// typed returns the type of the objects in this form.
func (f form) typed(kind string) (apiVersion, itemKind string) {
	if f.isMetadata() {
		return "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	return "v1", kind
}

func (f form) contentType(isWatch bool) string {
	if f.isJSON() {
		return "application/json"
	}
	if isWatch {
		return "application/vnd.kubernetes.protobuf;stream=watch"
	}
	return "application/vnd.kubernetes.protobuf"
}

// list returns the parts of a page before its items; after returns what follows them.
func (f form) list(kind, version, next string, items [][]byte) []byte {
	apiVersion, itemKind := f.typed(kind)
	meta := metav1.ListMeta{ResourceVersion: version, Continue: next}
	if f.isJSON() {
		header, err := json.Marshal(struct {
			Kind       string          `json:"kind"`
			APIVersion string          `json:"apiVersion"`
			Metadata   metav1.ListMeta `json:"metadata"`
		}{itemKind + "List", apiVersion, meta})
		if err != nil {
			panic(err) // Strings always encode.
		}
		page := append(header[:len(header)-1], `,"items":[`...)
		// In a typed list the items do not repeat what they are; those of metadata do.
		redundant := len(`"kind":"",`) + len(itemKind) + len(`"apiVersion":"",`) + len(apiVersion)
		if f.isMetadata() {
			redundant = 0
		}
		for i, item := range items {
			if i > 0 {
				page = append(page, ',')
			}
			page = append(append(page, '{'), item[1+redundant:]...)
		}
		return append(page, "]}\n"...)
	}
	encoded, err := meta.Marshal()
	if err != nil {
		panic(err) // Strings always encode.
	}
	message := field(nil, 1, encoded)
	for _, item := range items {
		message = field(message, 2, item)
	}
	return unknown(nil, apiVersion, itemKind+"List", message)
}

// appendEvent appends one event of a watch, framed as it goes over the wire, but for the chunk around it.
func (f form) appendEvent(to []byte, typ, kind string, item []byte) []byte {
	if f.isJSON() {
		to = append(append(to, `{"type":"`...), typ...)
		to = append(append(to, `","object":`...), item...)
		return append(to, "}\n"...)
	}
	apiVersion, itemKind := f.typed(kind)
	start := len(to)
	to = append(to, 0, 0, 0, 0)
	to = field(to, 1, []byte(typ))
	// The object is a RawExtension around an Unknown around the object: their lengths come first.
	inner := unknownLength(apiVersion, itemKind, item)
	raw := 1 + varintLength(inner) + inner
	to = binary.AppendUvarint(append(to, 2<<3|2), uint64(raw))
	to = binary.AppendUvarint(append(to, 1<<3|2), uint64(inner))
	to = unknown(to, apiVersion, itemKind, item)
	binary.BigEndian.PutUint32(to[start:], uint32(len(to)-start-4))
	return to
}

// unknown appends the envelope that everything in Kubernetes' Protobuf has.
func unknown(to []byte, apiVersion, kind string, raw []byte) []byte {
	to = append(to, 'k', '8', 's', 0)
	to = field(to, 1, field(field(nil, 1, []byte(apiVersion)), 2, []byte(kind)))
	to = field(to, 2, raw)
	return append(to, 3<<3|2, 0, 4<<3|2, 0)
}

func unknownLength(apiVersion, kind string, raw []byte) int {
	typed := 2 + len(apiVersion) + 2 + len(kind)
	return 4 + 2 + typed + 1 + varintLength(len(raw)) + len(raw) + 4
}

func field(to []byte, number byte, value []byte) []byte {
	to = binary.AppendUvarint(append(to, number<<3|2), uint64(len(value)))
	return append(to, value...)
}

func varintLength(value int) int {
	return len(binary.AppendUvarint(nil, uint64(value)))
}

// appendChunk appends what make appends, as one chunk of HTTP/1.1.
func appendChunk(to []byte, scratch []byte) []byte {
	to = strconv.AppendInt(to, int64(len(scratch)), 16)
	to = append(append(to, "\r\n"...), scratch...)
	return append(to, "\r\n"...)
}
