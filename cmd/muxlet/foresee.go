// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"maps"
	"slices"

	"github.com/muxlet/muxlet/controller/server"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// foresee asks the daemon what would become of the sessions if files were written as
// given, the whole content by path; with none, what is left to do as they are.
func (g *globals) foresee(ctx context.Context, files map[string][]byte) (server.DiffResult, error) {
	client, err := g.client()
	if err != nil {
		return server.DiffResult{}, err
	}
	defer client.Close()
	var request server.DiffRequest
	for _, path := range slices.Sorted(maps.Keys(files)) {
		request.Files = append(request.Files, server.DiffFile{Path: path, Content: files[path]})
	}
	return client.Diff(ctx, request)
}

// foreseen are effects by the argument that names the session. Nil where no daemon tells.
type foreseen map[string]spec.Effect

// effectsOf are the effects of what was worked out so far. Where they are not known
// nothing is said of them: the edit is right or wrong without.
func (g *globals) effectsOf(ctx context.Context, files map[string][]byte) foreseen {
	if len(files) == 0 {
		return nil
	}
	result, err := g.foresee(ctx, files)
	if err != nil {
		return nil
	}
	effects := foreseen{}
	for _, d := range result.Sessions {
		effects[argumentOf(manifest.SessionRef(d.Name))] = d.Effect
	}
	return effects
}

// split gives the effects on what a person has named, and those on others, such as the
// sessions of a class.
func (f foreseen) split(names []string) (named, others foreseen) {
	named, others = foreseen{}, foreseen{}
	for name, e := range f {
		if slices.Contains(names, name) {
			named[name] = e
		} else {
			others[name] = e
		}
	}
	return named, others
}

// words are what is put behind a line about name, and what a person may not expect; both
// empty where nothing is known.
func (f foreseen) words(name string) (words, warning string) {
	e, known := f[name]
	if !known {
		return "", ""
	}
	return ": " + e.String(), e.Warning
}

// sayAll has a line for each.
func (g *globals) sayAll(f foreseen) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		e := f[name]
		if err := g.say("%s: %s", name, e); err != nil {
			return err
		}
		if e.Warning != "" {
			g.complain("Warning: %s: %s.", name, e.Warning)
		}
	}
	return nil
}
