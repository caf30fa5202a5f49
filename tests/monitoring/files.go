package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// labelInText finds the labels that a text of an alert shows.
var labelInText = regexp.MustCompile(`\$labels\.([a-zA-Z_]+)`)

// labelInLegend finds the labels that a legend of a panel shows.
var labelInLegend = regexp.MustCompile(`\{\{ *([a-zA-Z_]+) *\}\}`)

// ruleQueries reads a file of alert rules with Prometheus' own reader, which checks it too.
func ruleQueries(path string) ([]query, error) {
	groups, errs := rulefmt.ParseFile(path, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	var queries []query
	for _, group := range groups.Groups {
		for _, rule := range group.Rules {
			query := query{place: fmt.Sprintf("%s: %s", path, rule.Alert), text: rule.Expr}
			for _, text := range rule.Annotations {
				query.results = append(query.results, matches(labelInText, text)...)
			}
			queries = append(queries, query)
		}
	}
	return queries, nil
}

// dashboardQueries reads the queries of the panels and variables of a dashboard of Grafana.
func dashboardQueries(path string) ([]query, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct {
				Expr         string
				LegendFormat string
			}
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var queries []query
	for _, panel := range dashboard.Panels {
		place := fmt.Sprintf("%s: %s", path, panel.Title)
		for _, target := range panel.Targets {
			queries = append(queries, query{
				place:   place,
				text:    withoutVariables(target.Expr),
				results: matches(labelInLegend, target.LegendFormat),
			})
		}
	}
	for _, variable := range dashboard.Templating.List {
		// label_values(SELECTOR, LABEL)
		inner, ok := strings.CutPrefix(variable.Definition, "label_values(")
		if !ok {
			continue
		}
		selector, label, ok := strings.Cut(strings.TrimSuffix(inner, ")"), ",")
		if !ok {
			return nil, fmt.Errorf("%s: the variable %s has no label: %s", path, variable.Name, variable.Definition)
		}
		queries = append(queries, query{
			place:   fmt.Sprintf("%s: the variable %s", path, variable.Name),
			text:    selector,
			results: []string{strings.TrimSpace(label)},
		})
	}
	return queries, nil
}

// withoutVariables replaces what Grafana replaces before it sends a query.
func withoutVariables(text string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$plugin", ".*").Replace(text)
}

func matches(expression *regexp.Regexp, text string) []string {
	var names []string
	for _, match := range expression.FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}
