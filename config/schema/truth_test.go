// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
)

// words are texts of all the forms that fields have, and of some that none has.
var words = []string{
	"/x", "a", "~", "~/x", "~x/y", "$HOME", "$HOME/x", "${HOME}/x", "${HO-ME}/x", "$1/x", "./x", "x/y", "$(HOME)", "$(HOME)/x", "$(1)/x",
	"a-b", "-a", "a-", "A", "A_b", "_a", "1a", "a b", "ä", "a.b", "Ab1", "aB", "*", "MY_*", "1*", "a1", strings.Repeat("a", 63), strings.Repeat("a", 64),
	strings.Repeat("A", 63), strings.Repeat("A", 64), strings.Repeat("1", 256), strings.Repeat("1", 257), "", "id:1@2+3=4,5~6", "a\nb", "C-b", "#",
	"5s", "5", "5 s", "1h30m", ".5s", "5.s", "1.5m", "5x", "1d", "0", "-5s", "s", ".", "5us", "5µs",
	"64Mi", "1.5Gi", "1e9", "64MB", "64 Mi", "Mi", "1k", "-1Mi", "1Zi", "1E", "1E3", "100m",
}

func (s *Schema) accepts(word string) bool {
	switch {
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, word):
		return false
	case s.MaxLength != nil && int64(len(word)) > *s.MaxLength:
		return false
	}
	return s.Pattern == "" || regexp.MustCompile(s.Pattern).MatchString(word)
}

func TestADocumentWithNoMoreThanTheSchemaRequiresIsValid(t *testing.T) {
	for _, r := range roots(t) {
		document, _ := smallest(r.schema).(map[string]any)
		require.NoError(t, r.compiled.Validate(asJSON(t, document)), r.kind.Kind)
		assert.Empty(t, fieldsOf(t, document), r.kind.Kind)
	}
}

func TestWithoutAFieldThatTheSchemaRequiresTheDecoderRefusesTheDocument(t *testing.T) {
	for _, r := range roots(t) {
		looked := 0
		lacks := func(prefix string, s *Schema) {
			for _, name := range s.Element().Required {
				without, _ := smallest(s.Element()).(map[string]any)
				delete(without, name)
				document := without
				if prefix != "" {
					document = r.put(prefix, without)
				}
				path := inProblems(strings.TrimPrefix(prefix+"."+name, "."))
				require.Error(t, r.compiled.Validate(asJSON(t, document)), path)
				assert.Condition(t, func() bool {
					return slices.ContainsFunc(fieldsOf(t, document), func(wrong string) bool {
						return wrong == path || strings.HasPrefix(wrong, path+".")
					})
				}, "%s: %s may be left out: mark it +optional", r.kind.Kind, path)
				looked++
			}
		}
		lacks("", r.schema)
		r.each(func(path string, s *Schema) {
			if s.Items == nil {
				lacks(path, s)
			}
		})
		assert.Positive(t, looked)
	}
}

// What is said of the bounds in words is what the validation holds a person to, and what
// an editor shows.
func TestTheBoundsThatADescriptionNamesAreThoseThatAreChecked(t *testing.T) {
	limits := regexp.MustCompile(`(?:^|[ (])(-?[0-9][0-9A-Za-z.]*) to (-?[0-9][0-9A-Za-z]*)`)
	for _, r := range roots(t) {
		looked := 0
		r.each(func(path string, s *Schema) {
			if path == "backOff.max" {
				return // at its lowest it is below backOff.initial
			}
			m := limits.FindStringSubmatch(s.Description)
			if m == nil || s.Type[0] == Array || s.Type[0] == String && s.Pattern == "" {
				return
			}
			inside, outside := around(t, s, m[1], m[2])
			if outside == nil {
				return
			}
			for _, value := range inside {
				document := r.put(path, value)
				require.NoError(t, r.compiled.Validate(asJSON(t, document)), path)
				assert.NotContains(t, fieldsOf(t, document), inProblems(path), "%s: %v", path, value)
			}
			for _, value := range outside {
				assert.Contains(t, fieldsOf(t, r.put(path, value)), inProblems(path), "%s: %v", path, value)
			}
			looked++
		})
		assert.Positive(t, looked, r.kind.Kind)
	}
}

// around gives the bounds, and the nearest values beyond them.
func around(t *testing.T, s *Schema, low, high string) (inside, outside []any) {
	t.Helper()
	switch {
	case s.Type[0] == Integer:
		a, errA := strconv.ParseInt(low, 10, 64)
		b, errB := strconv.ParseInt(high, 10, 64)
		require.NoError(t, errA)
		require.NoError(t, errB)
		require.Equal(t, []int64{a, b}, []int64{*s.Minimum, *s.Maximum})
		below := a - 1
		if below == 0 {
			below-- // where the field is no pointer, 0 is one that was left out
		}
		return []any{a, b}, []any{below, b + 1}
	case len(s.Type) > 1:
		a, errA := resource.ParseQuantity(low)
		b, errB := resource.ParseQuantity(high)
		require.NoError(t, errA)
		require.NoError(t, errB)
		return []any{low, high, a.Value()}, []any{a.Value() - 1, b.Value() + 1}
	}
	a, errA := time.ParseDuration(low)
	b, errB := time.ParseDuration(high)
	if errA != nil || errB != nil {
		return nil, nil
	}
	return []any{low, high}, []any{(a - 1).String(), (b + 1).String()}
}

func TestTheFormsOfTheSchemaAreThoseOfTheValidation(t *testing.T) {
	for _, r := range roots(t) {
		r.each(func(path string, s *Schema) {
			if s.Pattern == "" || strings.HasPrefix(path, "metadata.") && path != "metadata.name" {
				return
			}
			bounded := strings.Contains(s.Pattern, "[0-9]+(\\.[0-9]*)?")
			for _, word := range words {
				document := r.put(path, word)
				refused := slices.Contains(fieldsOf(t, document), inProblems(path))
				if word == "" && strings.HasPrefix(path, "sessionDefaults.") {
					continue // nothing is given then
				}
				if !s.accepts(word) {
					assert.True(t, refused, "%s: %q is refused by the schema alone", path, word)
					require.Error(t, r.compiled.Validate(asJSON(t, document)), "%s: %q", path, word)
				} else if !bounded {
					assert.False(t, refused, "%s: %q is accepted by the schema alone", path, word)
				}
			}
		})
	}
}

func TestTheWordsOfTheSchemaAreThoseOfTheValidation(t *testing.T) {
	for _, r := range roots(t) {
		looked := 0
		r.each(func(path string, s *Schema) {
			if len(s.Enum) == 0 || path == "apiVersion" || path == "kind" {
				return
			}
			for _, word := range s.Enum {
				if path == "spec.submit.confirm" && word == "Report" {
					continue // it needs reports
				}
				assert.NotContains(t, fieldsOf(t, r.put(path, word)), inProblems(path), word)
			}
			document := r.put(path, "no-such-word")
			assert.Contains(t, fieldsOf(t, document), inProblems(path))
			require.Error(t, r.compiled.Validate(asJSON(t, document)), path)
			looked++
		})
		assert.Positive(t, looked)
	}
}

func TestAValueOfAnotherTypeIsRefusedByBoth(t *testing.T) {
	for _, r := range roots(t) {
		r.each(func(path string, s *Schema) {
			for _, value := range []any{"no such thing", 12345678901234, 1.5, true, []any{map[string]any{}}, map[string]any{"no": "such"}} {
				document := r.put(path, value)
				if r.compiled.Validate(asJSON(t, document)) == nil {
					continue
				}
				assert.NotEmpty(t, fieldsOf(t, document), "%s: %v is refused by the schema alone", path, value)
			}
			document := r.put(path, map[string]any{"no": 1})
			require.Error(t, r.compiled.Validate(asJSON(t, document)), path)
			assert.NotEmpty(t, fieldsOf(t, document), path)
			if s.Type[0] != String {
				document = r.put(path, "no such thing")
				require.Error(t, r.compiled.Validate(asJSON(t, document)), path)
				assert.NotEmpty(t, fieldsOf(t, document), path)
			}
		})
	}
}
