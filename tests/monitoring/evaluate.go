package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/util/annotations"
)

// The time between two scrapes, and for how long there were scrapes. No range of a query is longer.
const (
	interval = 30 * time.Second
	scraped  = 2 * time.Hour
)

// evaluate returns the results of the queries of the rules and of a dashboard, one in a line, if Prometheus
// scrapes each page from a target of its own. It ignores the `for` of rules.
func evaluate(rules, dashboard string, pages []string) ([]string, error) {
	var all []storage.Series
	for _, page := range pages {
		series, err := readTarget(page)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", page, err)
		}
		all = append(all, series...)
	}
	queries, err := ruleQueries(rules)
	if err != nil {
		return nil, err
	}
	panels, err := dashboardQueries(dashboard)
	if err != nil {
		return nil, err
	}
	engine := promql.NewEngine(promql.EngineOpts{
		MaxSamples: 1_000_000,
		Timeout:    time.Minute,
		Parser:     parser.NewParser(parser.Options{}),
	})
	var lines []string
	for _, query := range append(queries, panels...) {
		results, err := query.evaluate(engine, all)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", query.place, err)
		}
		lines = append(lines, results...)
	}
	return lines, nil
}

// readTarget reads the series that scrapes of a page have. The name of the file is the instance, and without
// what follows a `-` the job. The page has neither types nor histograms, only their series: a counter, by its
// name, grows by its value from each scrape to the next one.
func readTarget(path string) ([]storage.Series, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	textParser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := textParser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	instance := filepath.Base(path)
	job, _, _ := strings.Cut(instance, "-")
	var all []storage.Series
	for name, family := range families {
		for _, metric := range family.Metric {
			if metric.Untyped == nil {
				return nil, fmt.Errorf("%s has a type", name)
			}
			builder := labels.NewBuilder(labels.EmptyLabels())
			for _, pair := range metric.Label {
				builder.Set(pair.GetName(), pair.GetValue())
			}
			builder.Set(labels.MetricName, name).Set("job", job).Set("instance", instance)
			all = append(all, promql.NewStorageSeries(promql.Series{
				Metric: builder.Labels(),
				Floats: samples(metric.Untyped.GetValue(), isCounter(name)),
			}))
		}
	}
	return all, nil
}

// samples returns the samples of a series: the value, or a sum that grows by it.
func samples(value float64, grows bool) []promql.FPoint {
	var points []promql.FPoint
	for i := range int64(scraped/interval) + 1 {
		point := promql.FPoint{T: i * interval.Milliseconds(), F: value}
		if grows {
			point.F *= float64(i)
		}
		points = append(points, point)
	}
	return points
}

func isCounter(name string) bool {
	hasSuffix := func(suffix string) bool { return strings.HasSuffix(name, suffix) }
	return slices.ContainsFunc([]string{"_total", "_bucket", "_count", "_sum"}, hasSuffix)
}

// evaluate evaluates the query after the last scrape.
func (q query) evaluate(engine *promql.Engine, all []storage.Series) ([]string, error) {
	querier := storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			return &seriesSet{series: selected(all, matchers)}
		},
	}
	queryable := &storage.MockQueryable{MockQuerier: &querier}
	ctx := context.Background()
	evaluated, err := engine.NewInstantQuery(ctx, queryable, nil, q.text, time.UnixMilli(scraped.Milliseconds()))
	if err != nil {
		return nil, err
	}
	defer evaluated.Close()
	vector, err := evaluated.Exec(ctx).Vector()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.text, err)
	}
	var lines []string
	for _, sample := range vector {
		lines = append(lines, fmt.Sprintf("%s: %s %g", q.place, sample.Metric, sample.F))
	}
	slices.Sort(lines)
	return lines, nil
}

func selected(all []storage.Series, matchers []*labels.Matcher) []storage.Series {
	var found []storage.Series
	for _, series := range all {
		isOther := func(it *labels.Matcher) bool { return !it.Matches(series.Labels().Get(it.Name)) }
		if !slices.ContainsFunc(matchers, isOther) {
			found = append(found, series)
		}
	}
	return found
}

// seriesSet iterates over series. The first call of Next goes to the first one.
type seriesSet struct {
	series []storage.Series
	next   int
}

func (s *seriesSet) Next() bool {
	s.next++
	return s.next <= len(s.series)
}

func (s *seriesSet) At() storage.Series                { return s.series[s.next-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }
