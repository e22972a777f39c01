// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/spec"
)

// resumed is a launch that is to resume a conversation of which this is found.
func resumed(t *testing.T, was string, found observe.Evidence) (o Options, asked *observe.ConversationRef, p *pane) {
	t.Helper()
	p = newPane(t, "/bin/true", "$(CONVERSATION_ID)")
	class := p.agent()
	class.Resume = &actuate.ResumeOrder{
		ID: "c-1", Reports: spec.ReportsClaude, Transcript: "$(CONFIG_DIRECTORY)/*/$(CONVERSATION_ID).jsonl", TranscriptPattern: "user", ConfigDirectory: was,
	}
	asked = &observe.ConversationRef{}
	o = Options{
		StateDir: p.state, RuntimeDir: p.runtime, UID: testUID, Attempt: testAttempt, Now: time.Now,
		Environ:   []string{"PATH=/bin", "HOME=/h", "AGENT_HOME=/now"},
		ReadOrder: func(string) (actuate.Order, actuate.Fence, error) { return p.stored.Order, actuate.FenceOpen, nil },
		Evidence: func(ref observe.ConversationRef) observe.Evidence {
			_, err := ReadReceipt(p.state, testAttempt)
			require.ErrorIs(t, err, os.ErrNotExist, "it is looked for before anything is said to be executed")
			*asked = ref
			return found
		},
		Exec: func(string, []string, []string) error { return os.ErrPermission },
	}
	t.Chdir(p.work)
	return o, asked, p
}

// B2: nothing is begun under an id that is not there.
func TestAConversationThatIsNotWhereTheClientLooksIsNotResumed(t *testing.T) {
	file := "/now/*/c-1.jsonl"
	for name, c := range map[string]struct {
		was     string
		found   observe.Evidence
		reason  string
		message []string
	}{
		"no file, and the config directory is another one": {
			"/before", observe.Evidence{State: observe.EvidenceAbsent, Path: file}, spec.ReasonConversationElsewhere,
			[]string{"c-1", "/before", "/now", "set AGENT_HOME to the old one again and try again with `muxlet resume shop`", "`muxlet resume shop --fresh`"},
		},
		"a file of no use there": {
			"/before", observe.Evidence{State: observe.EvidenceUnusable, Path: file}, spec.ReasonConversationElsewhere, []string{"/before", "/now"},
		},
		"no file, and the config directory is the same": {
			"/now", observe.Evidence{State: observe.EvidenceAbsent, Path: file}, spec.ReasonConversationMissing,
			[]string{"does not exist", "put " + file + " back", "muxlet resume shop --fresh"},
		},
		"no file, and the config directory was not known": {
			"", observe.Evidence{State: observe.EvidenceAbsent, Path: file, Message: "no file matches"}, spec.ReasonConversationMissing, []string{"(no file matches)"},
		},
		"a file of no use": {
			"/now", observe.Evidence{State: observe.EvidenceUnusable, Path: "/now/a/c-1.jsonl"}, spec.ReasonConversationMissing, []string{"cannot be resumed", "put /now/a/c-1.jsonl back"},
		},
		"it could not be read": {
			"/now", observe.Evidence{Path: file, Message: "permission denied"}, spec.ReasonConversationUnknown, []string{"could not be read (permission denied)"},
		},
		"another process has it": {
			"/now", observe.Evidence{State: observe.EvidenceResumable, Path: file, Holder: 4711}, spec.ReasonConversationInUse, []string{"the process 4711 has the conversation c-1 open"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, asked, p := resumed(t, c.was, c.found)
			err := Run(o)
			require.Error(t, err)
			r := p.receipt()
			assert.Equal(t, observe.StageFailed, r.Stage)
			assert.Equal(t, c.reason, r.Reason)
			assert.Equal(t, c.found.Path, r.File)
			assert.Equal(t, err.Error(), r.Message)
			for _, part := range c.message {
				assert.Contains(t, r.Message, part)
			}
			assert.Equal(t, []string{"/h", "/now"}, []string{r.Home, r.ConfigDirectory})
			class := asked.Class
			asked.Class = nil
			assert.Equal(t, observe.ConversationRef{ID: "c-1", Session: "shop", Directory: p.work, Home: "/h", ConfigDirectory: "/now"}, *asked)
			assert.Equal(t, &spec.ClientClassSpec{
				Reports: spec.ReportsClaude, ConfigDirectory: p.stored.Order.Class.ConfigDirectory,
				Conversation: spec.ClassConversation{Transcript: "$(CONFIG_DIRECTORY)/*/$(CONVERSATION_ID).jsonl", TranscriptPattern: "user"},
			}, class)
		})
	}
}

func TestAConversationThatIsThereIsResumedAlsoFromAnotherConfigDirectory(t *testing.T) {
	for name, found := range map[string]observe.Evidence{
		"free":            {State: observe.EvidenceResumable, Path: "/now/a/c-1.jsonl"},
		"held by ourself": {State: observe.EvidenceResumable, Holder: os.Getpid()},
	} {
		t.Run(name, func(t *testing.T) {
			o, asked, p := resumed(t, "/before", found)
			executed := false
			o.Exec = func(_ string, argv, _ []string) error {
				executed = true
				assert.Equal(t, []string{"/bin/true", "c-1"}, argv)
				assert.Equal(t, "/now", p.receipt().ConfigDirectory)
				return os.ErrPermission
			}
			require.Error(t, Run(o))
			assert.True(t, executed)
			assert.Equal(t, "c-1", asked.ID)
		})
	}
}

func TestAFreshStartLooksForNoConversation(t *testing.T) {
	o, asked, p := resumed(t, "/before", observe.Evidence{State: observe.EvidenceAbsent})
	p.stored.Order.Class.Resume = nil
	executed := false
	o.Exec = func(string, []string, []string) error { executed = true; return os.ErrPermission }
	require.Error(t, Run(o))
	assert.True(t, executed)
	assert.Empty(t, asked.ID)
	assert.Equal(t, "/now", p.receipt().ConfigDirectory)
}
