// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"
)

// goodClass is a document of a class.
func goodClass(name string) string {
	return `apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata:
  name: ` + name + `
spec:
  start: {command: [agent, --id, $(CONVERSATION_ID)]}
  resume: {command: [agent, --resume, $(CONVERSATION_ID)]}
  conversation: {identity: Assigned}
`
}

const everyFieldOfAClass = `apiVersion: muxlet.dev/v1alpha1
kind: ClientClass
metadata: {name: all, labels: {a: b}}
spec:
  start: {command: [agent, --id, $(CONVERSATION_ID)]}
  resume: {command: [agent, --resume, $(CONVERSATION_ID)]}
  configDirectory: {env: AGENT_HOME, default: $(HOME)/.agent}
  conversation:
    identity: Assigned
    transcript: $(CONFIG_DIRECTORY)/*/$(CONVERSATION_ID).json
    transcriptPattern: '"user"'
    notFoundPattern: '^no such conversation'
  reports: ClaudeHooks
  ready: {pattern: "^> ", timeoutSeconds: 5}
  working: {pattern: thinking}
  attention: [{pattern: "^Trust", reason: TrustRequired}]
  failures: [{pattern: 'limit until (?P<until>\S+)', reason: UsageLimited, retry: Hold}]
  stop: {keys: [C-c, C-c]}
  credentials: {env: [AGENT_KEY]}
  env: [{name: A, value: $(HOME)}, {name: B, valueFrom: {fileRef: {path: ~/b}}}]
  engine: {executable: agent-native}
  unsetEnv: [AGENT_*, CLAUDECODE]
  submit:
    method: Queue
    settleMilliseconds: 0
    key: C-m
    confirm: Screen
    whileWorking: Queue
    composer: {pattern: '^> (?P<text>.*)$', pasted: '\[Pasted \d+'}
    command: [agent, queue, $(CONVERSATION_ID), $(PROMPT)]
`

func TestEveryFieldOfAClassArrivesWhereItBelongs(t *testing.T) {
	docs := DecodeFile("f", []byte(everyFieldOfAClass))
	require.Empty(t, texts(docs))
	require.Len(t, docs.Items, 1)
	assert.Equal(t, KindClientClass, docs.Items[0].Kind)
	assert.Nil(t, docs.Items[0].Session)
	c := docs.Items[0].Class
	assert.Empty(t, c.Namespace, "it is cluster-scoped")
	assert.Equal(t, map[string]string{"a": "b"}, c.Labels)
	assert.Equal(t, ClientClassSpec{
		Start:           ClassCommand{Command: []string{"agent", "--id", "$(CONVERSATION_ID)"}},
		Resume:          ClassCommand{Command: []string{"agent", "--resume", "$(CONVERSATION_ID)"}},
		ConfigDirectory: ClassDirectory{Env: "AGENT_HOME", Default: "$(HOME)/.agent"},
		Conversation: ClassConversation{
			Identity: IdentityAssigned, Transcript: "$(CONFIG_DIRECTORY)/*/$(CONVERSATION_ID).json",
			TranscriptPattern: `"user"`, NotFoundPattern: "^no such conversation",
		},
		Reports:     ReportsClaude,
		Ready:       ClassReady{Pattern: "^> ", TimeoutSeconds: ptr.To[int32](5)},
		Working:     ClassPattern{Pattern: "thinking"},
		Attention:   []AttentionRule{{Pattern: "^Trust", Reason: ReasonTrustRequired}},
		Failures:    []FailureRule{{Pattern: `limit until (?P<until>\S+)`, Reason: ReasonUsageLimited, Retry: RetryHold}},
		Engine:      ClassEngine{Executable: "agent-native"},
		Stop:        ClassStop{Keys: []string{"C-c", "C-c"}},
		Credentials: ClassCredentials{Env: []string{"AGENT_KEY"}},
		Env: []EnvVar{
			{Name: "A", Value: "$(HOME)"},
			{Name: "B", ValueFrom: &EnvVarSource{FileRef: &FileRef{Path: "~/b"}}},
		},
		UnsetEnv: []string{"AGENT_*", "CLAUDECODE"},
		Submit: ClassSubmit{
			Method: SubmitQueue, SettleMilliseconds: ptr.To[int32](0), Key: "C-m", Confirm: ConfirmScreen, WhileWorking: WhileWorkingQueue,
			Composer: ClassComposer{Pattern: "^> (?P<text>.*)$", Pasted: `\[Pasted \d+`},
			Command:  []string{"agent", "queue", "$(CONVERSATION_ID)", "$(PROMPT)"},
		},
	}, c.Spec)
}

func TestBothKindsLiveInOneFile(t *testing.T) {
	docs := DecodeFile("f", []byte(good("a")+"---\n"+goodClass("b")+"---\n"+good("c")))
	require.Empty(t, texts(docs))
	require.Len(t, docs.Items, 3)
	assert.NotNil(t, docs.Items[1].Class)
	assert.Equal(t, []string{"a", "c"}, docs.Names, "a class guards no session")
	assert.Equal(t, []string{"b"}, docs.ClassNames)
}

// Of what does not parse it is not known which kind it may be.
func TestNamesOfADamagedDocumentAreThoseOfBothKinds(t *testing.T) {
	for name, text := range map[string]string{
		"no YAML":     strings.Replace(goodClass("b"), "spec:", "spec: [", 1),
		"no metadata": strings.Replace(goodClass("b"), "metadata", "metdata", 1),
		"NUL":         goodClass("b") + "\x00",
	} {
		t.Run(name, func(t *testing.T) {
			docs := DecodeFile("f", []byte(text))
			assert.Contains(t, docs.Names, "b")
			assert.Contains(t, docs.ClassNames, "b")
		})
	}
	docs := DecodeFile("f", []byte(strings.Replace(goodClass("b"), "ClientClass", "ClientClas", 1)))
	assert.Empty(t, docs.Names)
	assert.Equal(t, []string{"b"}, docs.ClassNames, "what is most likely meant")
}

func TestStrictDecodingOfAClassSaysWhatIsWrongAndWhatIsRight(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"near kind":     {"kind: ClientClass", "kind: ClientClas", `f:2:7: kind: "ClientClas" is not known (did you mean "ClientClass"?)`},
		"other kind":    {"kind: ClientClass", "kind: Deployment", `f:2:7: kind: "Deployment" is not known; it must be Session or ClientClass`},
		"other version": {"muxlet.dev/v1alpha1", "apps/v1", `f:1:13: apiVersion: "apps/v1" is not known; the only version of ClientClass is muxlet.dev/v1alpha1`},
		"unknown field": {"attention:", "atention:", `f:16:3: spec.atention: unknown field (did you mean "attention"?)`},
		"in a rule":     {"reason: TrustRequired", "raeson: TrustRequired", `f:16:35: spec.attention[0].raeson: unknown field (did you mean "reason"?)`},
		"given twice":   {"working:", "reports:", `f:15:3: spec.reports: is given twice; the first is in line 13`},
		"a command":     {"[agent, --id, $(CONVERSATION_ID)]", "agent --id", `f:5:20: spec.start.command: must be a list, one word each: ["agent", "--id"]`},
		"secret":        {"value: $(HOME)", "value: 4711", `f:20:26: spec.env[0].value: must be text, but YAML reads this as a number; put it in quotes`},
	} {
		t.Run(name, func(t *testing.T) {
			docs := DecodeFile("f", []byte(strings.Replace(everyFieldOfAClass, c.old, c.new, 1)))
			assert.Contains(t, texts(docs), c.want)
			assert.Nil(t, docs.Items[0].Class)
		})
	}
}

// noPrompt is why $(PROMPT) is refused where no prompt is.
const noPrompt = "$(PROMPT) is not known there; a client that begins with a prompt is given it by submit: {method: Argument, arguments: [$(PROMPT)]}"

func TestInvalidClassesAreRefusedWithFieldAndReason(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ClientClass)
		want   string
	}{
		"no name":           {func(c *ClientClass) { c.Name = "" }, "metadata.name: is required: the client class needs a name, such as gemini"},
		"name":              {func(c *ClientClass) { c.Name = "My" }, `metadata.name: "My" cannot be a client class's name: use at most 63 of a-z, 0-9 and "-", with a letter or digit at both ends (did you mean "my"?)`},
		"namespace":         {func(c *ClientClass) { c.Namespace = "default" }, "metadata.namespace: a client class belongs to no namespace; leave it out"},
		"label":             {func(c *ClientClass) { c.Labels = map[string]string{"-a": ""} }, `metadata.labels[-a]: "-a" cannot be a key: use at most 63 letters, digits, "-", "_" and ".", after a prefix such as example.com/ if you like`},
		"empty program":     {func(c *ClientClass) { c.Spec.Start.Command[0] = "" }, "spec.start.command[0]: the program's name is empty"},
		"NUL":               {func(c *ClientClass) { c.Spec.Resume.Command[1] = "\x00" }, "spec.resume.command[1]: a word cannot have a NUL byte"},
		"no start":          {func(c *ClientClass) { c.Spec.Start.Command = nil }, "spec.start.command: is required: a client whose conversation.identity is Assigned is told its id by it, such as [gemini, --session-id, $(CONVERSATION_ID)]"},
		"start without id":  {func(c *ClientClass) { c.Spec.Start.Command = []string{"agent"} }, "spec.start.command: without $(CONVERSATION_ID) in it the client does not know which conversation is meant"},
		"no resume":         {func(c *ClientClass) { c.Spec.Resume.Command = nil }, "spec.resume.command: is required: it brings a client back with its conversation, such as [gemini, --resume, $(CONVERSATION_ID)]"},
		"resume without id": {func(c *ClientClass) { c.Spec.Resume.Command = []string{"agent", "--last"} }, "spec.resume.command: without $(CONVERSATION_ID) in it the client does not know which conversation is meant"},
		"escaped id":        {func(c *ClientClass) { c.Spec.Resume.Command = []string{"agent", "$$(CONVERSATION_ID)"} }, "spec.resume.command: without $(CONVERSATION_ID) in it the client does not know which conversation is meant"},
		"nothing to resume": {func(c *ClientClass) { c.Spec.Conversation.Identity = IdentityNone }, "spec.resume.command: there is nothing to resume while conversation.identity is None; make that Assigned or Reported, or remove it"},
		"identity":          {func(c *ClientClass) { c.Spec.Conversation.Identity = "Asigned" }, `spec.conversation.identity: "Asigned" is not one of Assigned, Reported, None (did you mean "Assigned"?)`},
		"reports":           {func(c *ClientClass) { c.Spec.Reports = "Hooks" }, `spec.reports: "Hooks" is not one of ClaudeHooks, CodexHooks, None`},
		"long command": {func(c *ClientClass) {
			c.Spec.Start.Command = append(c.Spec.Start.Command, make([]string, maxArgvBytes)...)
		}, "spec.start.command: command and env have 1048619 bytes in all; the system takes at most 1048576"},
		"config variable":       {func(c *ClientClass) { c.Spec.ConfigDirectory.Env = "A-B" }, `spec.configDirectory.env: "A-B" cannot be the name of a variable: use letters, digits and _, no digit first (did you mean "A_B"?)`},
		"config directory":      {func(c *ClientClass) { c.Spec.ConfigDirectory.Default = "~/.agent" }, `spec.configDirectory.default: "~/.agent" is relative; it must begin with / or with a variable such as $(HOME) (did you mean "$(HOME)/.agent"?)`},
		"no config":             {func(c *ClientClass) { c.Spec.ConfigDirectory = ClassDirectory{} }, "spec.conversation.transcript: $(CONFIG_DIRECTORY) needs spec.configDirectory"},
		"relative file":         {func(c *ClientClass) { c.Spec.Conversation.Transcript = "x/$(CONVERSATION_ID)" }, `spec.conversation.transcript: "x/$(CONVERSATION_ID)" is relative; it must begin with / or with a variable such as $(HOME) (did you mean "$(HOME)/x/$(CONVERSATION_ID)"?)`},
		"unknown variable":      {func(c *ClientClass) { c.Spec.Conversation.Transcript = "/$(CONVERSATION_ID)/$(SESSION)" }, `spec.conversation.transcript: $(SESSION) is not known there; use $(CONVERSATION_ID), $(CONFIG_DIRECTORY), $(HOME), $(WORKSPACE), $(SESSION_NAME) (did you mean "SESSION_NAME"?)`},
		"hook in a file":        {func(c *ClientClass) { c.Spec.Conversation.Transcript = "/$(CONVERSATION_ID)/$(MUXLET_HOOK)" }, `spec.conversation.transcript: $(MUXLET_HOOK) is not known there; use $(CONVERSATION_ID), $(CONFIG_DIRECTORY), $(HOME), $(WORKSPACE), $(SESSION_NAME)`},
		"any conversation":      {func(c *ClientClass) { c.Spec.Conversation.Transcript = "$(HOME)/*.json" }, "spec.conversation.transcript: without $(CONVERSATION_ID) in it the file of another conversation would be taken for evidence"},
		"glob":                  {func(c *ClientClass) { c.Spec.Conversation.Transcript = "/[/$(CONVERSATION_ID)" }, `spec.conversation.transcript: "/[/$(CONVERSATION_ID)" is not a glob: a bracket is not closed`},
		"pattern of no file":    {func(c *ClientClass) { c.Spec.Conversation.Transcript = "" }, "spec.conversation.transcriptPattern: it is looked for in the transcript, which is not given"},
		"pattern":               {func(c *ClientClass) { c.Spec.Ready.Pattern = "(" }, "spec.ready.pattern: is no regular expression (RE2): missing closing ): `(`"},
		"not RE2":               {func(c *ClientClass) { c.Spec.Conversation.NotFoundPattern = "a(?!b)" }, "spec.conversation.notFoundPattern: is no regular expression (RE2): invalid or unsupported Perl syntax: `(?!`"},
		"pattern of a rule":     {func(c *ClientClass) { c.Spec.Attention[0].Pattern = "*" }, "spec.attention[0].pattern: is no regular expression (RE2): missing argument to repetition operator: `*`"},
		"matches always":        {func(c *ClientClass) { c.Spec.Working.Pattern = "x*" }, `spec.working.pattern: "x*" matches an empty screen, and so says nothing`},
		"no pattern":            {func(c *ClientClass) { c.Spec.Failures[0].Pattern = "" }, "spec.failures[0].pattern: is required: it is what the screen shows, a regular expression"},
		"no reason":             {func(c *ClientClass) { c.Spec.Attention[0].Reason = "" }, "spec.attention[0].reason: is required: it is one word in CamelCase, such as TrustRequired"},
		"reason":                {func(c *ClientClass) { c.Spec.Failures[0].Reason = "usage limit" }, `spec.failures[0].reason: "usage limit" cannot be a reason: use one word in CamelCase of at most 63 letters and digits, such as TrustRequired`},
		"retry":                 {func(c *ClientClass) { c.Spec.Failures[0].Retry = "hold" }, `spec.failures[0].retry: "hold" is not one of Again, Hold (did you mean "Hold"?)`},
		"ready in time":         {func(c *ClientClass) { c.Spec.Ready.TimeoutSeconds = ptr.To[int32](0) }, "spec.ready.timeoutSeconds: 0 is not between 1 and 3600"},
		"engine's path":         {func(c *ClientClass) { c.Spec.Engine.Executable = "/usr/bin/agent" }, `spec.engine.executable: "/usr/bin/agent" is a path; the name of the file is compared alone (did you mean "agent"?)`},
		"engine's folder":       {func(c *ClientClass) { c.Spec.Engine.Executable = "agent/" }, `spec.engine.executable: "agent/" is a path; the name of the file is compared alone (did you mean "agent"?)`},
		"engine":                {func(c *ClientClass) { c.Spec.Engine.Executable = ".." }, "spec.engine.executable: is not the name of a file; write that of the program, such as codex"},
		"signal and keys":       {func(c *ClientClass) { c.Spec.Stop.Signal = "SIGINT" }, "spec.stop: signal and keys are both given; keep one of them"},
		"signal":                {func(c *ClientClass) { c.Spec.Stop = ClassStop{Signal: "SIGKILL"} }, `spec.stop.signal: "SIGKILL" is not one of SIGTERM, SIGINT, SIGHUP, SIGQUIT`},
		"key":                   {func(c *ClientClass) { c.Spec.Stop.Keys[1] = "C-c Enter" }, `spec.stop.keys[1]: "C-c Enter" is no key; write it as tmux does, such as C-c, Escape or Enter`},
		"too many keys":         {func(c *ClientClass) { c.Spec.Stop.Keys = strings.Split(strings.Repeat("x", 17), "") }, "spec.stop.keys: there are 17 keys; at most 16 are typed"},
		"credential":            {func(c *ClientClass) { c.Spec.Credentials.Env[0] = "" }, "spec.credentials.env[0]: is required: the variable needs a name"},
		"env":                   {func(c *ClientClass) { c.Spec.Env[1].Name = "A" }, `spec.env[1].name: "A" is set twice; the first is spec.env[0]`},
		"unset all":             {func(c *ClientClass) { c.Spec.UnsetEnv[0] = "*" }, `spec.unsetEnv[0]: "*" alone would leave nothing of the environment; write how the names begin, such as MYAGENT_*`},
		"unset inside":          {func(c *ClientClass) { c.Spec.UnsetEnv[0] = "A*B" }, `spec.unsetEnv[0]: "A*B" cannot be the name of a variable: use letters, digits and _, no digit first (did you mean "A_B"?)`},
		"prompt in the start":   {func(c *ClientClass) { c.Spec.Start.Command = append(c.Spec.Start.Command, "-p=$(PROMPT)") }, "spec.start.command: " + noPrompt},
		"prompt in the resume":  {func(c *ClientClass) { c.Spec.Resume.Command = append(c.Spec.Resume.Command, "$(PROMPT)") }, "spec.resume.command: " + noPrompt},
		"prompt in a directory": {func(c *ClientClass) { c.Spec.ConfigDirectory.Default = "/$(PROMPT)" }, "spec.configDirectory.default: " + noPrompt},
		"prompt in a variable":  {func(c *ClientClass) { c.Spec.Env[0].Value = "$(PROMPT)" }, "spec.env[0].value: " + noPrompt},
		"unset reserved":        {func(c *ClientClass) { c.Spec.UnsetEnv[0] = "MUXLET_*" }, `spec.unsetEnv[0]: "MUXLET_" is set by muxlet or tmux and cannot be chosen`},
	} {
		t.Run(name, func(t *testing.T) {
			class := DecodeFile("f", []byte(everyFieldOfAClass)).Items[0].Class
			c.change(class)
			var got []string
			for _, p := range new(Tree).Problems(ValidateClass(class)) {
				got = append(got, strings.TrimPrefix(p.Error(), ": "))
			}
			assert.Equal(t, []string{c.want}, got)
		})
	}
}

func TestClassesOfEveryIdentityAreAccepted(t *testing.T) {
	for name, line := range map[string]string{
		"none at all":                            "spec: {}",
		"none":                                   "spec: {start: {command: [top]}}",
		"reported":                               "spec: {start: {command: [a]}, resume: {command: [a, $(CONVERSATION_ID)]}, conversation: {identity: Reported}}",
		"reported, of the session's own command": "spec: {resume: {command: [a, $(CONVERSATION_ID)]}, conversation: {identity: Reported}}",
		"id within a word":                       `spec: {start: {command: [a, "--id=$(CONVERSATION_ID)"]}, resume: {command: [a, "-r$(CONVERSATION_ID)"]}, conversation: {identity: Assigned}}`,
	} {
		t.Run(name, func(t *testing.T) {
			head := strings.Replace(head, KindSession, KindClientClass, 1)
			assert.Empty(t, texts(DecodeFile("f", []byte(head+line+"\n"))))
		})
	}
}

// What get shows of a built-in class can be applied, under its own name or another.
func TestBuiltInClassesAreValidAndReadBackWhenWritten(t *testing.T) {
	classes := BuiltInClasses()
	var names []string
	for _, want := range classes {
		names = append(names, want.Name)
		assert.True(t, want.Status.BuiltIn)
		require.Empty(t, ValidateClass(&want))
		asYAML, err := yaml.Marshal(want)
		require.NoError(t, err)
		asJSON, err := json.MarshalIndent(want, "", "  ")
		require.NoError(t, err)
		for _, text := range [][]byte{asYAML, asJSON} {
			docs := DecodeFile("f", text)
			require.Empty(t, texts(docs), "%s", text)
			assert.Equal(t, want.Spec, docs.Items[0].Class.Spec)
			assert.Equal(t, ClientClassStatus{}, docs.Items[0].Class.Status)
		}
	}
	assert.Equal(t, []string{ClassClaude, ClassCodex, ClassExec}, names)
}

// B11: a flag that takes whichever conversation was the last is never used.
func TestBuiltInClassesNeverAskForTheLastConversation(t *testing.T) {
	for _, class := range BuiltInClasses() {
		for _, word := range append(class.Spec.Start.Command, class.Spec.Resume.Command...) {
			assert.NotContains(t, []string{"--last", "--continue", "latest", "last"}, word, class.Name)
		}
	}
	assert.NotContains(t, ResolveClass(ClassClaude, nil).Spec.Resume.Command, "--session-id", "a creation-only argument is not repeated")
}

func TestDeclaredClassTakesThePlaceOfABuiltInOne(t *testing.T) {
	declared := map[string]*ClientClass{}
	for _, name := range []string{"claude", "gemini"} {
		declared[name] = DecodeFile("f", []byte(goodClass(name))).Items[0].Class
	}
	assert.Same(t, declared["claude"], ResolveClass("claude", declared))
	assert.Same(t, declared["gemini"], ResolveClass("gemini", declared))
	assert.True(t, ResolveClass("codex", declared).Status.BuiltIn)
	assert.Nil(t, ResolveClass("nobody", declared))
	assert.Equal(t, []string{"claude", "codex", "exec", "gemini"}, ClassNames(declared))
	BuiltInClasses()[0].Spec.Start.Command[0] = "mine"
	assert.Equal(t, "claude", ResolveClass("claude", nil).Spec.Start.Command[0], "nobody can change a built-in class")
}
