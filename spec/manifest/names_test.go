// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatEditorsLeaveBehindIsNoManifest(t *testing.T) {
	for _, name := range []string{
		".x.yaml", ".#x.yaml", "#x.yaml#", "x.yaml~", "x.yaml.swp", ".x.yaml.swp", "x.yaml.tmp", "x.yaml.bak",
		"4913", "~$x.yaml", "x.yaml___jb_tmp___", "x.yaml.1234567", "sedA1b2C3", "x.YAML", "yaml", ".yaml", "x.txt", "",
	} {
		assert.False(t, isManifest(name), name)
	}
	for _, name := range []string{"x.yaml", "x.yml", "x.json", "a.b.yaml", "4913.yaml", "#x.yaml", "a b.yaml"} {
		assert.True(t, isManifest(name), name)
	}
}

func TestBelowComparesWholeNames(t *testing.T) {
	for _, c := range []struct {
		path, root string
		want       bool
	}{
		{"/m/a.yaml", "/m", true},
		{"/m", "/m", true},
		{"/m2/a.yaml", "/m", false},
		{"/a", "/", true},
		{"a.yaml", ".", true},
		{"/a.yaml", ".", false},
		{"/", "/m", false},
	} {
		assert.Equal(t, c.want, below(c.path, c.root), "%s below %s", c.path, c.root)
	}
}
