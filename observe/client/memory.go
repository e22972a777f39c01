// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"io/fs"
	"sync"
)

type memoryKey struct{ name, pattern string }

// memory is what earlier looks have learned. It saves time and decides nothing.
type memory struct {
	mu    sync.Mutex
	files map[memoryKey]finding
	globs map[string]string
	turns map[string]knownTurn
}

// knownTurn is what the end of a rollout has said. Rollouts grow with each line.
type knownTurn struct {
	at   finding
	turn turn
}

func (m *memory) turnOf(name string, info fs.FileInfo) (turn, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.turns[name]
	return known.turn, ok && known.at.same(info) && known.at.unchanged(info)
}

func (m *memory) keepTurn(name string, info fs.FileInfo, t turn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.turns == nil || len(m.turns) >= maxRemembered {
		m.turns = map[string]knownTurn{}
	}
	m.turns[name] = knownTurn{finding{info: info}, t}
}

func (m *memory) of(key memoryKey) (finding, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.files[key]
	return known, ok
}

func (m *memory) keep(key memoryKey, found finding) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files == nil || len(m.files) >= maxRemembered {
		m.files = map[memoryKey]finding{}
	}
	m.files[key] = found
}

func (m *memory) found(glob string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.globs[glob]
}

func (m *memory) remember(glob, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.globs == nil || len(m.globs) >= maxRemembered {
		m.globs = map[string]string{}
	}
	m.globs[glob] = name
}
