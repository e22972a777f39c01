// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func TestDefaultsAreThoseOfTheDocumentation(t *testing.T) {
	s := SessionSpec{Client: ClientSpec{Command: []string{"sh"}}}
	SetDefaults(&s)
	assert.Equal(t, SessionSpec{
		ClientClassName:               "exec",
		Client:                        ClientSpec{Command: []string{"sh"}, ShellMode: "Interactive"},
		Workspace:                     WorkspaceSpec{Type: "Directory"},
		ProvisioningPolicy:            "Eager",
		RestartPolicy:                 "Always",
		RecoveryPolicy:                "Resume",
		UpdateStrategy:                UpdateStrategy{Type: "WhenIdle"},
		StartupTimeoutSeconds:         ptr.To[int32](60),
		Resources:                     ResourcesSpec{OnUnsupported: "Fail"},
		TerminationGracePeriodSeconds: ptr.To[int32](10),
		Terminal:                      TerminalSpec{Columns: 200, Rows: 50, HistoryLimit: ptr.To[int32](50_000)},
		Conversation:                  ConversationSpec{MissingPolicy: "StartFresh"},
		DeletionPolicy:                "Delete",
	}, s)
}

func TestDefaultsChangeNothingTheSecondTime(t *testing.T) {
	for name, s := range map[string]SessionSpec{
		"empty":      {},
		"everything": DecodeFile("f", []byte(everyField)).Items[0].Session.Spec,
		"zeros":      {TerminationGracePeriodSeconds: ptr.To[int32](0), Terminal: TerminalSpec{HistoryLimit: ptr.To[int32](0)}},
	} {
		t.Run(name, func(t *testing.T) {
			SetDefaults(&s)
			again := *s.DeepCopy()
			SetDefaults(&again)
			assert.Equal(t, s, again)
		})
	}
}

func TestDefaultsKeepWhatAPersonWrote(t *testing.T) {
	want := DecodeFile("f", []byte(everyField)).Items[0].Session.Spec
	assert.EqualValues(t, 0, *want.TerminationGracePeriodSeconds)
	assert.Equal(t, DeletionOrphan, want.DeletionPolicy)
	s := SessionSpec{ClientClassName: "claude", Client: ClientSpec{Command: []string{"sh"}}}
	SetDefaults(&s)
	assert.Equal(t, "claude", s.ClientClassName)
}

func TestClassIsNotGuessedWithoutACommand(t *testing.T) {
	var s SessionSpec
	SetDefaults(&s)
	assert.Empty(t, s.ClientClassName)
}

func TestOnlyWhatAClientWasStartedFromIsALaunchDifference(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*SessionSpec)
		want   []string
	}{
		"nothing":                       {func(*SessionSpec) {}, nil},
		"class":                         {func(s *SessionSpec) { s.ClientClassName = "x" }, []string{"spec.clientClassName"}},
		"command":                       {func(s *SessionSpec) { s.Client.Command = []string{"npm", "test"} }, []string{"spec.client.command"}},
		"args":                          {func(s *SessionSpec) { s.Client.Args = nil }, []string{"spec.client.args"}},
		"env":                           {func(s *SessionSpec) { s.Client.Env[0].Value = "info" }, []string{"spec.client.env"}},
		"order of env":                  {func(s *SessionSpec) { s.Client.Env[0], s.Client.Env[1] = s.Client.Env[1], s.Client.Env[0] }, []string{"spec.client.env"}},
		"file of env":                   {func(s *SessionSpec) { s.Client.Env[1].ValueFrom.FileRef.Path = "/other" }, []string{"spec.client.env"}},
		"envFrom":                       {func(s *SessionSpec) { s.Client.EnvFrom[0].FileRef.Optional = false }, []string{"spec.client.envFrom"}},
		"shell mode":                    {func(s *SessionSpec) { s.Client.ShellMode = ShellNone }, []string{"spec.client.shellMode"}},
		"directory":                     {func(s *SessionSpec) { s.Workspace.Directory = "/other" }, []string{"spec.workspace.directory"}},
		"memory limit":                  {func(s *SessionSpec) { s.Resources.Limits.Memory = ptr.To(resource.MustParse("1Gi")) }, []string{"spec.resources.limits"}},
		"no cpu limit":                  {func(s *SessionSpec) { s.Resources.Limits.CPU = nil }, []string{"spec.resources.limits"}},
		"the same limit in other words": {func(s *SessionSpec) { s.Resources.Limits.Memory = ptr.To(resource.MustParse("2048Mi")) }, nil},
		"what follows when limits are unsupported": {func(s *SessionSpec) { s.Resources.OnUnsupported = UnsupportedFail }, nil},
		"start args": {func(s *SessionSpec) { s.Client.StartArgs = []string{"--other"} }, nil},
		"what follows when a conversation is missing": {func(s *SessionSpec) { s.Conversation.MissingPolicy = MissingStartFresh }, nil},
		"several": {func(s *SessionSpec) { s.Workspace.Directory, s.Client.Command = "/other", []string{"a"} },
			[]string{"spec.client.command", "spec.workspace.directory"}},

		"policies": {func(s *SessionSpec) {
			s.RestartPolicy, s.RecoveryPolicy, s.Suspend, s.DeletionPolicy = RestartNever, RecoveryResume, false, DeletionDelete
			s.UpdateStrategy.Type, s.StartupTimeoutSeconds, s.TerminationGracePeriodSeconds = UpdateOnRestart, nil, nil
		}, nil},
		"the liveness probe":                {func(s *SessionSpec) { s.LivenessProbe.Exec.Command = []string{"true"} }, nil},
		"no liveness probe":                 {func(s *SessionSpec) { s.LivenessProbe = nil }, nil},
		"when there is a client":            {func(s *SessionSpec) { s.ProvisioningPolicy = ProvisioningEager }, nil},
		"first turn of a conversation":      {func(s *SessionSpec) { s.InitialPrompt = "something else" }, nil},
		"no first turn of any conversation": {func(s *SessionSpec) { s.InitialPrompt = "" }, nil},
		"terminal":                          {func(s *SessionSpec) { s.Terminal = TerminalSpec{Columns: 99} }, nil},
		"workspace type":                    {func(s *SessionSpec) { s.Workspace.Type = WorkspaceDirectory }, nil},
		"where args begin": {func(s *SessionSpec) {
			s.Client.Command, s.Client.Args = append(s.Client.Command, s.Client.Args[0]), s.Client.Args[1:]
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			launched := DecodeFile("f", []byte(everyField)).Items[0].Session.Spec
			wanted := *launched.DeepCopy()
			c.change(&wanted)
			assert.Equal(t, c.want, LaunchDiff(&launched, &wanted))
			assert.Equal(t, c.want, LaunchDiff(&wanted, &launched))
		})
	}
}

// An id is taken up once: to take it out of the document changes nothing.
func TestAdoptedConversationIsALaunchDifferenceAndItsRemovalIsNone(t *testing.T) {
	none, a, b := SessionSpec{}, SessionSpec{Conversation: ConversationSpec{ID: "a"}}, SessionSpec{Conversation: ConversationSpec{ID: "b"}}
	assert.Equal(t, []string{"spec.conversation.id"}, LaunchDiff(&none, &a))
	assert.Equal(t, []string{"spec.conversation.id"}, LaunchDiff(&a, &b))
	assert.Empty(t, LaunchDiff(&a, &none))
	assert.Empty(t, LaunchDiff(&a, &a))
}

func TestAnotherRevisionOfAClassIsALaunchDifference(t *testing.T) {
	declared := ResolveClass(ClassClaude, nil).DeepCopy()
	assert.Empty(t, ClassDiff("", ClassRevision(declared)), "a new version of muxlet restarts nobody")
	declared.Status.BuiltIn = false
	first := ClassRevision(declared)
	assert.Equal(t, []string{"the client class"}, ClassDiff("", first), "a declared class takes the place of a built-in one")
	declared.Spec.Attention, declared.Spec.Stop.Signal = nil, "SIGINT"
	assert.Empty(t, ClassDiff(first, ClassRevision(declared)), "what recognises and stops a client does not start it")
	declared.Spec.Submit = ClassSubmit{Method: SubmitArgument, Arguments: []string{"-p", "$(PROMPT)"}, Key: "C-j"}
	assert.Empty(t, ClassDiff(first, ClassRevision(declared)), "how a client is given a turn is asked at the next turn")
	declared.Spec.Resume.Command = append(declared.Spec.Resume.Command, "--verbose")
	assert.Equal(t, []string{"the client class"}, ClassDiff(first, ClassRevision(declared)))
}

func TestDefaultsOfAClassAreThoseOfTheDocumentation(t *testing.T) {
	c := ClientClassSpec{Failures: []FailureRule{{}, {Retry: RetryHold}}}
	SetClassDefaults(&c)
	want := ClientClassSpec{
		Conversation: ClassConversation{Identity: "None"}, Reports: "None",
		Ready:    ClassReady{TimeoutSeconds: ptr.To[int32](30)},
		Failures: []FailureRule{{Retry: "Again"}, {Retry: "Hold"}},
		Submit: ClassSubmit{
			Method: "Paste", SettleMilliseconds: ptr.To[int32](300), Key: "Enter", Confirm: "Screen", WhileWorking: "Wait",
		},
		Stop: ClassStop{Signal: "SIGTERM"},
	}
	assert.Equal(t, want, c)
	SetClassDefaults(&c)
	assert.Equal(t, want, c)
	typed := ClientClassSpec{Stop: ClassStop{Keys: []string{"C-c"}}}
	SetClassDefaults(&typed)
	assert.Empty(t, typed.Stop.Signal, "keys are typed instead")
}

func TestDefaultsOfSubmitFollowTheReportsAndTheMethod(t *testing.T) {
	for _, reports := range []ReportsType{ReportsClaude, ReportsCodex} {
		c := ClientClassSpec{Reports: reports}
		SetClassDefaults(&c)
		assert.Equal(t, ConfirmReport, c.Submit.Confirm, reports)
	}
	kept := ClientClassSpec{Reports: ReportsClaude, Submit: ClassSubmit{
		Method: SubmitQueue, SettleMilliseconds: ptr.To[int32](0), Key: "C-m", Confirm: ConfirmScreen, WhileWorking: WhileWorkingQueue,
	}}
	want := *kept.Submit.DeepCopy()
	SetClassDefaults(&kept)
	assert.Equal(t, want, kept.Submit, "what a person wrote stays")
	for _, c := range []struct{ given, want []string }{{nil, []string{"$(PROMPT)"}}, {[]string{"-p", "$(PROMPT)"}, []string{"-p", "$(PROMPT)"}}} {
		class := ClientClassSpec{Submit: ClassSubmit{Method: SubmitArgument, Arguments: c.given}}
		SetClassDefaults(&class)
		assert.Equal(t, c.want, class.Submit.Arguments)
		again := *class.DeepCopy()
		SetClassDefaults(&again)
		assert.Equal(t, class, again)
	}
}

func TestWayInWhichABuiltInClassTakesATurnIsSaidInFull(t *testing.T) {
	assert.Equal(t, ClassSubmit{
		Method: SubmitPaste, SettleMilliseconds: ptr.To[int32](300), Key: "Enter", Confirm: ConfirmScreen, WhileWorking: WhileWorkingWait,
	}, ResolveClass(ClassExec, nil).Spec.Submit)
	for _, name := range []string{ClassClaude, ClassCodex} {
		assert.Equal(t, ConfirmReport, ResolveClass(name, nil).Spec.Submit.Confirm, name)
	}
}

func TestDefaultsAndEmptyListsAreNoLaunchDifference(t *testing.T) {
	a := SessionSpec{Client: ClientSpec{Command: []string{"sh"}}}
	b := SessionSpec{
		ClientClassName: ClassExec,
		Client: ClientSpec{
			Command: []string{"sh"}, Args: []string{}, Env: []EnvVar{}, EnvFrom: []EnvFromSource{}, ShellMode: ShellInteractive,
		},
	}
	assert.Empty(t, LaunchDiff(&a, &b))
	assert.Empty(t, a.ClientClassName, "the arguments stay as they are")
	assert.Nil(t, a.TerminationGracePeriodSeconds)
}

func TestCopyOfASessionSharesNothing(t *testing.T) {
	s := DecodeFile("f", []byte(everyField)).Items[0].Session
	before := s.DeepCopy()
	changed := s.DeepCopy()
	changed.Labels["repo"] = "x"
	changed.Spec.Client.Command[0] = "x"
	changed.Spec.Client.Env[1].ValueFrom.FileRef.Path = "x"
	*changed.Spec.StartupTimeoutSeconds = 9
	*changed.Spec.LivenessProbe.PeriodSeconds, changed.Spec.LivenessProbe.Exec.Command[0] = 9, "x"
	require.Equal(t, before, s)
	assert.True(t, strings.HasPrefix(before.Spec.Client.Command[0], "npm"))
}
