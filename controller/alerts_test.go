// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/muxlet/muxlet/controller/envtest"
)

// ruleFile is a file of rules as Prometheus reads it.
type ruleFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

var (
	metricInRule = regexp.MustCompile(`(muxlet_[a-z_]+)(\{([^}]*)\})?`)
	matcher      = regexp.MustCompile(`([a-z]+)(=~|!=|=)"([^"]*)"`)
)

// An alert on a metric that does not exist, or on a word that no label has, never fires.
func TestTheSampleAlertsAskForMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../config/alerts/muxlet.rules.yaml")
	require.NoError(t, err)
	var rules ruleFile
	require.NoError(t, yaml.UnmarshalStrict(text, &rules))
	require.Len(t, rules.Groups, 1)
	e := envtest.Start(t, envtest.Config{})
	e.Run("a")
	s := scrape(e)
	names := map[string]bool{}
	for _, rule := range rules.Groups[0].Rules {
		assert.False(t, names[rule.Alert], "%s is there twice", rule.Alert)
		names[rule.Alert] = true
		assert.Regexp(t, "^Muxlet[A-Z]", rule.Alert)
		if rule.For != "" {
			_, err := time.ParseDuration(rule.For)
			require.NoError(t, err, rule.Alert)
		}
		assert.Contains(t, []string{"critical", "warning"}, rule.Labels["severity"], rule.Alert)
		assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		assert.NotEmpty(t, rule.Annotations["description"], rule.Alert)
		assert.Equal(t, strings.Count(rule.Expr, "("), strings.Count(rule.Expr, ")"), rule.Alert)
		for _, found := range metricInRule.FindAllStringSubmatch(rule.Expr, -1) {
			name := strings.TrimSuffix(found[1], "_bucket")
			require.Contains(t, s, name, "%s asks for it", rule.Alert)
			for _, m := range matcher.FindAllStringSubmatch(found[3], -1) {
				for word := range strings.SplitSeq(m[3], "|") {
					assert.GreaterOrEqual(t, s.value(name, m[1], word), 0, "%s asks for %s of %s", rule.Alert, m[0], name)
				}
			}
		}
	}
	assert.Greater(t, len(names), 10)
	assert.Contains(t, string(text), `up{job="muxlet"} == 0`, "a daemon that is gone has no metrics")

	// promtool runs these; here they are only to be about alerts that there are.
	text, err = os.ReadFile("../config/alerts/muxlet.rules.test.yaml")
	require.NoError(t, err)
	alerts := regexp.MustCompile(`alertname: (\w+)`).FindAllStringSubmatch(string(text), -1)
	assert.Greater(t, len(alerts), 5)
	for _, alert := range alerts {
		assert.True(t, names[alert[1]], "%s is tested and is none", alert[1])
	}
}
