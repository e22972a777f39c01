// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/muxlet/muxlet/spec"
)

const header = "apiVersion: config.muxlet.dev/v1alpha1\nkind: MuxletConfiguration\n"

// inputs are those of a person with a home directory and nothing set.
func inputs(t *testing.T, env map[string]string) Inputs {
	t.Helper()
	return Inputs{
		LookupEnv:  func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		Home:       t.TempDir(),
		WorkingDir: "/work",
		UID:        1000,
	}
}

// settings writes the default settings file of the inputs.
func settings(t *testing.T, in Inputs, text string) string {
	t.Helper()
	path := filepath.Join(in.Home, ".config/muxlet/config.yaml")
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func given(s string) *string { return &s }

func TestDefaultsNeedNoFile(t *testing.T) {
	in := inputs(t, nil)
	e, err := Load(in)
	require.NoError(t, err)
	want := defaults()
	want.Manifests = []string{in.Home + "/.config/muxlet/sessions"}
	want.StateDir = in.Home + "/.local/state/muxlet"
	want.RuntimeDir = in.Home + "/.local/state/muxlet/run"
	assert.Equal(t, want, e.MuxletConfiguration)
	assert.Empty(t, e.File)
	for path, origin := range e.Origin {
		assert.Equal(t, OriginDefault, origin, path)
	}
	assert.Len(t, e.Origin, len(leaves()))
}

func TestDefaultsAreThoseOfTheDocumentation(t *testing.T) {
	c := defaults()
	assert.Equal(t, "claude", c.DefaultClientClassName)
	assert.Equal(t, "tmux", c.Tmux.Command)
	assert.Equal(t, "/proc/sys/kernel/random/boot_id", c.Observation.BootIDPath)
	assert.Equal(t, LogText, c.Logging.Format)
	for name, d := range map[string][2]time.Duration{
		"timeout":     {c.Tmux.Timeout.Duration, 5 * time.Second},
		"resync":      {c.ResyncPeriod.Duration, 15 * time.Second},
		"grace":       {c.Observation.UnknownGracePeriod.Duration, 5 * time.Second},
		"initial":     {c.BackOff.Initial.Duration, time.Second},
		"max":         {c.BackOff.Max.Duration, 5 * time.Minute},
		"resetAfter":  {c.BackOff.ResetAfter.Duration, 10 * time.Minute},
		"settle":      {c.Removal.Settle.Duration, 3 * time.Second},
		"reportTTL":   {c.Activity.ReportTTL.Duration, 5 * time.Minute},
		"focusAfter":  {c.Activity.FocusAfter.Duration, 5 * time.Second},
		"turnAge":     {c.Retention.TurnAge.Duration, 720 * time.Hour},
		"archive":     {c.Retention.Archive.Duration, 720 * time.Hour},
		"minInterval": {c.Notifications.MinInterval.Duration, 30 * time.Second},
		"notified":    {c.Notifications.Timeout.Duration, 10 * time.Second},
	} {
		assert.Equal(t, d[1], d[0], name)
	}
	assert.Equal(t, []int32{4, 5, 50, 3, 50, 1000, 100, 0}, []int32{
		c.Starts.MaxInFlight, c.MassDeath.MinSessions, c.MassDeath.Percent, c.Removal.GuardMin, c.Removal.GuardPercent,
		c.Retention.Events, c.Retention.Turns, c.Logging.Verbosity,
	})
	assert.EqualValues(t, 64<<20, c.Retention.ReportSpool.Value())
	assert.EqualValues(t, 256<<20, c.Retention.TurnBytes.Value())
	assert.EqualValues(t, 256<<20, c.Retention.ArchiveBytes.Value())
	assert.EqualValues(t, 256<<20, c.Retention.ScreenBytes.Value())
	assert.Empty(t, c.Notifications.Command)
	assert.Empty(t, c.Notifications.Terminal)
	assert.Equal(t, []spec.NotificationEvent{"InputRequired", "Stalled", "TurnCompleted"}, c.Notifications.On)
	c.Manifests = []string{"/m"}
	assert.Empty(t, Validate(&c))
}

const everySetting = header + `
manifests: [~/a, "$BASE/b", /c]
stateDir: ${BASE}/state
runtimeDir: ~/run
defaultClientClassName: codex
sessionDefaults: {workspace: {directory: ~/src}, client: {args: [--model, opus], env: [{name: A, value: "1"}]}, terminal: {historyLimit: 0}}
tmux: {command: ~/bin/tmux, server: External, unit: tmux@me.service, prefix: C-a, include: ~/.tmux.conf, timeout: 2s}
scopes: Never
resyncPeriod: 1m
observation: {unknownGracePeriod: 0s, bootIDPath: $BASE/boot_id}
backOff: {initial: 10ms, max: 200ms, resetAfter: 1h30m}
starts: {maxInFlight: 1}
massDeath: {minSessions: 2, percent: 100}
removal: {settle: 0s, guardMin: 1, guardPercent: 1}
activity: {reportTTL: 2m, focusAfter: 100ms}
notifications: {command: [~/bin/tell, "~", $BASE], on: [Stalled, InputRequired], minInterval: 0s, timeout: 1m, terminal: [OSC777, Bell]}
retention: {events: 5, turns: 7, turnAge: 0s, turnBytes: 64Gi, archive: 24h, archiveBytes: 1Mi, screenBytes: 2Mi, reportSpool: 1Mi}
metrics: {listen: "[::1]:9464"}
logging: {format: json, verbosity: 2}
`

func TestEverySettingIsRead(t *testing.T) {
	in := inputs(t, map[string]string{"BASE": "/base"})
	path := settings(t, in, everySetting)
	e, err := Load(in)
	require.NoError(t, err)
	want := MuxletConfiguration{
		TypeMeta:   defaults().TypeMeta,
		Manifests:  []string{in.Home + "/a", "/base/b", "/c"},
		StateDir:   "/base/state",
		RuntimeDir: in.Home + "/run",

		DefaultClientClassName: "codex",
		SessionDefaults: spec.SessionSpec{
			Workspace: spec.WorkspaceSpec{Directory: "~/src"},
			Client:    spec.ClientSpec{Args: []string{"--model", "opus"}, Env: []spec.EnvVar{{Name: "A", Value: "1"}}},
			Terminal:  spec.TerminalSpec{HistoryLimit: ptr.To[int32](0)},
		},

		Tmux:         Tmux{Command: in.Home + "/bin/tmux", Server: TmuxExternal, Unit: "tmux@me.service", Prefix: "C-a", Include: in.Home + "/.tmux.conf", Timeout: duration(2 * time.Second)},
		Scopes:       spec.ScopesNever,
		ResyncPeriod: duration(time.Minute),
		Observation:  Observation{BootIDPath: "/base/boot_id"},
		BackOff:      BackOff{Initial: duration(10 * time.Millisecond), Max: duration(200 * time.Millisecond), ResetAfter: duration(90 * time.Minute)},
		Starts:       Starts{MaxInFlight: 1},
		MassDeath:    MassDeath{MinSessions: 2, Percent: 100},
		Removal:      Removal{GuardMin: 1, GuardPercent: 1},
		Activity:     Activity{ReportTTL: duration(2 * time.Minute), FocusAfter: duration(100 * time.Millisecond)},
		Notifications: Notifications{
			Command: []string{in.Home + "/bin/tell", "~", "$BASE"}, On: []spec.NotificationEvent{spec.NotifyStalled, spec.NotifyInputRequired},
			Timeout: duration(time.Minute), Terminal: []spec.TerminalNotification{spec.TerminalOSC777, spec.TerminalBell},
		},
		Retention: Retention{Events: 5, Turns: 7, TurnBytes: resource.MustParse("64Gi"), Archive: duration(24 * time.Hour), ArchiveBytes: resource.MustParse("1Mi"), ScreenBytes: resource.MustParse("2Mi"), ReportSpool: resource.MustParse("1Mi")},
		Metrics:   Metrics{Listen: "[::1]:9464"},
		Logging:   Logging{Format: LogJSON, Verbosity: 2},
	}
	assert.Equal(t, want, e.MuxletConfiguration)
	assert.Equal(t, path, e.File)
	for setting, origin := range e.Origin {
		assert.Equal(t, OriginFile, origin, setting)
	}
}

func TestFlagBeatsEnvironmentBeatsFileBeatsDefault(t *testing.T) {
	file := header + "manifests: [/file]\nstateDir: /file\nruntimeDir: /file\n"
	env := map[string]string{EnvManifests: "/env:rel", EnvStateDir: "/env", EnvRuntimeDir: "/env"}
	flags := func(in *Inputs) {
		in.Manifests, in.StateDir, in.RuntimeDir = []string{"/flag", "./rel"}, given("/flag"), given("/flag")
	}
	for name, c := range map[string]struct {
		file      string
		env       map[string]string
		flags     func(*Inputs)
		want      string
		manifests []string
		origin    string
	}{
		"file":          {file, nil, nil, "/file", []string{"/file"}, OriginFile},
		"environment":   {file, env, nil, "/env", []string{"/env", "/work/rel"}, OriginEnvironment},
		"flag":          {file, env, flags, "/flag", []string{"/flag", "/work/rel"}, OriginFlag},
		"flag, no file": {"", nil, flags, "/flag", []string{"/flag", "/work/rel"}, OriginFlag},
		"empty environment": {file, map[string]string{EnvManifests: "", EnvStateDir: "", EnvRuntimeDir: ""}, nil,
			"/file", []string{"/file"}, OriginFile},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs(t, c.env)
			if c.file != "" {
				settings(t, in, c.file)
			}
			if c.flags != nil {
				c.flags(&in)
			}
			e, err := Load(in)
			require.NoError(t, err)
			assert.Equal(t, c.want, e.StateDir)
			assert.Equal(t, c.want, e.RuntimeDir)
			assert.Equal(t, c.manifests, e.Manifests)
			for _, setting := range []string{"manifests", "stateDir", "runtimeDir"} {
				assert.Equal(t, c.origin, e.Origin[setting], setting)
			}
			assert.Equal(t, OriginDefault, e.Origin["resyncPeriod"])
		})
	}
}

func TestXDGDirectoriesAreUsedUnlessRelative(t *testing.T) {
	absolute := map[string]string{"XDG_CONFIG_HOME": "/xc", "XDG_STATE_HOME": "/xs", "XDG_RUNTIME_DIR": "/xr"}
	e, err := Load(inputs(t, absolute))
	require.NoError(t, err)
	assert.Equal(t, []string{"/xc/muxlet/sessions"}, e.Manifests)
	assert.Equal(t, "/xs/muxlet", e.StateDir)
	assert.Equal(t, "/xr/muxlet", e.RuntimeDir)

	in := inputs(t, map[string]string{"XDG_CONFIG_HOME": "xc", "XDG_STATE_HOME": "./xs", "XDG_RUNTIME_DIR": "xr"})
	e, err = Load(in)
	require.NoError(t, err)
	assert.Equal(t, []string{in.Home + "/.config/muxlet/sessions"}, e.Manifests)
	assert.Equal(t, in.Home+"/.local/state/muxlet", e.StateDir)
	assert.Equal(t, in.Home+"/.local/state/muxlet/run", e.RuntimeDir)
}

// Two daemons with different state directories must not share a socket: I3.
func TestRuntimeDirFollowsAStateDirThatWasGiven(t *testing.T) {
	for name, c := range map[string]struct {
		env    map[string]string
		flag   *string
		file   string
		runDir string
	}{
		"nowhere":         {nil, nil, "", "/xr/muxlet"},
		"by the flag":     {nil, given("/s"), "", "/s/run"},
		"by the variable": {map[string]string{EnvStateDir: "/s"}, nil, "", "/s/run"},
		"by the file":     {nil, nil, header + "stateDir: $S\n", "/s/run"},
		"empty in a file": {nil, nil, header + "stateDir: \"\"\nruntimeDir: \"\"\nmanifests: []\n", "/xr/muxlet"},
		"and so was it":   {nil, given("/s"), header + "runtimeDir: /r\n", "/r"},
	} {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"XDG_RUNTIME_DIR": "/xr", "S": "/s"}
			for k, v := range c.env {
				env[k] = v
			}
			in := inputs(t, env)
			in.StateDir = c.flag
			if c.file != "" {
				settings(t, in, c.file)
			}
			e, err := Load(in)
			require.NoError(t, err)
			assert.Equal(t, c.runDir, e.RuntimeDir)
			assert.Equal(t, c.runDir, e.Paths.RuntimeDir)
			if c.runDir != "/r" {
				assert.Equal(t, OriginDefault, e.Origin["runtimeDir"])
			}
		})
	}
}

func TestSettingsFileThatWasNamedMustExist(t *testing.T) {
	in := inputs(t, nil)
	in.Config = given("gone.yaml")
	_, err := Load(in)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.EqualError(t, err, "reading the settings file: open /work/gone.yaml: no such file or directory")

	_, err = Load(inputs(t, map[string]string{EnvConfig: "/gone.yaml"}))
	require.EqualError(t, err, "reading the settings file: open /gone.yaml: no such file or directory")

	in = inputs(t, nil)
	in.Config = given("/")
	_, err = Load(in)
	assert.EqualError(t, err, "reading the settings file: read /: is a directory")
}

func TestSettingsFileIsFoundByFlagThenVariable(t *testing.T) {
	in := inputs(t, nil)
	one, two := filepath.Join(in.Home, "1.yaml"), filepath.Join(in.Home, "2.yaml")
	require.NoError(t, os.WriteFile(one, []byte(header+"logging: {verbosity: 1}\n"), 0o600))
	require.NoError(t, os.WriteFile(two, []byte(header+"logging: {verbosity: 2}\n"), 0o600))
	home := in.Home
	in = inputs(t, map[string]string{EnvConfig: two, "H": home})
	e, err := Load(in)
	require.NoError(t, err)
	assert.EqualValues(t, 2, e.Logging.Verbosity)
	in.Config = given("$H/1.yaml")
	e, err = Load(in)
	require.NoError(t, err)
	assert.EqualValues(t, 1, e.Logging.Verbosity)
	assert.Equal(t, one, e.File)
}

func TestHomeIsNeededOnlyWhereADefaultIs(t *testing.T) {
	in := inputs(t, nil)
	in.Home = ""
	_, err := Load(in)
	require.EqualError(t, err, "the home directory is not known: set HOME")
	in.Manifests = []string{"/m"}
	_, err = Load(in)
	require.EqualError(t, err, "the home directory is not known: set HOME")
	in.StateDir = given("/s")
	e, err := Load(in)
	require.NoError(t, err)
	assert.Equal(t, "/s/run", e.RuntimeDir)
	in.StateDir = given("~/s")
	_, err = Load(in)
	assert.EqualError(t, err, "--state-dir: the home directory is not known: set HOME")
}

func TestWrongInputNamesFlagVariableOrPlace(t *testing.T) {
	for name, c := range map[string]struct {
		file   string
		env    map[string]string
		change func(*Inputs)
		want   string
	}{
		"empty flag":          {"", nil, func(in *Inputs) { in.StateDir = given("") }, "--state-dir is empty: give a path or leave the flag out"},
		"empty config flag":   {"", nil, func(in *Inputs) { in.Config = given("") }, "--config is empty: give a path or leave the flag out"},
		"empty runtime flag":  {"", nil, func(in *Inputs) { in.RuntimeDir = given("") }, "--runtime-dir is empty: give a path or leave the flag out"},
		"empty manifests":     {"", nil, func(in *Inputs) { in.Manifests = []string{"/m", ""} }, "--manifests is empty: give a path or leave the flag out"},
		"no directory":        {"", nil, func(in *Inputs) { in.WorkingDir, in.StateDir = "", given("s") }, `--state-dir: "s" is relative, and the working directory is not there any more: go to another one, or give the whole path`},
		"variable in a flag":  {"", nil, func(in *Inputs) { in.RuntimeDir = given("$NONE/x") }, `--runtime-dir: $NONE is not set in "$NONE/x"`},
		"variable in a list":  {"", nil, func(in *Inputs) { in.Manifests = []string{"${NONE}"} }, `--manifests: $NONE is not set in "${NONE}"`},
		"variable in another": {"", map[string]string{EnvStateDir: "$NONE"}, nil, EnvStateDir + `: $NONE is not set in "$NONE"`},
		"variable in a file":  {"manifests: [/a, $NONE/b]\n", nil, nil, `config.yaml:3:17: manifests[1]: $NONE is not set in "$NONE/b"`},
		"relative variable":   {"stateDir: $REL/b\n", map[string]string{"REL": "r"}, nil, `config.yaml:3:11: stateDir: "r/b" is relative once its variables are filled in`},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs(t, c.env)
			if c.file != "" {
				settings(t, in, header+c.file)
			}
			if c.change != nil {
				c.change(&in)
			}
			_, err := Load(in)
			require.Error(t, err)
			assert.Equal(t, c.want, strings.TrimPrefix(err.Error(), in.Home+"/.config/muxlet/"))
		})
	}
}

func TestDollarInADirectoryNameIsNoSecondVariable(t *testing.T) {
	in := inputs(t, map[string]string{"A": "/a$b", "XDG_STATE_HOME": "/x$y"})
	settings(t, in, header+"manifests: [$A/m]\n")
	in.RuntimeDir = given("$A/r")
	e, err := Load(in)
	require.NoError(t, err)
	assert.Equal(t, []string{"/a$b/m"}, e.Manifests)
	assert.Equal(t, "/a$b/r", e.RuntimeDir)
	assert.Equal(t, "/x$y/muxlet", e.StateDir)
}

func TestMistakesOfTheFileAreToldAsThoseOfManifests(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"unknown":           {header + "resyncPriod: 5s\n", []string{`f:3:1: resyncPriod: unknown field (did you mean "resyncPeriod"?)`}},
		"of a later issue":  {header + "worktrees: {}\n", []string{"f:3:1: worktrees: unknown field; the fields here are kind, apiVersion, manifests, stateDir, runtimeDir, defaultClientClassName, sessionDefaults, tmux, scopes, resyncPeriod, observation, backOff, starts, massDeath, removal, activity, notifications, retention, metrics, logging"}},
		"level too high":    {header + "maxInFlight: 3\n", []string{`f:3:1: maxInFlight: unknown field (did you mean "starts.maxInFlight"?)`}},
		"twice":             {header + "stateDir: /a\nstateDir: /b\n", []string{"f:4:1: stateDir: is given twice; the first is in line 3"}},
		"manifest":          {"apiVersion: muxlet.dev/v1alpha1\nkind: Session\n", []string{`f:2:7: kind: "Session" is not known; the only kind here is MuxletConfiguration`}},
		"version":           {"apiVersion: config.muxlet.dev/v1\nkind: MuxletConfiguration\n", []string{`f:1:13: apiVersion: "config.muxlet.dev/v1" is not known (did you mean "config.muxlet.dev/v1alpha1"?)`}},
		"no duration":       {header + "resyncPeriod: 15\n", []string{"f:3:15: resyncPeriod: must be a duration such as 500ms, 5s, 2m or 1h30m"}},
		"percent sign":      {header + "massDeath: {percent: 50%}\n", []string{`f:3:22: massDeath.percent: must be a whole number, not "50%"`}},
		"two documents":     {header + "---\n" + header, []string{"f:4:1: a second document; this file may hold only one"}},
		"nothing":           {"", nil},
		"comments":          {"# later\n", nil},
		"null":              {header + "tmux:\nbackOff: {max: }\n", nil},
		"relative state":    {header + "stateDir: state\n", []string{`f:3:11: stateDir: "state" is relative; it must begin with /, ~/ or $VAR`}},
		"relative manifest": {header + "manifests: [/a, b, \"\"]\n", []string{`f:3:17: manifests[1]: "b" is relative; it must begin with /, ~/ or $VAR`, "f:3:20: manifests[2]: is required: it is empty"}},
		"class name":        {header + "defaultClientClassName: Claude\n", []string{`f:3:25: defaultClientClassName: "Claude" cannot be a client class's name: use at most 63 of a-z, 0-9 and "-", with a letter or digit at both ends (did you mean "claude"?)`}},
		"no class name":     {header + "defaultClientClassName: \"\"\n", []string{"f:3:25: defaultClientClassName: is required: the client class needs a name, such as claude"}},
		"relative tmux":     {header + "tmux: {command: bin/tmux}\n", []string{`f:3:17: tmux.command: "bin/tmux" is relative; it must begin with /, ~/ or $VAR`}},
		"relative include":  {header + "tmux: {include: tmux.conf}\n", []string{`f:3:17: tmux.include: "tmux.conf" is relative; it must begin with /, ~/ or $VAR`}},
		"no key":            {header + "tmux: {prefix: C-}\n", []string{`f:3:16: tmux.prefix: "C-" is no key of tmux, such as C-b, M-Space or F12, and not None`}},
		"an injected key":   {header + "tmux: {prefix: \"C-a ; kill-server\"}\n", []string{`f:3:16: tmux.prefix: "C-a ; kill-server" is no key of tmux, such as C-b, M-Space or F12, and not None`}},
		"no prefix":         {header + "tmux: {prefix: \"\"}\n", []string{`f:3:16: tmux.prefix: "" is no key of tmux, such as C-b, M-Space or F12, and not None`}},
		"keys":              {header + "tmux: {prefix: \"M-`\"}\n", nil},
		"no tmux":           {header + "tmux: {command: \"\"}\n", []string{"f:3:17: tmux.command: is required: it is empty"}},
		"NUL":               {header + "tmux: {command: \"t\\0\"}\nruntimeDir: \"/\\0\"\n", []string{"f:3:17: tmux.command: a path cannot have a NUL byte", "f:4:13: runtimeDir: a path cannot have a NUL byte"}},
		"boot id":           {header + "observation: {bootIDPath: boot_id}\n", []string{`f:3:27: observation.bootIDPath: "boot_id" is relative; it must begin with /, ~/ or $VAR`}},
		"format":            {header + "logging: {format: JSON}\n", []string{`f:3:19: logging.format: "JSON" is not one of text, json`}},
		"scopes":            {header + "scopes: Always\n", []string{`f:3:9: scopes: "Always" is not one of Auto, Never`}},
		"max below initial": {header + "backOff: {max: 200ms}\n", []string{"f:3:16: backOff.max: 200ms is less than backOff.initial, which is 1s"}},
		"short times": {header + "tmux: {timeout: 1ms}\nresyncPeriod: 0s\nobservation: {unknownGracePeriod: -1s}\nbackOff: {initial: 0s, max: 0s, resetAfter: 0s}\nremoval: {settle: -1s}\nretention: {archive: -1s}\nactivity: {reportTTL: 0s, focusAfter: 0s}\n", []string{
			"f:3:17: tmux.timeout: 1ms is not between 100ms and 1m", "f:4:15: resyncPeriod: 0s is not between 100ms and 1h",
			"f:5:35: observation.unknownGracePeriod: -1s is not between 0s and 10m", "f:6:20: backOff.initial: 0s is not between 1ms and 24h",
			"f:6:29: backOff.max: 0s is not between 1ms and 24h", "f:6:45: backOff.resetAfter: 0s is not between 1ms and 24h",
			"f:7:19: removal.settle: -1s is not between 0s and 1h", "f:8:22: retention.archive: -1s is not between 0s and 87600h",
			"f:9:23: activity.reportTTL: 0s is not between 1s and 24h", "f:9:39: activity.focusAfter: 0s is not between 100ms and 1h",
		}},
		"no size":       {header + "retention: {reportSpool: 64 MB}\n", []string{"f:3:26: retention.reportSpool: must be a size such as 512Ki, 64Mi or 1Gi"}},
		"small spool":   {header + "retention: {reportSpool: 1Ki}\n", []string{"f:3:26: retention.reportSpool: 1Ki is not between 64Ki and 16Gi"}},
		"small archive": {header + "retention: {archiveBytes: 1Ki}\n", []string{"f:3:27: retention.archiveBytes: 1Ki is not between 1Mi and 64Gi"}},
		"huge screens":  {header + "retention: {screenBytes: 1Ti}\n", []string{"f:3:26: retention.screenBytes: 1Ti is not between 1Mi and 64Gi"}},
		"huge spool":    {header + "retention: {reportSpool: 1Ti}\n", []string{"f:3:26: retention.reportSpool: 1Ti is not between 64Ki and 16Gi"}},
		"defaults of one session": {header + "sessionDefaults:\n  client: {command: [a]}\n  conversation: {id: x}\n  suspend: true\n", []string{
			"f:4:21: sessionDefaults.client.command: a command is one session's own; give all of them a client class with clientClassName",
			"f:5:22: sessionDefaults.conversation.id: a conversation belongs to one session; name it in that session's document",
			`f:6:12: sessionDefaults.suspend: sessions are suspended one by one; "muxlet suspend --all" does it for all that are there`,
		}},
		"bad defaults": {header + "sessionDefaults:\n  workspace: {directory: src}\n  terminal: {rows: 1}\n", []string{
			`f:4:26: sessionDefaults.workspace.directory: "src" is relative; it must begin with /, ~/ or $VAR (did you mean "~/src"?)`,
			"f:5:20: sessionDefaults.terminal.rows: 1 is not between 5 and 1000",
		}},
		"events nobody knows": {header + "notifications: {on: [InputRequired, Idle, InputRequired], terminal: [OSC8]}\n", []string{
			`f:3:37: notifications.on[1]: "Idle" is not one of InputRequired, Stalled, TurnCompleted`,
			`f:3:43: notifications.on[2]: "InputRequired" is there twice`,
			`f:3:70: notifications.terminal[0]: "OSC8" is not one of Bell, OSC9, OSC777`,
		}},
		"notified by a relative path": {header + "notifications: {command: [bin/tell]}\n", []string{`f:3:27: notifications.command[0]: "bin/tell" is relative; it must begin with /, ~/ or $VAR`}},
		"notified by nothing":         {header + "notifications: {command: [\"\", a]}\n", []string{"f:3:27: notifications.command[0]: is required: it is empty"}},
		"notified by a string":        {header + "notifications: {command: notify-send}\n", []string{`f:3:26: notifications.command: must be a list, one word each: ["notify-send"]`}},
		"notified with a NUL":         {header + "notifications: {command: [a, \"\\0\"]}\n", []string{"f:3:30: notifications.command[1]: a word of a command cannot have a NUL byte"}},
		"notified by whom PATH has":   {header + "notifications: {command: [notify-send, ./x, \"\"], on: [], terminal: []}\n", nil},
		"notified too long, too often": {header + "notifications: {minInterval: -1s, timeout: 11m}\n", []string{
			"f:3:30: notifications.minInterval: -1s is not between 0s and 24h", "f:3:44: notifications.timeout: 11m is not between 100ms and 10m",
		}},
		"few turns":     {header + "retention: {turns: 0}\n", []string{"f:3:20: retention.turns: 0 is not between 1 and 100000"}},
		"many turns":    {header + "retention: {turns: 100001}\n", []string{"f:3:20: retention.turns: 100001 is not between 1 and 100000"}},
		"young turns":   {header + "retention: {turnAge: -1s}\n", []string{"f:3:22: retention.turnAge: -1s is not between 0s and 87600h"}},
		"small prompts": {header + "retention: {turnBytes: 1Ki}\n", []string{"f:3:24: retention.turnBytes: 1Ki is not between 1Mi and 64Gi"}},
		"huge prompts":  {header + "retention: {turnBytes: 65Gi, reportSpool: 0}\n", []string{"f:3:24: retention.turnBytes: 65Gi is not between 1Mi and 64Gi", "f:3:43: retention.reportSpool: 0 is not between 64Ki and 16Gi"}},
		"size in bytes": {header + "retention: {reportSpool: 67108864}\n", nil},
		"low numbers": {header + "starts: {maxInFlight: 0}\nmassDeath: {minSessions: 0, percent: 0}\nremoval: {guardMin: 0, guardPercent: 101}\nretention: {events: 0}\nlogging: {verbosity: -1}\n", []string{
			"f:3:23: starts.maxInFlight: 0 is not between 1 and 1000", "f:4:26: massDeath.minSessions: 0 is not between 1 and 100000",
			"f:4:38: massDeath.percent: 0 is not between 1 and 100", "f:5:21: removal.guardMin: 0 is not between 1 and 100000",
			"f:5:38: removal.guardPercent: 101 is not between 1 and 100", "f:6:21: retention.events: 0 is not between 1 and 100000",
			"f:7:22: logging.verbosity: -1 is not between 0 and 10",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := inputs(t, nil)
			path := settings(t, in, c.text)
			e, err := Load(in)
			if c.want == nil {
				require.NoError(t, err)
				assert.Equal(t, 5*time.Minute, e.BackOff.Max.Duration)
				return
			}
			require.Error(t, err)
			got := strings.Split(err.Error(), "\n")
			for i := range got {
				got[i] = "f" + strings.TrimPrefix(got[i], path)
			}
			assert.Equal(t, c.want, got)
			var problem spec.Problem
			require.ErrorAs(t, err, &problem)
			assert.Equal(t, path, problem.File)
		})
	}
}

func TestSettingsFileIsNotReadWithoutABound(t *testing.T) {
	in := inputs(t, nil)
	path := settings(t, in, header+strings.Repeat("#", 3*spec.MaxFileBytes))
	_, err := Load(in)
	assert.EqualError(t, err, path+": the file has 1048577 bytes; at most 1048576 are read: split it")
}
