// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

// A session that asks stands first, with its question and since when, until somebody has
// looked at it.
func TestTheListBeginsWithTheQuestionsAndTheirAges(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.start()
		w.employ("a")
		directory := filepath.Join(w.home, "strange")
		require.NoError(t, os.Mkdir(directory, 0o755))
		a.strange(w, directory)
		w.write("z.yaml", w.agentDocument("z", directory, nil))
		w.ready("a")
		w.asked("z", spec.ReasonTrustRequired)
		var lines []string
		w.waitFor("the list has the question", func() bool {
			lines = strings.Split(w.does("get", "--no-headers"), "\n")
			return strings.Contains(lines[0], "AwaitingInput (TrustRequired, ")
		})
		assert.Regexp(t, `^z .* AwaitingInput \(TrustRequired, \d+s ago\) `, lines[0])
		assert.Regexp(t, `^a `, lines[1])
		assert.Regexp(t, `^z +`+a.class+` +Running +\d+s +TrustRequired: .+\n$`, w.does("get", "--waiting", "--no-headers"))
	})
}
