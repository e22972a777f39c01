// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muxlet/muxlet/controller/envtest"
	"github.com/muxlet/muxlet/spec"
)

// B1, B4: sessions in one directory that are killed at once, while their clients
// report, come back with their own conversations each.
func TestAgentsThatAreKilledAtOnceComeBackWithTheirOwnConversations(t *testing.T) {
	t.Parallel()
	const sessions = 8
	a := startAgents(t, envtest.Config{})
	var all []*spec.Session
	for i := range sessions {
		all = append(all, a.claude(fmt.Sprintf("s%d", i)))
	}
	a.ready(all...)
	ids := map[string]string{}
	for _, s := range all {
		assert.Equal(t, "turns=1 first=of "+s.Name, a.turn(s.Name, "of "+s.Name))
	}
	for _, s := range all {
		ids[s.Name] = a.begun(s.Name)
		// Its tools report from now on.
		a.types(s.Name, "!tool sleep 0.05")
	}
	for _, s := range all {
		a.Kill(a.client(s.Name))
	}
	for _, s := range all {
		a.WaitFor(s.Name, envtest.Incarnation(2))
		starts := a.spoken(s.Name, "start")
		require.Len(t, starts, 2)
		assert.Contains(t, lastArgv(starts), "--resume "+ids[s.Name])
		for name, id := range ids {
			if name != s.Name {
				assert.NotContains(t, fmt.Sprint(starts), id, "%s was started with the conversation of %s", s.Name, name)
			}
		}
		assert.True(t, strings.HasSuffix(a.turn(s.Name, "again"), "first=of "+s.Name))
		assert.Equal(t, ids[s.Name], a.begun(s.Name))
	}
}

// B6: another conversation is taken up once; what the client goes on to say writes
// nothing and is no change for who watches.
func TestAConversationThatTheClientChangesIsResumedAndToldOnce(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	a.turn("shop", "one")
	first := a.begun("shop")
	a.types("shop", "/clear")
	s := a.WaitFor("shop", envtest.Check{Words: "has another conversation", Holds: func(s spec.Session) bool {
		return s.Status.Conversation != nil && s.Status.Conversation.ID != first
	}})
	second := s.Status.Conversation.ID
	require.Len(t, s.Status.Conversation.History, 1)
	assert.Equal(t, first, s.Status.Conversation.History[0].ID)
	assert.Equal(t, spec.ReplacedCleared, s.Status.Conversation.History[0].Reason)
	assert.Equal(t, "turns=1 first=of the second", a.turn("shop", "of the second"))
	assert.Equal(t, second, a.begun("shop"))
	a.WaitFor("shop", idle)

	send := a.reporter("shop")
	send("PostToolUse", second, "")
	a.WaitFor("shop", working)
	record, watched := a.recordFile("shop"), a.versions("shop")
	for range 5 {
		before := a.reportedAt("shop")
		send("PostToolUse", second, "")
		a.Eventually("the report came", func() bool { return a.reportedAt("shop").After(before) })
	}
	a.Always(2*envtest.Resync, "nothing changes", func() bool { return a.versions("shop") == watched })
	assert.Equal(t, record, a.recordFile("shop"), "nothing was written")
	assert.Equal(t, watched, a.versions("shop"), "who watches was told nothing")

	a.Kill(a.client("shop"))
	a.WaitFor("shop", envtest.Incarnation(2))
	assert.Contains(t, lastArgv(a.spoken("shop", "start")), "--resume "+second)
	assert.True(t, strings.HasSuffix(a.turn("shop", "more"), "first=of the second"))
}

// A second session that asks for the same conversation is refused, and says whose it
// is; when that session gives it up, nothing is left in its way.
func TestOneConversationIsOneSessions(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	a.turn("shop", "one")
	id := a.begun("shop")
	thief := a.claude("thief")
	thief.Spec.Conversation.ID = id
	a.Apply(thief)
	s := a.WaitFor("thief", envtest.Condition(spec.ConditionConversationBound, metav1.ConditionFalse, spec.ReasonConversationInUse), envtest.Shows(spec.StatusBlocked))
	assert.Contains(t, s.Status.Decision.Message, "session shop")
	assert.Empty(t, a.spoken("thief", "start"))
	assert.Equal(t, id, a.begun("shop"))

	require.NoError(t, a.Controller().Delete(t.Context(), "shop"))
	a.WaitNoSession("shop")
	a.WaitFor("thief", envtest.Running)
	assert.Equal(t, "turns=2 first=one", a.turn("thief", "two"))
}

// A client that runs is not ended for a conversation that another session has: what
// would follow it could not be started.
func TestAnEditThatAsksForAnotherSessionsConversationLeavesTheClientAlone(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	thief := a.claude("thief")
	a.ready(a.claude("shop"), thief)
	a.turn("shop", "one")
	a.turn("thief", "two")
	id, own := a.begun("shop"), a.begun("thief")
	a.WaitFor("thief", idle)
	client := a.client("thief")
	thief.Spec.Conversation.ID = id
	thief.Spec.UpdateStrategy.Type = spec.UpdateRecreate
	a.Apply(thief)
	s := a.WaitFor("thief", envtest.Condition(spec.ConditionUpToDate, metav1.ConditionFalse, spec.ReasonUpdatePending))
	assert.Equal(t, client.PID, s.Status.Client.Pid)
	a.Always(2*envtest.Resync, "its client goes on", func() bool { return a.client("thief") == client })
	assert.Equal(t, own, a.Record("thief").Conversation.ID)
}

// A session that is declared again finds that another has taken up its conversation
// since: that one keeps it, also when its client dies, and neither waits for the other.
func TestASessionThatComesBackWaitsForWhoHasItsConversationAndIsNotInItsWay(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	a.turn("shop", "one")
	id := a.begun("shop")
	require.NoError(t, a.Controller().Delete(t.Context(), "shop"))
	a.WaitNoSession("shop")
	heir := a.claude("heir")
	heir.Spec.Conversation.ID = id
	a.ready(heir)
	assert.Equal(t, "turns=2 first=one", a.turn("heir", "two"))
	a.Eventually("the turn is in the transcript", func() bool { return a.written("two") })
	a.Apply(a.claude("shop"))
	inUse := envtest.Condition(spec.ConditionConversationBound, metav1.ConditionFalse, spec.ReasonConversationInUse)
	a.WaitFor("shop", inUse)
	a.Kill(a.client("heir"))
	a.WaitFor("heir", envtest.Incarnation(2))
	assert.Equal(t, "turns=3 first=one", a.turn("heir", "three"))
	a.Always(2*envtest.Resync, "the other waits", envtest.Holds(a.Env, "shop", inUse))
	assert.Len(t, a.spoken("shop", "start"), 1)
}

// A client in which a person resumes the conversation of another session does not get
// it written down.
func TestAClientThatTakesUpAnotherSessionsConversationIsToldOnceAndKeepsItsOwn(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"), a.claude("other"))
	a.turn("shop", "one")
	a.turn("other", "two")
	id, own := a.begun("shop"), a.begun("other")
	send := a.reporter("other")
	for range 3 {
		send("SessionStart", id, `"source":"resume"`)
	}
	a.Eventually("it is told", func() bool { return len(a.Events("other", spec.ReasonConversationInUse)) == 1 })
	assert.EqualValues(t, 1, max(a.Events("other", spec.ReasonConversationInUse)[0].Count, 1))
	assert.Equal(t, own, a.Record("other").Conversation.ID)
	assert.Equal(t, id, a.Record("shop").Conversation.ID)
}

// A report whose sender has another agent between itself and the client changes
// nothing, although it has the client's whole environment.
func TestANestedAgentChangesNothing(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	a.turn("shop", "one")
	id := a.begun("shop")
	a.WaitFor("shop", idle)
	settings := filepath.Join(a.State, "hooks", "claude-settings.json")
	require.FileExists(t, settings)
	output := filepath.Join(a.Dir, "nested")
	a.turn("shop", "!tool "+filepath.Join(a.root, "bin/claude")+" -p --settings "+settings+" nested >"+output)
	a.Eventually("the nested agent has answered", func() bool {
		text, _ := os.ReadFile(output)
		return strings.Contains(string(text), "first=nested")
	})
	a.WaitFor("shop", idle)
	assert.Equal(t, id, a.Record("shop").Conversation.ID)
	assert.Empty(t, a.Record("shop").History)
	a.Kill(a.client("shop"))
	a.WaitFor("shop", envtest.Incarnation(2))
	assert.Contains(t, lastArgv(a.spoken("shop", "start")), "--resume "+id)
}

// What a client tells while no daemon listens counts for the next one, before it
// decides anything.
func TestAReportOfTheTimeWithoutADaemonIsNotLost(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	a.turn("shop", "one")
	first, client, pane := a.begun("shop"), a.client("shop"), a.pane("shop")
	a.Drop()
	a.Tmux("send-keys", "-t", pane, "-l", "/clear")
	a.Tmux("send-keys", "-t", pane, "Enter")
	a.Eventually("the hook has spooled", func() bool { return len(a.spooled()) > 1 })
	a.Tmux("send-keys", "-t", pane, "-l", "of the second")
	a.Tmux("send-keys", "-t", pane, "Enter")
	a.Eventually("it has answered", func() bool { return len(a.spoken("shop", "answer")) > 1 })
	a.Eventually("the end of the turn is spooled", func() bool { return len(a.spooled()) > 3 })
	a.Eventually("the turn is in the transcript", func() bool { return a.written("of the second") })
	a.Kill(client)
	a.WaitGone(client)
	a.Boot()
	a.WaitFor("shop", envtest.Incarnation(2))
	s, _ := a.Session("shop")
	assert.NotEqual(t, first, s.Status.Conversation.ID)
	assert.Equal(t, first, s.Status.Conversation.History[0].ID)
	assert.Contains(t, lastArgv(a.spoken("shop", "start")), "--resume "+s.Status.Conversation.ID)
	assert.Equal(t, "turns=2 first=of the second", a.turn("shop", "more"))
	a.Eventually("the spool is empty", func() bool { return len(a.spooled()) == 0 })
}

// B8, and B4 for a client that tells its conversation only at its first turn, or by its
// files.
func TestAnAgentThatTellsItsConversationLateComesBackWithIt(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.codex("shop"), a.codex("web"))
	ids := map[string]string{}
	for _, name := range []string{"shop", "web"} {
		a.turn(name, "of "+name)
		ids[name] = a.begun(name)
	}
	assert.NotEqual(t, ids["shop"], ids["web"])
	for name := range ids {
		a.Kill(a.client(name))
	}
	for name, id := range ids {
		a.WaitFor(name, envtest.Incarnation(2))
		assert.Contains(t, lastArgv(a.spoken(name, "start")), id)
		assert.Equal(t, "turns=2 first=of "+name, a.turn(name, "two"))
	}
}

// A daemon that ends between a report and its being saved loses nothing: the hook has
// no answer, and leaves the report on disk.
func TestAReportThatCouldNotBeSavedComesAgain(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	a.turn("shop", "one")
	first := a.begun("shop")
	a.WaitFor("shop", idle)
	send := a.reporter("shop")
	uid := a.Record("shop").UID
	a.blockRecords(true)
	second := "11111111-2222-4333-8444-555555555555"
	send("SessionStart", second, `"source":"clear"`)
	a.Eventually("the hook has spooled it", func() bool { return len(a.spooled()) > 0 })
	a.Drop()
	a.blockRecords(false)
	assert.Equal(t, first, a.recordOnDisk(uid).Conversation.ID)
	a.Boot()
	a.Eventually("it is taken up", func() bool {
		r := a.recordOnDisk(uid)
		return r.Conversation != nil && r.Conversation.ID == second && len(r.History) == 1 && r.History[0].ID == first
	})
	a.Eventually("the spool is empty", func() bool { return len(a.spooled()) == 0 })
}

// A14: a terminated session stays down, and comes back with its history when asked.
func TestATerminatedAgentComesBackWithItsConversationWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	a.turn("shop", "one")
	id := a.begun("shop")
	require.NoError(t, a.Controller().Terminate(t.Context(), "shop"))
	a.WaitFor("shop", envtest.Shows(spec.StatusTerminated))
	a.Restart()
	a.WaitFor("shop", envtest.Shows(spec.StatusTerminated))
	a.Always(2*envtest.Resync, "it stays down", envtest.Holds(a.Env, "shop", envtest.Shows(spec.StatusTerminated)))
	require.NoError(t, a.Controller().Resume(t.Context(), "shop", false))
	a.WaitFor("shop", envtest.Incarnation(2))
	assert.Equal(t, "turns=2 first=one", a.turn("shop", "two"))
	assert.Equal(t, id, a.begun("shop"))
}

// A10: another class gets another conversation, whatever was edited meanwhile.
func TestAnotherClassNeverGetsTheConversation(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	s := a.claude("shop")
	a.ready(s)
	a.turn("shop", "one")
	id := a.begun("shop")
	s.Spec.ClientClassName = spec.ClassCodex
	s.Spec.UpdateStrategy.Type = spec.UpdateRecreate
	a.Apply(s)
	a.Eventually("codex was started", func() bool { return len(a.spoken("shop", "start")) > 1 })
	a.Eventually("the old conversation is history", func() bool {
		r := a.Record("shop")
		return len(r.History) == 1 && r.History[0].ID == id && r.History[0].Reason == spec.ReplacedClassChanged
	})
	for _, start := range a.spoken("shop", "start")[1:] {
		assert.NotContains(t, strings.Join(start.Argv, " "), id)
		assert.NotContains(t, start.Argv, "resume")
	}
}

// A record that is damaged beyond repair is no reason to begin anew.
func TestADamagedRecordOfAnAgentBlocksUntilAPersonDecides(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	a.turn("shop", "one")
	id, client := a.begun("shop"), a.client("shop")
	uid := a.Record("shop").UID
	a.Drop()
	a.KillServer()
	a.WaitGone(client)
	files, err := filepath.Glob(filepath.Join(a.State, "records", uid+"*"))
	require.NoError(t, err)
	for _, file := range files {
		require.NoError(t, os.WriteFile(file, []byte("damaged"), 0o600))
	}
	a.Boot()
	s := a.WaitFor("shop", envtest.Shows(spec.StatusBlocked), envtest.Because(spec.ReasonRecordQuarantined))
	assert.Contains(t, s.Status.Decision.Message, "--fresh")
	assert.Len(t, a.spoken("shop", "start"), 1)
	edited := a.claude("shop")
	edited.Spec.Conversation.ID = id
	a.Apply(edited)
	a.WaitFor("shop", envtest.Running)
	assert.Equal(t, "turns=2 first=one", a.turn("shop", "two"))
}

// A client that lives tells its conversation by its files, although the record is lost
// and no hook runs until its next turn.
func TestADamagedRecordOfAnAgentThatLivesIsMendedByTheAgent(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	for _, s := range []*spec.Session{a.claude("shop"), a.codex("docs")} {
		a.ready(s)
		a.turn(s.Name, "one")
		id, client := a.begun(s.Name), a.client(s.Name)
		a.Drop()
		damage(a.Env, func(string) string { return "damaged" })
		a.Boot()
		ready := envtest.Condition(spec.ConditionReady, metav1.ConditionTrue, spec.ReasonReady)
		a.WaitFor(s.Name, envtest.Running, ready)
		a.Eventually("its conversation is known again", func() bool {
			c := a.Record(s.Name).Conversation
			return c != nil && c.ID == id
		})
		assert.Equal(t, client, a.client(s.Name))
		a.Kill(client)
		a.WaitFor(s.Name, envtest.Running, envtest.Incarnation(2), ready)
		assert.Equal(t, "turns=2 first=one", a.turn(s.Name, "two"))
		a.Delete(s.Name)
	}
}

// B3: a resume that fails once is tried again with the same conversation.
func TestAResumeThatFailsOnceIsTriedAgainWithTheSameConversation(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	a.turn("shop", "one")
	id := a.begun("shop")
	a.control(map[string]any{"exits": []map[string]any{{"code": 1, "text": "No conversation found with session ID: " + id, "resume": true}}})
	a.Kill(a.client("shop"))
	a.WaitFor("shop", envtest.Incarnation(3))
	for _, start := range a.spoken("shop", "start")[1:] {
		assert.Contains(t, strings.Join(start.Argv, " "), "--resume "+id)
	}
	assert.Len(t, a.Events("shop", spec.ReasonResumeFailed), 1)
	assert.Equal(t, "turns=2 first=one", a.turn("shop", "two"))
}

// B7: an id whose conversation never had a turn is replaced, with an event, and never
// resumed.
func TestAConversationWithoutATurnIsBegunAnew(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	first := a.Record("shop").Conversation.ID
	a.Kill(a.client("shop"))
	s := a.WaitFor("shop", envtest.Incarnation(2))
	assert.NotEqual(t, first, s.Status.Conversation.ID)
	assert.Contains(t, lastArgv(a.spoken("shop", "start")), "--session-id "+s.Status.Conversation.ID)
	assert.NotEmpty(t, a.Events("shop", spec.ReasonFreshStart))
	assert.True(t, meta.IsStatusConditionPresentAndEqual(s.Status.Conditions, spec.ConditionConversationBound, metav1.ConditionFalse))
}

// muxlet resume --fresh is the way out of a conversation that is gone for good.
func TestAFreshConversationIsBegunWhenAPersonAsksForIt(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	s := a.claude("shop")
	s.Spec.Conversation.MissingPolicy = spec.MissingHold
	a.ready(s)
	a.turn("shop", "one")
	id := a.begun("shop")
	require.ErrorContains(t, a.Controller().Resume(t.Context(), "shop", true), "runs")
	require.NoError(t, os.RemoveAll(filepath.Join(a.config, "projects")))
	a.Kill(a.client("shop"))
	blocked := a.WaitFor("shop", envtest.Shows(spec.StatusBlocked), envtest.Because(spec.ReasonConversationMissing),
		envtest.Condition(spec.ConditionStalled, metav1.ConditionTrue, spec.ReasonConversationMissing))
	assert.Contains(t, blocked.Status.Decision.Message, id+".jsonl")
	assert.Contains(t, blocked.Status.Decision.Message, "muxlet resume shop --fresh")
	require.NoError(t, a.Controller().Resume(t.Context(), "shop", true))
	fresh := a.WaitFor("shop", envtest.Incarnation(2))
	assert.NotEqual(t, id, fresh.Status.Conversation.ID)
	assert.Equal(t, id, fresh.Status.Conversation.History[0].ID)
	assert.Equal(t, "turns=1 first=two", a.turn("shop", "two"))
}

// An agent whose record was lost is known again by what it runs with: its own files tell
// its conversation, and nothing takes it for one that hangs in a question.
func TestAnAgentWithoutItsRecordTellsItsConversation(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	a.turn("shop", "one")
	id, client := a.begun("shop"), a.client("shop")
	a.WaitFor("shop", idle)
	a.loseRecords()
	a.WaitFor("shop", envtest.Running, envtest.Check{Words: "has its conversation", Holds: func(s spec.Session) bool {
		return s.Status.Conversation != nil && s.Status.Conversation.ID == id
	}})
	assert.Equal(t, client, a.client("shop"))
	a.Kill(client)
	a.WaitFor("shop", envtest.Incarnation(2))
	assert.Contains(t, lastArgv(a.spoken("shop", "start")), "--resume "+id)
	assert.Equal(t, "turns=2 first=one", a.turn("shop", "two"))
}

// One that ends before it has told anything is not followed by a blank one.
func TestAnAgentThatEndsWithoutItsRecordIsNotReplacedByABlankOne(t *testing.T) {
	t.Parallel()
	a := startAgents(t, envtest.Config{})
	a.ready(a.claude("shop"))
	a.turn("shop", "one")
	a.begun("shop")
	a.WaitFor("shop", idle)
	// Its files do not tell either.
	require.NoError(t, os.RemoveAll(filepath.Join(a.config, "sessions")))
	client := a.client("shop")
	a.loseRecords()
	a.WaitFor("shop", envtest.Check{Words: "is adopted", Holds: func(s spec.Session) bool { return s.Status.Client.Pid == client.PID }})
	a.Kill(client)
	a.WaitFor("shop", envtest.Shows(spec.StatusBlocked), envtest.Because(spec.ReasonRecordQuarantined))
	assert.Len(t, a.spoken("shop", "start"), 1)
	require.NoError(t, a.Controller().Resume(t.Context(), "shop", true))
	a.WaitFor("shop", envtest.Running)
}

// loseRecords takes the records away while no controller runs.
func (a *agents) loseRecords() {
	a.Helper()
	a.Drop()
	files, err := filepath.Glob(filepath.Join(a.State, "records", "*"))
	require.NoError(a, err)
	for _, file := range files {
		require.NoError(a, os.Remove(file))
	}
	a.Boot()
}
