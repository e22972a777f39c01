// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/spec"
)

// YAML prints the settings in force as a settings file, each value with its
// origin in a comment behind it, and with the note on it, by its path.
func (e *Effective) YAML(notes map[string]string) ([]byte, error) {
	e = e.withNotes(notes)
	root := &yaml.Node{Kind: yaml.MappingNode}
	root.Content = append(root.Content,
		word("apiVersion"), word(e.APIVersion), word("kind"), word(e.Kind))
	e.mapping(root, reflect.ValueOf(e.MuxletConfiguration), "")
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("printing the settings: %w", err)
	}
	return out.Bytes(), nil
}

// mapping appends the fields of a struct to a node.
func (e *Effective) mapping(n *yaml.Node, v reflect.Value, prefix string) {
	for f, value := range v.Fields() {
		name, isSetting := settingName(f)
		if !isSetting {
			continue
		}
		key, node := word(name), e.setting(value, prefix+name)
		if _, isSpec := value.Interface().(spec.SessionSpec); isSpec && len(node.Content) > 0 {
			key.LineComment, node.LineComment = node.LineComment, ""
		}
		n.Content = append(n.Content, key, node)
	}
}

// setting is the node of one field.
func (e *Effective) setting(v reflect.Value, path string) *yaml.Node {
	switch value := v.Interface().(type) {
	case metav1.Duration:
		return e.leaf(word(short(value.Duration)), path)
	case resource.Quantity:
		return e.leaf(word(value.String()), path)
	case spec.SessionSpec:
		n := &yaml.Node{}
		if err := n.Encode(spec.GivenFields(&value)); err != nil {
			n = word(err.Error())
		}
		return e.leaf(n, path)
	}
	if items, ok := wordsOf(v); ok {
		return e.list(items, path)
	}
	if isSection(v.Type()) {
		n := &yaml.Node{Kind: yaml.MappingNode}
		e.mapping(n, v, path+".")
		return n
	}
	if v.CanInt() {
		return e.leaf(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: fmt.Sprint(v.Int())}, path)
	}
	return e.leaf(word(v.String()), path)
}

// list is the node of a list: its first item has the note, and an empty one itself.
func (e *Effective) list(items []string, path string) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode}
	if len(items) == 0 {
		list.Style = yaml.FlowStyle
		return e.leaf(list, path)
	}
	for i, item := range items {
		n := e.leaf(word(item), path)
		if i > 0 {
			n.LineComment, _, _ = strings.Cut(n.LineComment, noteMark)
		}
		list.Content = append(list.Content, n)
	}
	return list
}

// noteMark sets a note apart from the origin.
const noteMark = "; "

// withNotes has each note behind the origin.
func (e *Effective) withNotes(notes map[string]string) *Effective {
	out := *e
	out.Origin = maps.Clone(e.Origin)
	for name, note := range notes {
		out.Origin[name] += noteMark + note
	}
	return &out
}

func (e *Effective) leaf(n *yaml.Node, path string) *yaml.Node {
	n.LineComment = e.Origin[path]
	return n
}

func word(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// settingName is the name of a field in the file; false for the header.
func settingName(f reflect.StructField) (string, bool) {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, name != ""
}

// leaves are the paths of all settings.
func leaves() []string {
	var paths []string
	visit(reflect.ValueOf(MuxletConfiguration{}), "", func(name string, _ reflect.Value) { paths = append(paths, name) })
	return paths
}
