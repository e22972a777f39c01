// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/muxlet/muxlet/config"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// document is the smallest one that says what is wanted: nothing that the defaults, or
// the settings' sessionDefaults, say already.
func (o *newOptions) document(directory string, settings *config.Effective, classes *manifest.Classes) ([]byte, error) {
	prompt, err := o.prompt()
	if err != nil {
		return nil, err
	}
	metadata := add(mapping(), "name", text(o.name))
	if len(o.labels) > 0 {
		labels := mapping()
		for _, key := range slices.Sorted(maps.Keys(o.labels)) {
			add(labels, key, text(o.labels[key]))
		}
		add(metadata, "labels", labels)
	}
	document := add(add(mapping(), "apiVersion", text(spec.GroupVersion.String())), "kind", text(spec.KindSession))
	add(document, "metadata", metadata)
	wanted := o.spec(o.tilde(directory), prompt, settings, classes)
	if len(wanted.Content) == 0 {
		wanted.Style = yaml.FlowStyle
	}
	add(document, "spec", wanted)
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(document); err != nil {
		return nil, fmt.Errorf("write the document of session %q: %w", o.name, err)
	}
	return out.Bytes(), nil
}

func (o *newOptions) spec(directory, prompt string, settings *config.Effective, classes *manifest.Classes) *yaml.Node {
	wanted, client, defaults := mapping(), mapping(), settings.SessionDefaults
	argv := "command"
	if class := classes.Class(o.class); o.class != "" && class != nil && len(class.Spec.Start.Command) > 0 {
		argv = "args"
	}
	usual := cmp.Or(defaults.ClientClassName, settings.DefaultClientClassName)
	if len(o.argv) > 0 && argv == "command" {
		usual = spec.ClassExec
	}
	if o.class != "" && o.class != usual {
		add(wanted, "clientClassName", text(o.class))
	}
	if len(o.argv) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, word := range o.argv {
			list.Content = append(list.Content, text(word))
		}
		add(client, argv, list)
		add(wanted, "client", client)
	}
	if directory != defaults.Workspace.Directory {
		add(wanted, "workspace", add(mapping(), "directory", text(directory)))
	}
	if o.onDemand && defaults.ProvisioningPolicy != spec.ProvisioningOnDemand {
		add(wanted, "provisioningPolicy", text(string(spec.ProvisioningOnDemand)))
	}
	if prompt != "" {
		add(wanted, "initialPrompt", text(prompt))
	}
	return wanted
}

// tilde writes a directory as a person does: below the home directory with ~. A $ in it
// is doubled, since it would be taken for a variable.
func (o *newOptions) tilde(directory string) string {
	lead, rest := "", directory
	if below, err := filepath.Rel(o.home, directory); o.home != "" && err == nil && below != ".." && !strings.HasPrefix(below, "../") {
		lead, rest = "~", "/"+below
		if below == "." {
			rest = ""
		}
	}
	return lead + strings.ReplaceAll(rest, "$", "$$")
}

// text is a scalar; one of several lines stands below its key as it is. What YAML would
// take for something else, such as yes, is quoted.
func text(value string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(value)
	if spec.ValueOf(&yaml.Node{Kind: yaml.ScalarNode, Value: value}) != any(value) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

// add appends a field and gives the mapping.
func add(n *yaml.Node, key string, value *yaml.Node) *yaml.Node {
	n.Content = append(n.Content, text(key), value)
	return n
}
