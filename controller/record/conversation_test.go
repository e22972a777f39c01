// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/actuate"
	"github.com/muxlet/muxlet/spec"
)

func used(id string, begun bool) Conversation {
	return Conversation{ID: id, Source: spec.SourceAssigned, Class: spec.ClassClaude, Used: true, Begun: begun}
}

func ids(r *Record) []string {
	var out []string
	for _, p := range r.History {
		out = append(out, p.ID)
	}
	return out
}

func TestAConversationThatIsReplacedIsTheFirstOfTheHistory(t *testing.T) {
	var r Record
	for _, id := range []string{"1", "2", "3"} {
		r.Bind(used(id, true))
		r.Retire(spec.ReplacedCleared, now)
	}
	require.Nil(t, r.Conversation)
	require.Equal(t, []string{"3", "2", "1"}, ids(&r))
	require.Equal(t, PastConversation{Conversation: used("3", true), ReplacedAt: now, Reason: spec.ReplacedCleared}, r.History[0])
}

func TestAConversationThatComesBackLeavesTheHistory(t *testing.T) {
	r := Record{History: []PastConversation{{Conversation: used("2", true)}, {Conversation: used("1", true)}}}
	p, ok := r.Past("1")
	require.True(t, ok)
	r.Bind(p.Conversation)
	require.Equal(t, []string{"2"}, ids(&r))
	r.Retire(spec.ReplacedResumed, now)
	require.Equal(t, []string{"1", "2"}, ids(&r))
	_, ok = r.Past("3")
	require.False(t, ok)
}

func TestAnIDThatNobodyWasEverGivenIsForgotten(t *testing.T) {
	r := Record{Conversation: &Conversation{ID: "1", Source: spec.SourceAssigned}}
	r.Retire(spec.ReplacedClassChanged, now)
	require.Empty(t, r.History)
	r.Conversation = &Conversation{ID: "2", Source: spec.SourceAdopted}
	r.Retire(spec.ReplacedAdopted, now)
	require.Equal(t, []string{"2"}, ids(&r), "a person's choice is not")
	r.Retire(spec.ReplacedAdopted, now)
	require.Len(t, r.History, 1, "without a conversation there is nothing to keep")
}

// A record of class exec from before there were conversations says nothing of any.
func TestARecordOfVersionOneHasNoConversation(t *testing.T) {
	data, err := os.ReadFile("testdata/v1.json")
	require.NoError(t, err)
	s := newStore(t)
	require.NoError(t, os.WriteFile(s.path(uid), data, 0o600))
	r := load(t, s).Records[0]
	require.Equal(t, spec.ClassExec, r.Spec.ClientClassName)
	require.Equal(t, []any{(*Conversation)(nil), []PastConversation(nil), (*spec.ClientClassSpec)(nil), "", ""}, []any{r.Conversation, r.History, r.Class, r.ClassName, r.AdoptedID})
	require.Equal(t, []any{"", "", (*actuate.ClassOrder)(nil)}, []any{r.Client.Resumes, r.Client.ClassRevision, r.Attempt.Order.Class})
	require.Equal(t, []string{"agent"}, r.Attempt.Order.Command, "an attempt that was pending can still be launched")
}

// A history that is full loses what is missed least.
func TestAFullHistoryLosesWhatNeverBegunBeforeTheOldest(t *testing.T) {
	var r Record
	for i := range MaxHistory {
		r.Bind(used(fmt.Sprint(i), i != 7 && i != 9))
		r.Retire(spec.ReplacedCleared, now.Add(time.Duration(i)*time.Minute))
	}
	for _, lost := range []string{"7", "9", "0", "1"} {
		require.Contains(t, ids(&r), lost)
		r.Bind(used("new"+lost, true))
		r.Retire(spec.ReplacedCleared, now)
		require.Len(t, r.History, MaxHistory)
		require.NotContains(t, ids(&r), lost)
	}
	r.Bind(used("fresh", false))
	r.Retire(spec.ReplacedNeverBegun, now)
	require.Equal(t, "fresh", r.History[0].ID, "what was replaced just now is kept for once")
	require.NotContains(t, ids(&r), "2")
}
