// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/muxlet/muxlet/spec"
)

var sightNow = time.Date(2026, 11, 29, 14, 0, 0, 0, time.UTC)

// ago is that long before the present look.
func ago(d time.Duration) time.Time { return sightNow.Add(-d) }

func agentClass(reports spec.ReportsType) *spec.ClientClassSpec {
	class := robotClass()
	class.Reports = reports
	return class
}

// look is a look at a client of Claude's kind that runs for an hour.
func look(change func(*SightInput)) SightInput {
	in := SightInput{
		Class: agentClass(spec.ReportsClaude), Now: sightNow, StartedAt: ago(time.Hour),
		ReportTTL: 5 * time.Minute, FocusAfter: 5 * time.Second,
	}
	change(&in)
	return in
}

func (in *SightInput) shows(text string) {
	shown := JudgeScreen(in.Class, screen(text), in.Now)
	in.Shown = &shown
}

func (in *SightInput) reports(kind ReportKind, at time.Time) {
	in.Report = LastReport{Kind: kind, At: at}
}

func (in *SightInput) tells(activity spec.Activity, at time.Time) {
	in.Files.Activity, in.Files.ActivityAt = activity, at
}

func TestTheActivityIsWhatTheBestWitnessSays(t *testing.T) {
	for name, c := range map[string]struct {
		in   func(*SightInput)
		want spec.Activity
	}{
		"nothing is known":         {func(*SightInput) {}, spec.ActivityUnknown},
		"it has started":           {func(in *SightInput) { in.reports(ReportStarted, ago(time.Minute)) }, spec.ActivityIdle},
		"a turn was submitted":     {func(in *SightInput) { in.reports(ReportPrompted, ago(time.Second)) }, spec.ActivityWorking},
		"it uses a tool":           {func(in *SightInput) { in.reports(ReportWorking, ago(4*time.Minute)) }, spec.ActivityWorking},
		"it asks":                  {func(in *SightInput) { in.reports(ReportAsked, ago(time.Hour)) }, spec.ActivityAwaitingInput},
		"it is done":               {func(in *SightInput) { in.reports(ReportDone, ago(time.Hour)) }, spec.ActivityIdle},
		"the turn has failed":      {func(in *SightInput) { in.reports(ReportFailed, ago(time.Hour)) }, spec.ActivityIdle},
		"a report that is too old": {func(in *SightInput) { in.reports(ReportWorking, ago(6*time.Minute)) }, spec.ActivityUnknown},
		"a conversation has ended": {func(in *SightInput) { in.reports(ReportEnded, ago(time.Second)) }, spec.ActivityUnknown},
		"any report":               {func(in *SightInput) { in.reports(ReportOther, ago(time.Second)) }, spec.ActivityUnknown},
		"the registry says busy":   {func(in *SightInput) { in.tells(spec.ActivityWorking, ago(time.Minute)) }, spec.ActivityWorking},
		"busy after it was done": {func(in *SightInput) {
			in.reports(ReportDone, ago(2*time.Second))
			in.tells(spec.ActivityWorking, ago(time.Second))
		}, spec.ActivityWorking},
		"busy, and done a moment ago": {func(in *SightInput) {
			in.reports(ReportDone, ago(time.Second))
			in.tells(spec.ActivityWorking, ago(time.Minute))
		}, spec.ActivityIdle},
		"busy, whatever an old Done": {func(in *SightInput) {
			in.reports(ReportDone, ago(time.Minute))
			in.tells(spec.ActivityWorking, ago(time.Hour))
		}, spec.ActivityWorking},
		"idle, whatever an old prompt": {func(in *SightInput) {
			in.reports(ReportPrompted, ago(time.Minute))
			in.tells(spec.ActivityIdle, ago(time.Hour))
		}, spec.ActivityIdle},
		"idle, and a prompt just now": {func(in *SightInput) {
			in.reports(ReportPrompted, ago(time.Second))
			in.tells(spec.ActivityIdle, ago(time.Hour))
		}, spec.ActivityWorking},
		"a predecessor's turn": {func(in *SightInput) { in.tells(spec.ActivityWorking, ago(2*time.Hour)) }, spec.ActivityUnknown},

		"the screen works on a long turn":  {func(in *SightInput) { in.reports(ReportWorking, ago(time.Hour)); in.shows("working\n> ") }, spec.ActivityWorking},
		"the screen works without hooks":   {func(in *SightInput) { in.shows("working\n> ") }, spec.ActivityWorking},
		"the composer without hooks":       {func(in *SightInput) { in.shows("> ") }, spec.ActivityIdle},
		"the composer, nothing to work by": {func(in *SightInput) { in.Class.Working.Pattern = ""; in.shows("> ") }, spec.ActivityUnknown},
		"the composer after a while":       {func(in *SightInput) { in.reports(ReportPrompted, ago(6*time.Second)); in.shows("> ") }, spec.ActivityIdle},
		"the composer just after a prompt": {func(in *SightInput) { in.reports(ReportPrompted, ago(4*time.Second)); in.shows("> ") }, spec.ActivityWorking},
		"the composer, and files say busy": {func(in *SightInput) { in.tells(spec.ActivityWorking, ago(time.Minute)); in.shows("> ") }, spec.ActivityWorking},
		"still drawn when it is done":      {func(in *SightInput) { in.reports(ReportDone, ago(time.Second)); in.shows("working\n> ") }, spec.ActivityIdle},
		"at work again after it was done":  {func(in *SightInput) { in.reports(ReportDone, ago(time.Minute)); in.shows("working\n> ") }, spec.ActivityWorking},
		"a question on the screen":         {func(in *SightInput) { in.reports(ReportWorking, ago(0)); in.shows("Pick a color") }, spec.ActivityAwaitingInput},
		"a question that was answered":     {func(in *SightInput) { in.reports(ReportAsked, ago(time.Minute)); in.shows("working\n> ") }, spec.ActivityWorking},
		"a question that was cancelled":    {func(in *SightInput) { in.reports(ReportAsked, ago(time.Minute)); in.shows("> ") }, spec.ActivityIdle},
		"a question of an unknown look":    {func(in *SightInput) { in.reports(ReportAsked, ago(time.Minute)); in.shows("Which one, then") }, spec.ActivityAwaitingInput},
		"a blank screen tells nothing":     {func(in *SightInput) { in.reports(ReportWorking, ago(time.Minute)); in.shows("") }, spec.ActivityWorking},
		"what the last look has shown": {func(in *SightInput) {
			in.Previous = Sight{At: ago(time.Minute), Activity: spec.ActivityWorking}
		}, spec.ActivityWorking},
		"what a look has shown long ago": {func(in *SightInput) {
			in.Previous = Sight{At: ago(time.Hour), Activity: spec.ActivityWorking}
		}, spec.ActivityUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, JudgeSight(look(c.in)).Activity)
		})
	}
}

func TestAClientIsReadyWhenSomethingProvesIt(t *testing.T) {
	for name, c := range map[string]struct {
		in   func(*SightInput)
		want Readiness
	}{
		"it was not looked at":       {func(*SightInput) {}, ReadinessUnknown},
		"a blank screen":             {func(in *SightInput) { in.shows("") }, ReadinessUnknown},
		"it shows something":         {func(in *SightInput) { in.shows("loading") }, NotReady},
		"it has started":             {func(in *SightInput) { in.reports(ReportStarted, ago(0)) }, Ready},
		"a conversation has ended":   {func(in *SightInput) { in.reports(ReportEnded, ago(0)) }, ReadinessUnknown},
		"it tells anything else":     {func(in *SightInput) { in.reports(ReportOther, ago(0)) }, Ready},
		"the registry says idle":     {func(in *SightInput) { in.tells(spec.ActivityIdle, ago(0)) }, Ready},
		"the registry says busy":     {func(in *SightInput) { in.tells(spec.ActivityWorking, ago(0)) }, Ready},
		"the registry says nothing":  {func(in *SightInput) { in.Files.Conversation = "x" }, ReadinessUnknown},
		"the composer":               {func(in *SightInput) { in.shows("> ") }, Ready},
		"it resumed into a turn":     {func(in *SightInput) { in.shows("working") }, Ready},
		"it was ready":               {func(in *SightInput) { in.WasReady = true; in.shows("what is this") }, Ready},
		"it was ready at last look":  {func(in *SightInput) { in.Previous.Readiness = Ready }, Ready},
		"a question":                 {func(in *SightInput) { in.shows("Trust this folder?\n> ") }, NotReady},
		"a question though it was":   {func(in *SightInput) { in.WasReady = true; in.shows("Pick a color") }, NotReady},
		"a question it reports":      {func(in *SightInput) { in.WasReady = true; in.reports(ReportAsked, ago(0)) }, NotReady},
		"a question of the registry": {func(in *SightInput) { in.tells(spec.ActivityAwaitingInput, ago(0)) }, NotReady},
		"nothing would ever tell": {func(in *SightInput) {
			in.Class = &spec.ClientClassSpec{}
		}, Ready},
		"nothing but its pattern": {func(in *SightInput) {
			in.Class = agentClass(spec.ReportsNone)
			in.shows("loading")
		}, NotReady},
		"a predecessor's registry": {func(in *SightInput) { in.tells(spec.ActivityIdle, ago(2*time.Hour)) }, ReadinessUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, JudgeSight(look(c.in)).Readiness)
		})
	}
}

func TestAQuestionWaitsUntilItIsAnswered(t *testing.T) {
	// F5: which question waits is said, and it ends by itself.
	asking := JudgeSight(look(func(in *SightInput) { in.shows("Trust this folder?\n 1. Yes\n 2. No") }))
	assert.Equal(t, AttentionFor(spec.ReasonTrustRequired), asking.Attention)
	assert.Equal(t, []string{"Trust this folder?", " 1. Yes", " 2. No"}, asking.Screen)
	assert.Equal(t, sightNow, asking.At)

	after := func(change func(*SightInput)) Sight {
		return JudgeSight(look(func(in *SightInput) {
			in.Previous, in.Now = asking, sightNow.Add(time.Second)
			change(in)
		}))
	}
	unseen := after(func(*SightInput) {})
	assert.Equal(t, asking, unseen, "nobody has looked since")
	blank := after(func(in *SightInput) { in.shows("") })
	assert.Equal(t, asking, blank, "it is being drawn")
	started := after(func(in *SightInput) { in.reports(ReportStarted, in.Now) })
	assert.Nil(t, started.Attention)
	assert.Empty(t, started.Screen)
	assert.Equal(t, Ready, started.Readiness)
	registered := after(func(in *SightInput) { in.tells(spec.ActivityIdle, in.Now) })
	assert.Nil(t, registered.Attention)
	answered := after(func(in *SightInput) { in.shows("> ") })
	assert.Nil(t, answered.Attention)
	assert.Equal(t, Ready, answered.Readiness)
	assert.Empty(t, answered.Screen)
}

func TestTheReasonOfAQuestionIsTheBestKnown(t *testing.T) {
	for name, c := range map[string]struct {
		in   func(*SightInput)
		want string
	}{
		"a hook": {func(in *SightInput) { in.reports(ReportAsked, ago(0)) }, spec.ReasonPermissionRequired},
		"the registry": {func(in *SightInput) {
			in.tells(spec.ActivityAwaitingInput, ago(0))
			in.Files.Waiting = "permission prompt"
		}, spec.ReasonPermissionRequired},
		"the registry, something else": {func(in *SightInput) {
			in.tells(spec.ActivityAwaitingInput, ago(0))
			in.Files.Waiting = "dialog open"
		}, spec.ReasonQuestion},
		"the screen before the others": {func(in *SightInput) { in.reports(ReportAsked, ago(0)); in.shows("Pick a color") }, "ColorRequired"},
		"what the screen has told": {func(in *SightInput) {
			in.Previous = Sight{At: ago(time.Second), Attention: AttentionFor("ColorRequired")}
			in.reports(ReportAsked, ago(0))
		}, "ColorRequired"},
	} {
		t.Run(name, func(t *testing.T) {
			got := JudgeSight(look(c.in))
			require.NotNil(t, got.Attention)
			assert.Equal(t, c.want, got.Attention.Reason)
			assert.NotEmpty(t, got.Attention.Message)
		})
	}
}

func TestSomethingUnknownOnTheScreenIsAQuestionAfterTheTimeout(t *testing.T) {
	after := func(d time.Duration, text string) Sight {
		return JudgeSight(look(func(in *SightInput) {
			timeout := int32(20)
			in.Class.Ready.TimeoutSeconds, in.StartedAt = &timeout, ago(d)
			in.shows(text)
		}))
	}
	assert.Nil(t, after(19*time.Second, "What's new: press any key").Attention)
	got := after(20*time.Second, "What's new: press any key")
	assert.Equal(t, AttentionFor(spec.ReasonQuestion), got.Attention)
	assert.Equal(t, NotReady, got.Readiness)
	assert.Equal(t, spec.ActivityAwaitingInput, got.Activity)
	assert.Equal(t, []string{"What's new: press any key"}, got.Screen)
	assert.Nil(t, after(time.Hour, "").Attention, "a blank screen asks nothing")
	assert.Nil(t, after(time.Hour, "> ").Attention)
}

func TestAFailureLastsUntilATurnGoesWell(t *testing.T) {
	// E2, E3: the sessions that are held together are freed by a turn that goes well.
	failed := JudgeSight(look(func(in *SightInput) {
		in.Report = LastReport{ReportFailed, ago(time.Minute), "authentication_failed"}
	}))
	want := &Failure{Reason: spec.ReasonAuthenticationFailed, Retry: spec.RetryHold, At: ago(time.Minute)}
	assert.Equal(t, want, failed.Failure)

	after := func(kind ReportKind, change ...func(*SightInput)) Sight {
		return JudgeSight(look(func(in *SightInput) {
			in.Previous, in.Now = failed, sightNow.Add(time.Minute)
			in.reports(kind, in.Now)
			for _, c := range change {
				c(in)
			}
		}))
	}
	for _, kind := range []ReportKind{ReportStarted, ReportPrompted, ReportWorking, ReportAsked, ReportEnded, ReportOther} {
		assert.Equal(t, want, after(kind).Failure, kind)
		assert.Equal(t, want, after(kind, func(in *SightInput) { in.shows("> ") }).Failure, kind)
	}
	assert.Nil(t, after(ReportDone).Failure)
	assert.Nil(t, after(ReportDone, func(in *SightInput) { in.shows("error: limit\n> ") }).Failure, "an old text still stands there")
}

func TestAFailureOfTheFilesCountsForTheLastTurn(t *testing.T) {
	limit := Failure{Reason: spec.ReasonUsageLimited, Retry: spec.RetryHold, At: ago(time.Minute), Until: sightNow.Add(time.Hour)}
	rollout := func(change func(*SightInput)) *Failure {
		return JudgeSight(look(func(in *SightInput) {
			in.Class = agentClass(spec.ReportsCodex)
			in.tells(spec.ActivityIdle, limit.At)
			in.Files.TurnAt, in.Files.Failure = limit.At, &limit
			change(in)
		})).Failure
	}
	assert.Equal(t, &limit, rollout(func(*SightInput) {}))
	assert.Equal(t, &limit, rollout(func(in *SightInput) { in.reports(ReportPrompted, ago(2*time.Minute)) }), "Codex reports no failure")
	assert.Equal(t, &limit, rollout(func(in *SightInput) { in.reports(ReportDone, ago(2*time.Minute)) }), "an earlier turn went well")
	assert.Nil(t, rollout(func(in *SightInput) { in.Files.Failure, in.Previous.Failure = nil, &limit }))
	assert.Nil(t, rollout(func(in *SightInput) { in.StartedAt = ago(time.Second) }), "that of a predecessor")
	assert.Equal(t, &limit, rollout(func(in *SightInput) {
		in.Files, in.Previous.Failure = Files{Activity: spec.ActivityWorking, ActivityAt: sightNow}, &limit
	}), "the next turn has begun, and may fail again")
	assert.Equal(t, &limit, rollout(func(in *SightInput) {
		in.Files, in.Previous.Failure = Files{Activity: spec.ActivityIdle, ActivityAt: sightNow}, &limit
		in.shows("> ")
	}), "a person has interrupted it")
}

func TestTheScreenSaysUntilWhenAPlanIsUsedUp(t *testing.T) {
	// E3: a usage limit with a stated time.
	limited := func(in *SightInput) {
		in.Report = LastReport{ReportFailed, ago(10 * time.Second), "rate_limit"}
		in.shows("error: limit, try again at 2:38 PM.\n> ")
	}
	first := JudgeSight(look(limited))
	until := sightNow.Add(38 * time.Minute)
	assert.Equal(t, &Failure{Reason: spec.ReasonUsageLimited, Retry: spec.RetryHold, Until: until, At: ago(10 * time.Second)}, first.Failure)

	// The time passes, and the text stays: it does not mean tomorrow now.
	later := func(change func(*SightInput)) Sight {
		return JudgeSight(look(func(in *SightInput) {
			limited(in)
			in.Now, in.Previous = until.Add(time.Hour), first
			change(in)
		}))
	}
	assert.Equal(t, first.Failure, later(func(*SightInput) {}).Failure)
	assert.Equal(t, first.Failure, later(func(in *SightInput) { in.shows("> ") }).Failure, "scrolled off")
	assert.Equal(t, first.Failure, later(func(in *SightInput) { in.Shown = nil }).Failure)
	assert.Equal(t, first.Failure, later(func(in *SightInput) { in.Previous = Sight{} }).Failure, "a new daemon reads it as of when it was reported")
	assert.Nil(t, later(func(in *SightInput) { in.reports(ReportDone, in.Now) }).Failure)
}

func TestTheScreenAloneTellsOfAFailure(t *testing.T) {
	with := func(reports spec.ReportsType, text string, change func(*SightInput)) *Failure {
		return JudgeSight(look(func(in *SightInput) {
			in.Class = agentClass(reports)
			in.shows(text)
			change(in)
		})).Failure
	}
	nothing := func(*SightInput) {}
	failed := &Failure{Reason: spec.ReasonTurnFailed, Retry: spec.RetryAgain, At: sightNow}
	earlier := &Failure{Reason: spec.ReasonTurnFailed, Retry: spec.RetryAgain, At: ago(time.Minute)}
	known := func(in *SightInput) {
		in.Previous = Sight{At: ago(time.Minute), Activity: spec.ActivityIdle, Failure: earlier}
	}

	assert.Equal(t, failed, with(spec.ReportsNone, "error: no\n> ", nothing))
	assert.Equal(t, earlier, with(spec.ReportsNone, "error: no\n> ", known), "it is the same")
	assert.Equal(t, earlier, with(spec.ReportsNone, "working\n> ", known), "the next turn has begun")
	assert.Equal(t, earlier, with(spec.ReportsNone, "", known))
	assert.Nil(t, with(spec.ReportsNone, "fine\n> ", known))

	for _, reports := range []spec.ReportsType{spec.ReportsClaude, spec.ReportsCodex} {
		assert.Nil(t, with(reports, "error: no\n> ", nothing), "a resumed client shows the last turn of its predecessor")
		assert.Nil(t, with(reports, "error: no\n> ", func(in *SightInput) { in.reports(ReportStarted, ago(time.Minute)) }))
		assert.Equal(t, failed, with(reports, "error: no\n> ", func(in *SightInput) { in.reports(ReportPrompted, ago(time.Minute)) }))
		assert.Equal(t, failed, with(reports, "error: no\n> ", func(in *SightInput) {
			in.Previous = Sight{At: ago(time.Second), Activity: spec.ActivityWorking}
		}), "hooks are off, and a turn was seen")
		assert.Nil(t, with(reports, "fine\n> ", known), "hooks are off, and a turn went well")
	}

	// What is known of a client to a daemon that has just started.
	assert.Equal(t, earlier, with(spec.ReportsClaude, "error: no\n> ", func(in *SightInput) { in.tells(spec.ActivityIdle, earlier.At) }), "it is of a turn of its own")
	assert.Nil(t, with(spec.ReportsClaude, "error: no\n> ", func(in *SightInput) { in.tells(spec.ActivityIdle, in.StartedAt.Add(2*time.Second)) }))
	assert.Nil(t, with(spec.ReportsClaude, "fine\n> ", func(in *SightInput) { in.tells(spec.ActivityIdle, earlier.At) }))
}

func TestTheConversationIsWhatTheFilesTellNow(t *testing.T) {
	assert.Equal(t, "b", JudgeSight(look(func(in *SightInput) {
		in.Files.Conversation, in.Previous.Conversation = "b", "a"
	})).Conversation)
	assert.Empty(t, JudgeSight(look(func(in *SightInput) { in.Previous.Conversation = "a" })).Conversation)
}

// A sight is of what a client shows. Whether it lives is judged elsewhere, by its
// process alone.
func TestNothingThatASightGoesBySaysThatAClientLives(t *testing.T) {
	var look func(path string, typ reflect.Type)
	look = func(path string, typ reflect.Type) {
		switch typ {
		case reflect.TypeFor[Presence](), reflect.TypeFor[Liveness](), reflect.TypeFor[Process](), reflect.TypeFor[Pane](), reflect.TypeFor[Exit]():
			t.Errorf("%s is of liveness", path)
		}
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice:
			look(path, typ.Elem())
		case reflect.Struct:
			if typ == reflect.TypeFor[time.Time]() {
				return
			}
			for i := range typ.NumField() {
				look(path+"."+typ.Field(i).Name, typ.Field(i).Type)
			}
		}
	}
	look("SightInput", reflect.TypeFor[SightInput]())
	look("Sight", reflect.TypeFor[Sight]())
}

// anyInput is any evidence, contradictions included.
func anyInput(r *rand.Rand) SightInput {
	pick := func(texts ...string) string { return texts[r.IntN(len(texts))] }
	when := func() time.Time { return ago(time.Duration(r.IntN(int(2*time.Hour/time.Second))) * time.Second) }
	activities := []spec.Activity{"", spec.ActivityUnknown, spec.ActivityWorking, spec.ActivityAwaitingInput, spec.ActivityIdle}
	kinds := []ReportKind{"", ReportStarted, ReportPrompted, ReportWorking, ReportAsked, ReportDone, ReportFailed, ReportEnded, ReportOther}
	reports := []spec.ReportsType{spec.ReportsNone, spec.ReportsClaude, spec.ReportsCodex, ""}
	return look(func(in *SightInput) {
		in.Class = agentClass(reports[r.IntN(len(reports))])
		in.StartedAt, in.WasReady = when(), r.IntN(2) == 0
		if kind := kinds[r.IntN(len(kinds))]; kind != "" {
			in.Report = LastReport{kind, when(), pick("", "rate_limit", "authentication_failed")}
		}
		in.tells(activities[r.IntN(len(activities))], when())
		if r.IntN(2) == 0 {
			in.Files.TurnAt = when()
			if r.IntN(2) == 0 {
				in.Files.Failure = &Failure{Reason: spec.ReasonRateLimited, Retry: spec.RetryAgain, At: in.Files.TurnAt}
			}
		}
		if r.IntN(4) > 0 {
			in.shows(pick("", "loading", "> ", "working\n> ", "Pick a color", "error: no\n> ", "error: limit, try again at 3pm.\n> "))
		}
	})
}

func TestWhateverTheEvidenceASightHoldsTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 11))
	for i := range 20_000 {
		in := anyInput(r)
		if i%2 == 0 {
			earlier := anyInput(r)
			earlier.Class, earlier.Now, earlier.StartedAt = in.Class, ago(time.Duration(r.IntN(3600))*time.Second), in.StartedAt
			in.Previous = JudgeSight(earlier)
		}
		got := JudgeSight(in)
		said := fmt.Sprintf("%+v\n%+v", in, got)
		require.Contains(t, []spec.Activity{spec.ActivityUnknown, spec.ActivityWorking, spec.ActivityAwaitingInput, spec.ActivityIdle}, got.Activity, said)
		require.Equal(t, got.Attention != nil, got.Activity == spec.ActivityAwaitingInput, said)
		require.LessOrEqual(t, len(got.Screen), 10, said)
		if got.Attention != nil {
			require.Equal(t, NotReady, got.Readiness, said)
		} else {
			require.Empty(t, got.Screen, said)
		}
		if in.WasReady && got.Attention == nil {
			require.Equal(t, Ready, got.Readiness, said)
		}

		again := in
		again.Previous = got
		require.Equal(t, got, JudgeSight(again), "the same evidence once more\n%s", said)
	}
}

// What the built-in classes make of real screens, without a hook or a file: it is all
// that there is when a person has refused the hooks.
func TestARealScreenAloneTellsWhatAClientDoes(t *testing.T) {
	for name, want := range map[string]Sight{
		"claude-folder-trust":      {Readiness: NotReady, Activity: spec.ActivityAwaitingInput, Attention: AttentionFor(spec.ReasonTrustRequired)},
		"claude-custom-api-key":    {Readiness: NotReady, Activity: spec.ActivityAwaitingInput, Attention: AttentionFor(spec.ReasonLoginRequired)},
		"claude-permission-dialog": {Readiness: NotReady, Activity: spec.ActivityAwaitingInput, Attention: AttentionFor(spec.ReasonPermissionRequired)},
		"claude-working-hang":      {Readiness: Ready, Activity: spec.ActivityWorking},
		"codex-hooks-need-review":  {Readiness: NotReady, Activity: spec.ActivityAwaitingInput, Attention: AttentionFor(spec.ReasonHookTrustRequired)},
		"codex-idle-fresh":         {Readiness: Ready, Activity: spec.ActivityIdle},
		"codex-working":            {Readiness: Ready, Activity: spec.ActivityWorking},
		"codex-usage-limit": {Readiness: Ready, Activity: spec.ActivityIdle, Failure: &Failure{
			Reason: spec.ReasonUsageLimited, Retry: spec.RetryHold, At: sightNow,
			Until: time.Date(2026, 11, 29, 23, 38, 0, 0, time.UTC),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../spec/testdata/screens/" + name + ".txt")
			require.NoError(t, err)
			kind, _, _ := strings.Cut(name, "-")
			got := JudgeSight(look(func(in *SightInput) {
				in.Class = builtIn(t, kind)
				in.StartedAt = ago(time.Second)
				in.Previous.Activity = spec.ActivityWorking
				in.shows(string(text))
			}))
			if want.Attention != nil {
				assert.NotEmpty(t, got.Screen)
			}
			want.At, want.Screen = sightNow, got.Screen
			assert.Equal(t, want, got)
		})
	}
}

func builtIn(t *testing.T, name string) *spec.ClientClassSpec {
	for _, class := range spec.BuiltInClasses() {
		if class.Name == name {
			return &class.Spec
		}
	}
	t.Fatalf("there is no built-in class %s", name)
	return nil
}
