package main

import (
	"bytes"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// metrics has the series of a page: by name, the label sets.
type metrics map[string][]map[string]string

// readPage reads the text format. A histogram has the names of its series.
func readPage(text []byte) (metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	all := metrics{}
	for name, family := range families {
		for _, metric := range family.Metric {
			labels := map[string]string{}
			for _, pair := range metric.Label {
				labels[pair.GetName()] = pair.GetValue()
			}
			if family.GetType() != dto.MetricType_HISTOGRAM {
				all[name] = append(all[name], labels)
				continue
			}
			for _, suffix := range []string{"_count", "_sum"} {
				all[name+suffix] = append(all[name+suffix], labels)
			}
			bucket := map[string]string{"le": "+Inf"}
			for label, value := range labels {
				bucket[label] = value
			}
			all[name+"_bucket"] = append(all[name+"_bucket"], bucket)
		}
	}
	return all, nil
}

// labels returns the names of the labels of a metric.
func (m metrics) labels(name string) map[string]bool {
	labels := map[string]bool{}
	for _, series := range m[name] {
		for label := range series {
			labels[label] = true
		}
	}
	return labels
}
