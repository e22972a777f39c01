// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// decode stores the document into the struct that into points to, or says what
// is wrong with it. The walk over the nodes finds each mistake and its place;
// the decoder that follows has the last word.
func (t *Tree) decode(gvk schema.GroupVersionKind, into any) []Problem {
	if problem := t.wrongKind(gvk.Kind); problem != nil {
		return []Problem{*problem}
	}
	w := &walk{tree: t}
	w.apiVersion(gvk)
	w.value(t.root, reflect.TypeOf(into).Elem(), nil)
	if len(w.problems) > 0 {
		return w.problems
	}
	data, err := json.Marshal(plain(t.root))
	if err == nil {
		var strict []error
		if strict, err = kjson.UnmarshalStrict(data, into); err == nil && len(strict) > 0 {
			err = strict[0]
		}
	}
	if err != nil {
		return []Problem{*t.problem(deref(t.root), "", "this cannot be decoded: "+err.Error())}
	}
	return nil
}

// wrongKind is the problem of a document of no right kind. Nothing else is said of
// such a document.
func (t *Tree) wrongKind(right ...string) *Problem {
	kind := t.text("kind")
	if slices.Contains(right, kind) {
		return nil
	}
	if kind != "" {
		message, suggestion := notKnown(kind, "kind here", right...)
		p := t.problem(t.valueOf("kind"), "kind", message)
		p.Suggestion = suggestion
		return p
	}
	if t.misspelled("kind") {
		return nil
	}
	return &Problem{Position: t.Position("kind"), Path: "kind", Message: "is required: write kind: " + strings.Join(right, " or ")}
}

// notKnown says that a word is not one of the right ones: with the nearest as a
// suggestion, else with all of them in the sentence.
func notKnown(got, what string, right ...string) (message, suggestion string) {
	message, suggestion = fmt.Sprintf("%q is not known", got), nearest(got, right)
	switch {
	case suggestion != "":
	case len(right) == 1:
		message += fmt.Sprintf("; the only %s is %s", what, right[0])
	default:
		message += "; it must be " + strings.Join(right, " or ")
	}
	return message, suggestion
}

// valueOf is the node of a field that the document has.
func (t *Tree) valueOf(path string) *yaml.Node {
	_, value, _ := t.find(path)
	return value
}

// misspelled tells that a key at the top is meant to be name.
func (t *Tree) misspelled(name string) bool {
	return slices.ContainsFunc(pairs(deref(t.root)), func(p pair) bool {
		return p.key.Value != name && nearest(p.key.Value, []string{name, "metadata", "spec"}) == name
	})
}

// walk compares a document with a Go type and collects what does not fit.
type walk struct {
	tree     *Tree
	problems []Problem
}

func (w *walk) add(n *yaml.Node, path *field.Path, suggestion, format string, args ...any) {
	p := w.tree.problem(n, pathText(path), fmt.Sprintf(format, args...))
	p.Suggestion = suggestion
	w.problems = append(w.problems, *p)
}

// full tells that more problems would not be shown.
func (w *walk) full() bool { return len(w.problems) > maxProblems }

func pathText(path *field.Path) string {
	if path == nil {
		return ""
	}
	return path.String()
}

// apiVersion checks the version of a document of the right kind.
func (w *walk) apiVersion(gvk schema.GroupVersionKind) {
	want := gvk.GroupVersion().String()
	switch got := w.tree.text("apiVersion"); {
	case got == want:
	case got != "":
		message, suggestion := notKnown(got, "version of "+gvk.Kind, want)
		w.add(w.tree.valueOf("apiVersion"), field.NewPath("apiVersion"), suggestion, "%s", message)
	case !w.tree.misspelled("apiVersion"):
		at := w.tree.Position("")
		w.problems = append(w.problems, Problem{Position: at, Path: "apiVersion", Message: "is required: write apiVersion: " + want})
	}
}

// value checks a node against a type.
func (w *walk) value(n *yaml.Node, t reflect.Type, path *field.Path) {
	n = deref(n)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case !coreTag(n):
		w.add(n, path, "", "an unknown tag; put a text that begins with ! in quotes")
	case isNull(n):
		w.null(n, t, path)
	case decodesItself(t):
		w.opaque(n, t, path)
	default:
		w.typed(n, t, path)
	}
}

// null passes over a field without a value, except where a person wrote a text
// in which YAML sees none. A variable would be empty without anyone noticing.
func (w *walk) null(n *yaml.Node, t reflect.Type, path *field.Path) {
	switch {
	case n.Anchor != "":
		w.add(n, path, "", "an anchor without a value; put a text that begins with & in quotes")
	case t.Kind() == reflect.String && n.Value == "~":
		w.add(n, path, "", `YAML reads ~ alone as nothing; put it in quotes: "~"`)
	case path != nil && isSecret(path):
		w.add(n, path, "", `YAML reads nothing here; put the text in quotes, or write "" for an empty value`)
	}
}

func (w *walk) typed(n *yaml.Node, t reflect.Type, path *field.Path) {
	switch t.Kind() {
	case reflect.Struct:
		w.object(n, t, path)
	case reflect.Map:
		w.dictionary(n, t, path)
	case reflect.Slice:
		w.list(n, t, path)
	case reflect.String:
		w.word(n, path)
	case reflect.Bool:
		w.truth(n, path)
	case reflect.Int, reflect.Int32, reflect.Int64:
		w.number(n, t, path)
	default:
		panic("spec: no kind has a field of type " + t.String())
	}
}

// decodesItself tells a type with a text format of its own.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// opaque asks the type itself.
func (w *walk) opaque(n *yaml.Node, t reflect.Type, path *field.Path) {
	data, err := json.Marshal(plain(n))
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	switch {
	case err == nil:
	case t == reflect.TypeFor[metav1.Duration]():
		w.add(n, path, "", "must be a duration such as 500ms, 5s, 2m or 1h30m")
	case t == reflect.TypeFor[resource.Quantity]() && strings.HasSuffix(path.String(), ".cpu"):
		w.add(n, path, "", "must be a number of processors such as 500m, 1 or 1.5")
	case t == reflect.TypeFor[resource.Quantity]():
		w.add(n, path, "", "must be a size such as 512Ki, 64Mi or 1Gi")
	default:
		w.add(n, path, "", "has the wrong format: %v", err)
	}
}

// keys checks the keys of a mapping, whatever its type, and gives those that
// can be used.
func (w *walk) keys(n *yaml.Node, path *field.Path) []pair {
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := deref(n.Content[i])
		switch first, again := lines[key.Value]; {
		case isMerge(key):
			if mergeSources(n.Content[i+1]) == nil {
				w.add(key, path, "", "<< needs an alias of a mapping")
			}
		case key.Kind != yaml.ScalarNode || isNull(key):
			w.add(key, path, "", "a key must be a word")
		case again:
			w.add(key, child(path, key.Value), "", "is given twice; the first is in line %d", first)
		default:
			lines[key.Value] = key.Line
		}
	}
	var usable []pair
	for _, p := range pairs(n) {
		if p.key.Kind == yaml.ScalarNode && !isNull(p.key) {
			usable = append(usable, p)
		}
	}
	return usable
}

func child(path *field.Path, name string) *field.Path {
	if path == nil {
		return field.NewPath(name)
	}
	return path.Child(name)
}

func (w *walk) object(n *yaml.Node, t reflect.Type, path *field.Path) {
	if n.Kind != yaml.MappingNode {
		w.add(n, path, "", "must be a mapping with %s, not %s", someOf(fieldNames(t)), kindName(n))
		return
	}
	for _, p := range w.keys(n, path) {
		if w.full() {
			return
		}
		if f, known := fieldOf(t, p.key.Value); known {
			w.value(visible(p.key, deref(p.value)), f, child(path, p.key.Value))
			continue
		}
		suggestion, rest := nearestField(t, p.key.Value), ""
		if names := fieldNames(t); suggestion == "" && len(names) <= maxListed {
			rest = "; the fields here are " + strings.Join(names, ", ")
		}
		w.add(p.key, child(path, p.key.Value), suggestion, "unknown field%s", rest)
	}
}

func (w *walk) dictionary(n *yaml.Node, t reflect.Type, path *field.Path) {
	if n.Kind != yaml.MappingNode {
		w.add(n, path, "", "must be a mapping of names to values, not %s", kindName(n))
		return
	}
	for _, p := range w.keys(n, path) {
		if value := deref(p.value); isNull(value) {
			w.add(value, path.Key(p.key.Value), "", `is empty; write "" for an empty value, or remove the key`)
			continue
		}
		w.value(p.value, t.Elem(), path.Key(p.key.Value))
	}
}

func (w *walk) list(n *yaml.Node, t reflect.Type, path *field.Path) {
	words := t.Elem().Kind() == reflect.String
	if n.Kind != yaml.SequenceNode {
		switch text, isText := scalar(n).(string); {
		case words && n.Kind == yaml.ScalarNode && isText:
			w.add(n, path, "", "must be a list, one word each: %s", flowList(strings.Fields(text)))
		case words:
			w.add(n, path, "", "must be a list of words, not %s", kindName(n))
		default:
			w.add(n, path, "", `must be a list, each item with a "- ", not %s`, kindName(n))
		}
		return
	}
	for i, item := range n.Content {
		if w.full() {
			return
		}
		if item = deref(item); isNull(item) && item.Anchor == "" && (item.Value != "~" || !words) {
			w.add(item, path.Index(i), "", `is empty; write "" for an empty word, or remove the item`)
			continue
		}
		w.value(item, t.Elem(), path.Index(i))
	}
}

// flowList writes words as they belong into a document.
func flowList(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = strconv.Quote(word)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// word checks a text. What YAML takes for something else is shown in quotes,
// except where it may be a secret.
func (w *walk) word(n *yaml.Node, path *field.Path) {
	if n.Kind != yaml.ScalarNode {
		w.add(n, path, "", "must be text, not %s", kindName(n))
		return
	}
	quoted, shown := `: "`+n.Value+`"`, n.Value
	if isSecret(path) {
		quoted, shown = "", "this"
	}
	switch v := scalar(n).(type) {
	case string:
	case bool:
		w.add(n, path, "", "must be text, but YAML reads %s as the truth value %t; put it in quotes%s", shown, v, quoted)
	default:
		w.add(n, path, "", "must be text, but YAML reads %s as a number; put it in quotes%s", shown, quoted)
	}
}

// isSecret tells the value of an environment variable.
func isSecret(path *field.Path) bool { return strings.HasSuffix(path.String(), "].value") }

func (w *walk) truth(n *yaml.Node, path *field.Path) {
	switch v := plain(n).(type) {
	case bool:
	case string:
		if v == "true" || v == "false" {
			w.add(n, path, "", "must be %s without quotes", v)
			return
		}
		w.add(n, path, "", "must be true or false, not %q", v)
	default:
		w.add(n, path, "", "must be true or false, not %s", kindName(n))
	}
}

func (w *walk) number(n *yaml.Node, t reflect.Type, path *field.Path) {
	var i int64
	switch v := plain(n).(type) {
	case int:
		i = int64(v)
	case int64:
		i = v
	case string:
		if _, err := strconv.Atoi(v); err == nil {
			w.add(n, path, "", "must be the number %s without quotes", v)
			return
		}
		w.add(n, path, "", "must be a whole number, not %q", v)
		return
	case uint64, float64:
		w.add(n, path, "", "must be a whole number, not %s", n.Value)
		return
	default:
		w.add(n, path, "", "must be a whole number, not %s", kindName(n))
		return
	}
	if reflect.Zero(t).OverflowInt(i) {
		w.add(n, path, "", "the number %d is too large", i)
	}
}
