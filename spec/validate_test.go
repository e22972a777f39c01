// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// valid is a Session that Validate accepts.
func valid() *Session {
	s := &Session{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec: SessionSpec{
			Client:    ClientSpec{Command: []string{"sh"}},
			Workspace: WorkspaceSpec{Directory: "/src"},
		},
	}
	SetDefaults(&s.Spec)
	return s
}

func TestValidSessionsAreAccepted(t *testing.T) {
	for name, change := range map[string]func(*Session){
		"smallest":               func(*Session) {},
		"longest name":           func(s *Session) { s.Name = strings.Repeat("a", 63) },
		"name of digits":         func(s *Session) { s.Name = "007-x" },
		"namespace":              func(s *Session) { s.Namespace = "default" },
		"labels":                 func(s *Session) { s.Labels = map[string]string{"example.com/a": "B_c.d", "e": ""} },
		"annotation in capitals": func(s *Session) { s.Annotations = map[string]string{"Example.com/A": "any\ntext"} },
		"home":                   func(s *Session) { s.Spec.Workspace.Directory = "~" },
		"below home":             func(s *Session) { s.Spec.Workspace.Directory = "~/src" },
		"variable":               func(s *Session) { s.Spec.Workspace.Directory = "$SRC/shop" },
		"variable in braces":     func(s *Session) { s.Spec.Workspace.Directory = "${SRC}shop" },
		"spaces in a path":       func(s *Session) { s.Spec.Workspace.Directory = "/a b/\"c\"\n" },
		"relative program":       func(s *Session) { s.Spec.Client.Command = []string{"./run.sh", ""} },
		"lowest numbers": func(s *Session) {
			s.Spec.StartupTimeoutSeconds, s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](1), ptr.To[int32](0)
			s.Spec.Terminal = TerminalSpec{Columns: 20, Rows: 5, HistoryLimit: ptr.To[int32](0)}
		},
		"highest numbers": func(s *Session) {
			s.Spec.StartupTimeoutSeconds, s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](3600), ptr.To[int32](3600)
			s.Spec.Terminal = TerminalSpec{Columns: 1000, Rows: 1000, HistoryLimit: ptr.To[int32](1_000_000)}
		},
		"at a demand alone":      func(s *Session) { s.Spec.ProvisioningPolicy = ProvisioningOnDemand },
		"initial prompt":         func(s *Session) { s.Spec.InitialPrompt = "a\n\tb; \"c\" 🙂\n\n" },
		"longest initial prompt": func(s *Session) { s.Spec.InitialPrompt = strings.Repeat("x", MaxPromptBytes) + "\n" },
		"empty value":            func(s *Session) { s.Spec.Client.Env = []EnvVar{{Name: "_a9"}} },
		"names like reserved":    func(s *Session) { s.Spec.Client.Env = []EnvVar{{Name: "TMUX_TMPDIR"}, {Name: "MUXLET"}} },
		"long word":              func(s *Session) { s.Spec.Client.Args = []string{strings.Repeat("x", maxWordBytes-1)} },
	} {
		t.Run(name, func(t *testing.T) {
			s := valid()
			change(s)
			assert.Empty(t, Validate(s))
		})
	}
}

// noID is why a text is no conversation's id.
const noID = `cannot be the id of a conversation: use at most 256 letters, digits, "-", "_", ".", ":", "@", "+", "=", "," and "~", no "-" first`

func TestInvalidSessionsAreRefusedWithFieldAndReason(t *testing.T) {
	long := strings.Repeat("x", maxWordBytes)
	for name, c := range map[string]struct {
		change func(*Session)
		want   []string
	}{
		"no name":           {func(s *Session) { s.Name = "" }, []string{"metadata.name: is required: the session needs a name, such as checkout-bug"}},
		"capitals and dots": {func(s *Session) { s.Name = "My.App" }, []string{`metadata.name: "My.App" cannot be a session's name: use at most 63 of a-z, 0-9 and "-", with a letter or digit at both ends (did you mean "my-app"?)`}},
		"long name":         {func(s *Session) { s.Name = strings.Repeat("a", 62) + "-b" }, []string{`metadata.name: "` + strings.Repeat("a", 62) + `-b" cannot be a session's name: use at most 63 of a-z, 0-9 and "-", with a letter or digit at both ends (did you mean "` + strings.Repeat("a", 62) + `"?)`}},
		"name of a symbol":  {func(s *Session) { s.Name = "ü" }, []string{`metadata.name: "ü" cannot be a session's name: use at most 63 of a-z, 0-9 and "-", with a letter or digit at both ends`}},
		"namespace":         {func(s *Session) { s.Namespace = "prod" }, []string{`metadata.namespace: "prod" does not exist here: leave the namespace out; the only one is default`}},
		"label key":         {func(s *Session) { s.Labels = map[string]string{"-a": ""} }, []string{`metadata.labels[-a]: "-a" cannot be a key: use at most 63 letters, digits, "-", "_" and ".", after a prefix such as example.com/ if you like`}},
		"label value":       {func(s *Session) { s.Labels = map[string]string{"a": "b c"} }, []string{`metadata.labels[a]: "b c" cannot be the value of a label: use at most 63 letters, digits, "-", "_" and ".", with a letter or digit at both ends`}},
		"annotation key":    {func(s *Session) { s.Annotations = map[string]string{"/": ""} }, []string{`metadata.annotations[/]: "/" cannot be a key: use at most 63 letters, digits, "-", "_" and ".", after a prefix such as example.com/ if you like`}},
		"annotations":       {func(s *Session) { s.Annotations = map[string]string{"a": long, "b": long} }, []string{"metadata.annotations: the annotations have 262146 bytes in all; at most 262144 are kept"}},

		"class":           {func(s *Session) { s.Spec.ClientClassName = "My_Agent" }, []string{`spec.clientClassName: "My_Agent" cannot be a client class's name: use at most 63 of a-z, 0-9 and "-", with a letter or digit at both ends (did you mean "my-agent"?)`}},
		"long start arg":  {func(s *Session) { s.Spec.Client.StartArgs = []string{long} }, []string{"spec.client.startArgs[0]: the word has 131072 bytes; the system takes less than 131072: put the text into a file"}},
		"missing policy":  {func(s *Session) { s.Spec.Conversation.MissingPolicy = "Holds" }, []string{`spec.conversation.missingPolicy: "Holds" is not one of StartFresh, Hold (did you mean "Hold"?)`}},
		"option as an id": {func(s *Session) { s.Spec.Conversation.ID = "-c" }, []string{`spec.conversation.id: "-c" ` + noID}},
		"path as an id":   {func(s *Session) { s.Spec.Conversation.ID = "../x" }, []string{`spec.conversation.id: "../x" ` + noID}},
		"glob as an id":   {func(s *Session) { s.Spec.Conversation.ID = "*" }, []string{`spec.conversation.id: "*" ` + noID}},
		"parent as an id": {func(s *Session) { s.Spec.Conversation.ID = ".." }, []string{`spec.conversation.id: ".." ` + noID}},
		"NUL in an id":    {func(s *Session) { s.Spec.Conversation.ID = "a\x00" }, []string{`spec.conversation.id: "a\x00" ` + noID}},
		"long id":         {func(s *Session) { s.Spec.Conversation.ID = long[:257] }, []string{`spec.conversation.id: "` + long[:257] + `" ` + noID}},
		"empty program":   {func(s *Session) { s.Spec.Client.Command = []string{"", "a"} }, []string{"spec.client.command[0]: the program's name is empty"}},
		"NUL in a word":   {func(s *Session) { s.Spec.Client.Command = []string{"sh", "a\x00"} }, []string{"spec.client.command[1]: a word cannot have a NUL byte"}},
		"long word":       {func(s *Session) { s.Spec.Client.Args = []string{"a", long} }, []string{"spec.client.args[1]: the word has 131072 bytes; the system takes less than 131072: put the text into a file"}},
		"too many words":  {func(s *Session) { s.Spec.Client.Args = make([]string, maxArgvBytes) }, []string{"spec.client: command, args and env have 1048579 bytes in all; the system takes at most 1048576: put the text into a file"}},
		"shell mode":      {func(s *Session) { s.Spec.Client.ShellMode = "login" }, []string{`spec.client.shellMode: "login" is not one of Interactive, Login, None (did you mean "Login"?)`}},
		"variable":        {func(s *Session) { s.Spec.Client.Env = []EnvVar{{Name: "MY-VAR"}} }, []string{`spec.client.env[0].name: "MY-VAR" cannot be the name of a variable: use letters, digits and _, no digit first (did you mean "MY_VAR"?)`}},
		"digit first":     {func(s *Session) { s.Spec.Client.Env = []EnvVar{{Name: "1A"}} }, []string{`spec.client.env[0].name: "1A" cannot be the name of a variable: use letters, digits and _, no digit first`}},
		"nameless":        {func(s *Session) { s.Spec.Client.Env = []EnvVar{{}, {}} }, []string{"spec.client.env[0].name: is required: the variable needs a name", "spec.client.env[1].name: is required: the variable needs a name"}},
		"twice":           {func(s *Session) { s.Spec.Client.Env = []EnvVar{{Name: "A"}, {Name: "A"}} }, []string{`spec.client.env[1].name: "A" is set twice; the first is spec.client.env[0]`}},
		"reserved":        {func(s *Session) { s.Spec.Client.Env = []EnvVar{{Name: "MUXLET_CLIENT"}} }, []string{`spec.client.env[0].name: "MUXLET_CLIENT" is set by muxlet or tmux and cannot be chosen`}},
		"TMUX":            {func(s *Session) { s.Spec.Client.Env = []EnvVar{{Name: "TMUX"}, {Name: "TMUX_PANE"}} }, []string{`spec.client.env[0].name: "TMUX" is set by muxlet or tmux and cannot be chosen`, `spec.client.env[1].name: "TMUX_PANE" is set by muxlet or tmux and cannot be chosen`}},
		"two values": {func(s *Session) {
			s.Spec.Client.Env = []EnvVar{{Name: "A", Value: "secret", ValueFrom: &EnvVarSource{FileRef: &FileRef{Path: "/k"}}}}
		}, []string{"spec.client.env[0]: value and valueFrom are both given; keep one of them"}},
		"NUL in a value":  {func(s *Session) { s.Spec.Client.Env = []EnvVar{{Name: "A", Value: "secret\x00"}} }, []string{"spec.client.env[0].value: a word cannot have a NUL byte"}},
		"empty valueFrom": {func(s *Session) { s.Spec.Client.Env = []EnvVar{{Name: "A", ValueFrom: &EnvVarSource{}}} }, []string{"spec.client.env[0].valueFrom.fileRef: is required: it names the file, such as {path: ~/.config/keys/api}"}},
		"empty envFrom":   {func(s *Session) { s.Spec.Client.EnvFrom = []EnvFromSource{{}, {FileRef: &FileRef{}}} }, []string{"spec.client.envFrom[0].fileRef: is required: it names the file, such as {path: ~/.config/keys/api}", "spec.client.envFrom[1].fileRef.path: is required: it names the file, such as ~/.config/keys/api"}},
		"relative file":   {func(s *Session) { s.Spec.Client.EnvFrom = []EnvFromSource{{FileRef: &FileRef{Path: "./a.env"}}} }, []string{`spec.client.envFrom[0].fileRef.path: "./a.env" is relative; it must begin with /, ~/ or $VAR (did you mean "~/a.env"?)`}},

		"no directory":       {func(s *Session) { s.Spec.Workspace.Directory = "" }, []string{"spec.workspace.directory: is required: the session needs a directory to run in, such as ~/src/shop"}},
		"relative directory": {func(s *Session) { s.Spec.Workspace.Directory = "src" }, []string{`spec.workspace.directory: "src" is relative; it must begin with /, ~/ or $VAR (did you mean "~/src"?)`}},
		"another's home":     {func(s *Session) { s.Spec.Workspace.Directory = "~bob/src" }, []string{`spec.workspace.directory: "~bob/src": ~ stands for your own home directory alone; write the other path in full`}},
		"bare dollar":        {func(s *Session) { s.Spec.Workspace.Directory = "$/src" }, []string{`spec.workspace.directory: "$/src" is relative; it must begin with /, ~/ or $VAR (did you mean "~/$/src"?)`}},
		"NUL in a directory": {func(s *Session) { s.Spec.Workspace.Directory = "/\x00" }, []string{"spec.workspace.directory: a path cannot have a NUL byte"}},
		"workspace type":     {func(s *Session) { s.Spec.Workspace.Type = "Dir" }, []string{`spec.workspace.type: "Dir" is not one of Directory, DirectoryOrCreate`}},

		"restart policy":               {func(s *Session) { s.Spec.RestartPolicy = "OnFail" }, []string{`spec.restartPolicy: "OnFail" is not one of Always, OnFailure, Never (did you mean "OnFailure"?)`}},
		"provisioning":                 {func(s *Session) { s.Spec.ProvisioningPolicy = "Ondemand" }, []string{`spec.provisioningPolicy: "Ondemand" is not one of Eager, OnDemand (did you mean "OnDemand"?)`}},
		"escape in the initial prompt": {func(s *Session) { s.Spec.InitialPrompt = "secret\x1b[A" }, []string{"spec.initialPrompt: the prompt has the control character U+001B (escape) at byte offset 6, which a terminal takes for a key: newline and tab are the only control characters that can be sent"}},
		"blank initial prompt":         {func(s *Session) { s.Spec.InitialPrompt = " \n" }, []string{"spec.initialPrompt: the prompt is white space alone"}},
		"recovery policy":              {func(s *Session) { s.Spec.RecoveryPolicy = "Ignore" }, []string{`spec.recoveryPolicy: "Ignore" is not one of Resume, Dormant`}},
		"update strategy":              {func(s *Session) { s.Spec.UpdateStrategy.Type = "Recrate" }, []string{`spec.updateStrategy.type: "Recrate" is not one of WhenIdle, Recreate, OnRestart (did you mean "Recreate"?)`}},
		"deletion policy":              {func(s *Session) { s.Spec.DeletionPolicy = "Keep" }, []string{`spec.deletionPolicy: "Keep" is not one of Delete, Orphan`}},
		"little of everything": {func(s *Session) {
			s.Spec.Resources.Limits = ResourceLimits{Memory: ptr.To(resource.MustParse("1M")), CPU: ptr.To(resource.MustParse("0")), Tasks: ptr.To[int32](31)}
		}, []string{
			"spec.resources.limits.memory: 1M is not between 16Mi and 1Pi", "spec.resources.limits.cpu: 0 is not between 10m and 10000",
			"spec.resources.limits.tasks: 31 is not between 32 and 1000000",
		}},
		"too much of everything": {func(s *Session) {
			s.Spec.Resources.Limits = ResourceLimits{Memory: ptr.To(resource.MustParse("2Pi")), CPU: ptr.To(resource.MustParse("10001")), Tasks: ptr.To[int32](1_000_001)}
			s.Spec.Resources.OnUnsupported = "Failed"
		}, []string{
			"spec.resources.limits.memory: 2Pi is not between 16Mi and 1Pi", "spec.resources.limits.cpu: 10001 is not between 10m and 10000",
			"spec.resources.limits.tasks: 1000001 is not between 32 and 1000000",
			`spec.resources.onUnsupported: "Failed" is not one of Fail, Ignore (did you mean "Fail"?)`,
		}},
		"low numbers": {func(s *Session) {
			s.Spec.StartupTimeoutSeconds, s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](0), ptr.To[int32](-1)
			s.Spec.Terminal = TerminalSpec{Columns: 19, Rows: 4, HistoryLimit: ptr.To[int32](-1)}
		}, []string{
			"spec.startupTimeoutSeconds: 0 is not between 1 and 3600", "spec.terminationGracePeriodSeconds: -1 is not between 0 and 3600",
			"spec.terminal.columns: 19 is not between 20 and 1000", "spec.terminal.rows: 4 is not between 5 and 1000",
			"spec.terminal.historyLimit: -1 is not between 0 and 1000000",
		}},
		"high numbers": {func(s *Session) {
			s.Spec.StartupTimeoutSeconds, s.Spec.TerminationGracePeriodSeconds = ptr.To[int32](3601), ptr.To[int32](3601)
			s.Spec.Terminal = TerminalSpec{Columns: 1001, Rows: 1001, HistoryLimit: ptr.To[int32](1_000_001)}
		}, []string{
			"spec.startupTimeoutSeconds: 3601 is not between 1 and 3600", "spec.terminationGracePeriodSeconds: 3601 is not between 0 and 3600",
			"spec.terminal.columns: 1001 is not between 20 and 1000", "spec.terminal.rows: 1001 is not between 5 and 1000",
			"spec.terminal.historyLimit: 1000001 is not between 0 and 1000000",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := valid()
			c.change(s)
			var got []string
			for _, p := range new(Tree).Problems(Validate(s)) {
				got = append(got, strings.TrimPrefix(p.Error(), ": "))
			}
			assert.Equal(t, c.want, got)
			assert.NotContains(t, Validate(s).ToAggregate().Error(), "secret")
		})
	}
}

// A person's first document: no class and no command. Which class that is, the
// settings say.
func TestSmallestSessionHasNeitherClassNorCommand(t *testing.T) {
	docs := DecodeFile("f", []byte(head+"spec: {workspace: {directory: /}}\n"))
	require.Empty(t, texts(docs))
	assert.Empty(t, docs.Items[0].Session.Spec.ClientClassName)
}

func TestClassJudgesWhatOnlyItKnows(t *testing.T) {
	const runs = "f:4:1: spec.client.command: is required: class exec runs what the session says, such as [npm, run, dev]"
	for name, c := range map[string]struct {
		class, line string
		want        []string
	}{
		"exec with a command":                         {"exec", "spec: {client: {command: [sh]}, workspace: {directory: /}}", nil},
		"exec without":                                {"exec", "spec: {clientClassName: exec, workspace: {directory: /}}", []string{runs}},
		"claude without":                              {"claude", "spec: {workspace: {directory: /}}", nil},
		"claude with a conversation":                  {"claude", "spec: {conversation: {id: x}, workspace: {directory: /}}", nil},
		"claude with a command":                       {"claude", "spec: {clientClassName: claude, client: {command: [sh]}, workspace: {directory: /}}", []string{"f:4:51: spec.client.command: class claude has a command of its own; append to it with client.args, or use clientClassName: exec"}},
		"exec with a conversation":                    {"exec", "spec: {client: {command: [sh]}, conversation: {id: x}, workspace: {directory: /}}", []string{"f:4:52: spec.conversation.id: a client of class exec has no conversation"}},
		"claude with a conversation of its arguments": {"claude", "spec: {client: {args: [--model, opus, --resume, x]}, workspace: {directory: /}}", []string{"f:4:23: spec.client.args: --resume is for class claude to say; to take up another conversation, name it in spec.conversation.id"}},
		"the same in one word, at the start alone":    {"claude", "spec: {client: {startArgs: [--session-id=x]}, workspace: {directory: /}}", []string{"f:4:28: spec.client.startArgs: --session-id is for class claude to say; to take up another conversation, name it in spec.conversation.id"}},
		"codex takes its id without a flag":           {"codex", "spec: {client: {args: [-c, model=x]}, workspace: {directory: /}}", nil},
		"a first turn":                                {"exec", "spec: {client: {command: [sh]}, initialPrompt: hello, workspace: {directory: /}}", nil},
		"exec with neither, by default":               {"exec", "spec: {workspace: {directory: /}}", []string{runs}},
	} {
		t.Run(name, func(t *testing.T) {
			docs := DecodeFile("f", []byte(head+c.line+"\n"))
			require.Empty(t, texts(docs))
			var got []string
			for _, p := range docs.Items[0].ProblemsForClass(ResolveClass(c.class, nil)) {
				got = append(got, p.Error())
			}
			assert.Equal(t, c.want, got)
		})
	}
}

func TestProblemsOfValidationHaveTheirPlaces(t *testing.T) {
	text := `apiVersion: muxlet.dev/v1alpha1
kind: Session
metadata:
  name: My.App
  labels:
    example.com/a: "b c"
spec:
  client:
    env:
    - name: A
    - name: B-C
      value: x
  restartPolicy: Sometimes
`
	var places []string
	problems := DecodeFile("f", []byte(text)).Items[0].Problems
	for _, p := range problems {
		places = append(places, p.Position.String()+" "+p.Path)
	}
	assert.Equal(t, []string{
		"f:4:9 metadata.name",
		"f:6:20 metadata.labels[example.com/a]",
		"f:7:1 spec.workspace.directory",
		"f:11:13 spec.client.env[1].name",
		"f:13:18 spec.restartPolicy",
	}, places)
	require.Equal(t, "my-app", problems[0].Suggestion)
}

func TestFieldWithoutAValueHasThePlaceOfItsKey(t *testing.T) {
	text := head + `spec:
  client:
    command:
    env:
    - name: A
      value: # secret

  workspace:
    directory:

  suspend: false
`
	assert.Equal(t, []string{
		`f:9:7: spec.client.env[0].value: YAML reads nothing here; put the text in quotes, or write "" for an empty value`,
	}, texts(DecodeFile("f", []byte(text))))
	assert.Equal(t, []string{
		"f:12:5: spec.workspace.directory: is required: the session needs a directory to run in, such as ~/src/shop",
	}, texts(DecodeFile("f", []byte(strings.Replace(text, "# secret", "x", 1)))))
}

func TestProblemReadsAsOneLine(t *testing.T) {
	for want, p := range map[string]Problem{
		"f: m":                              {Position: Position{File: "f"}, Message: "m"},
		"f:3:1: m":                          {Position: Position{File: "f", Line: 3, Column: 1}, Message: "m"},
		`f:3:1: a.b: m (did you mean "x"?)`: {Position: Position{File: "f", Line: 3, Column: 1}, Path: "a.b", Message: "m", Suggestion: "x"},
	} {
		assert.Equal(t, want, p.Error())
		assert.Equal(t, want, p.String())
	}
}
