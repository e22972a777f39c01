// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	"embed"
	"encoding/json"
	"fmt"
)

//go:embed *.json
var files embed.FS

// The files. Each can be given to an editor.
const (
	// ManifestFile is for the documents of a manifest: a Session or a ClientClass each.
	ManifestFile = "manifest.json"
	// SettingsFile is for the settings.
	SettingsFile = "settings.json"
	// TurnFile is for a Turn, which is an object of the API and no file of a person's.
	TurnFile = "turn.json"
)

// Kind is a kind of document or object.
type Kind struct {
	Group, Version, Kind string
	// Words by which it is called, the first one as kubectl would print it.
	Words []string
	// Short says in a few words what it is.
	Short string

	file string
}

// Kinds are all kinds that there are, the most used first.
func Kinds() []Kind {
	return []Kind{
		{"muxlet.dev", "v1alpha1", "Session", []string{"session", "sessions", "ses"}, "a client, its workspace and the policies that keep it", ManifestFile},
		{"muxlet.dev", "v1alpha1", "ClientClass", []string{"clientclass", "clientclasses", "cc"}, "how one kind of client is started, resumed, recognised and stopped", ManifestFile},
		{"muxlet.dev", "v1alpha1", "Turn", []string{"turn", "turns"}, "one prompt that is sent to a session", TurnFile},
		{"config.muxlet.dev", "v1alpha1", "MuxletConfiguration", []string{"muxletconfiguration", "config", "configuration", "settings"}, "the daemon's own settings", SettingsFile},
	}
}

// File is one of the files, as it is.
func File(name string) ([]byte, error) {
	data, err := files.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the schema %s: %w", name, err)
	}
	return data, nil
}

// Schema of a kind. It belongs to the caller.
func (k Kind) Schema() (*Schema, error) {
	data, err := File(k.file)
	if err != nil {
		return nil, err
	}
	var whole Schema
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, fmt.Errorf("decode the schema %s: %w", k.file, err)
	}
	if defined := whole.Definitions[k.Kind]; defined != nil {
		return defined, nil
	}
	return &whole, nil
}
