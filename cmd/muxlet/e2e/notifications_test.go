// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/muxlet/muxlet/spec"
)

// teller is a person's command: it writes what it is told into a file of its own, whole or
// not at all, and then does what the test says.
const teller = `#!/bin/sh
mkdir -p "$HOME/told"
env | grep ^MUXLET_ >"$HOME/told/.$$"
mv "$HOME/told/.$$" "$HOME/told/$(date +%s%N)-$$"
[ ! -e "$HOME/then" ] || . "$HOME/then"
`

func (w *World) tellers() settings {
	w.Helper()
	require.NoError(w, os.MkdirAll(w.home+"/bin", 0o755))
	w.write(w.home+"/bin/tell", teller)
	require.NoError(w, os.Chmod(w.home+"/bin/tell", 0o755))
	return settings{"notifications": settings{"command": []string{"~/bin/tell"}, "minInterval": "1s", "timeout": "20s"}}
}

// told is what the person was told so far, one after the other.
func (w *World) told() (all []map[string]string) {
	w.Helper()
	files, err := filepath.Glob(w.home + "/told/[0-9]*")
	require.NoError(w, err)
	for _, file := range files {
		values := map[string]string{}
		for line := range strings.Lines(w.read(file)) {
			name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
			values[name] = value
		}
		all = append(all, values)
	}
	return all
}

// isTold waits until the person was told so many times, and returns the last.
func (w *World) isTold(times int) map[string]string {
	w.Helper()
	w.waitFor(fmt.Sprintf("the person is told (%d)", times), func() bool { return len(w.told()) >= times })
	all := w.told()
	require.Len(w, all, times)
	return all[times-1]
}

func TestAPersonIsNotifiedOfAQuestionOnceAcrossKillsOfTheDaemonAndOfTheEndOfTheTurn(t *testing.T) {
	t.Parallel()
	eachAgent(t, func(t *testing.T, a agent) {
		w := newAgentWorld(t, a)
		w.configure(w.tellers())
		w.start()
		w.write("s.yaml", w.agentDocument("s", w.work, a.asks))
		w.ready("s")
		w.model.behaves(control{Mode: "tool", Command: "touch " + filepath.Join(w.work, "made"), Escalate: true, Count: 1})
		w.types("s", "alpha")
		s := w.asked("s", spec.ReasonPermissionRequired)
		told := w.isTold(1)
		assert.Equal(t, "InputRequired", told["MUXLET_EVENT"])
		assert.Equal(t, "s", told["MUXLET_SESSION"])
		assert.Equal(t, spec.ReasonPermissionRequired, told["MUXLET_REASON"])
		assert.Equal(t, "s waits for you (PermissionRequired): the client asks whether it may do something", told["MUXLET_MESSAGE"])
		assert.Equal(t, w.work, told["MUXLET_DIRECTORY"])
		assert.Equal(t, "muxlet attach s", told["MUXLET_ATTACH"])
		since, err := time.Parse(time.RFC3339, told["MUXLET_SINCE"])
		require.NoError(t, err)
		assert.Less(t, time.Since(since).Abs(), 2*time.Minute)
		for range 2 {
			w.kill()
			w.start()
			w.asked("s", spec.ReasonPermissionRequired)
			w.holds("nobody is told again", 4*time.Second, func() bool { return len(w.told()) == 1 })
		}
		w.model.behaves(control{Mode: "ok"})
		w.keys(s.Status.Tmux.Pane, "Enter")
		if a.class != "gem" {
			// One without hooks may have worked between two looks at its screen.
			told = w.isTold(2)
			assert.Equal(t, "TurnCompleted", told["MUXLET_EVENT"])
			assert.Equal(t, "s has ended its turn", told["MUXLET_MESSAGE"])
		}
		for _, values := range w.told() {
			for name, value := range values {
				assert.NotContains(t, value, "alpha", "%s has something of a prompt", name)
				assert.NotContains(t, value, "touch", "%s has something of the screen", name)
			}
		}
	})
}

// What fails is told where a person looks, and a try shows it.
func TestANotificationThatFailsIsShownAndCanBeTried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	assert.Contains(t, w.refuses(1, "config", "test-notification"), "set notifications.command or notifications.terminal")
	w.configure(w.tellers())
	w.uses("notifications.command", w.home+"/bin/tell")
	w.write(w.home+"/then", "echo the bus is away >&2; exit 3")
	w.write("a.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: a}\nspec: {client: {command: [sleep, \"1000\"]}, workspace: {directory: "+w.home+"/absent}}\n")
	w.waitFor("it is tried three times", func() bool { return len(w.told()) == 3 })
	const why = "the command tell ended with exit status 3: the bus is away"
	assert.Contains(t, w.events("a"), "Nobody was notified of it (Stalled): "+why)
	got := w.muxlet("get")
	assert.Contains(t, got.errOut, why)
	assert.Contains(t, got.errOut, "muxlet config test-notification")
	assert.Contains(t, w.log(), why)
	assert.Contains(t, w.refuses(1, "config", "test-notification"), why)

	w.write(w.home+"/then", "exit 0")
	assert.Contains(t, w.does("config", "test-notification", "--event", "TurnCompleted"), "The command exited with 0 after ")
	told := w.isTold(5)
	assert.Equal(t, "true", told["MUXLET_TEST"])
	assert.Equal(t, "TurnCompleted", told["MUXLET_EVENT"])
	assert.NotContains(t, w.muxlet("get").errOut, why)
	assert.Contains(t, w.does("config", "view"), "command:\n    - "+w.home+"/bin/tell # file")
}

// K6.
func TestACommandThatHangsEndsAtItsTimeoutAndWithTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	given := w.tellers()
	w.write(w.home+"/then", "echo $$ >\"$HOME/hangs\"; while :; do sleep 1; done")
	given.section("notifications")["timeout"] = "1s"
	w.configure(given)
	w.start()
	assert.Contains(t, w.refuses(1, "config", "test-notification"), "the command tell was killed after 1s")
	hangs := func() int {
		pid, err := strconv.Atoi(strings.TrimSpace(w.read(w.home + "/hangs")))
		require.NoError(t, err)
		return pid
	}
	gone := func(pid int) func() bool {
		return func() bool { _, runs := w.look(pid); return !runs }
	}
	w.waitFor("the command is gone", gone(hangs()))

	given.section("notifications")["timeout"] = "10m"
	w.configure(given)
	w.uses("notifications.timeout", "10m")
	require.NoError(t, os.Remove(w.home+"/hangs"))
	w.write("a.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: a}\nspec: {client: {command: [sleep, \"1000\"]}, workspace: {directory: "+w.home+"/absent}}\n")
	w.waitFor("the command hangs", func() bool { _, err := os.Stat(w.home + "/hangs"); return err == nil && w.read(w.home+"/hangs") != "" })
	pid := hangs()
	w.kill()
	w.waitFor("it has ended with the daemon", gone(pid))
	w.start()
	w.holds("it is not told again", 3*time.Second, func() bool { return len(w.told()) == 2 })
}

func (w *World) notificationSample(file string) settings {
	w.Helper()
	data, err := os.ReadFile("../../../config/samples/notifications/" + file)
	require.NoError(w, err)
	var all settings
	// To others than version 3 the word "on" is a truth.
	require.NoError(w, yaml.Unmarshal(data, &all))
	return settings{"notifications": all["notifications"]}
}

func TestTheSampleOfTheDesktopShowsABanner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(w.notificationSample("desktop.yaml"))
	w.write(w.dir+"/bin/notify-send", "#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$HOME/banner\"\n")
	require.NoError(t, os.Chmod(w.dir+"/bin/notify-send", 0o755))
	w.start()
	w.does("config", "test-notification")
	assert.Equal(t, "--app-name=muxlet\n--urgency=critical\n--\nmuxlet: example\nexample waits for you (Test): this is a test\n", w.read(w.home+"/banner"))
	w.does("config", "test-notification", "--event", "TurnCompleted")
	assert.Contains(t, w.read(w.home+"/banner"), "--urgency=low\n")
}

// The URL is in no argv: curl reads it.
func TestTheSampleOfTheWebhookPostsAMessage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	var mu sync.Mutex
	var posted []string
	chat := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		posted = append(posted, r.URL.Path+" "+r.Header.Get("Content-Type")+" "+string(body))
		if strings.Contains(r.URL.Path, "revoked") {
			rw.WriteHeader(http.StatusForbidden)
		}
	}))
	defer chat.Close()
	w := newWorld(t)
	w.configure(w.notificationSample("webhook.yaml"))
	webhook := w.home + "/.config/muxlet/webhook"
	w.write(webhook, `url = "`+chat.URL+`/services/SECRET"`)
	w.write("a.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: a}\nspec: {client: {command: [sleep, \"1000\"]}, workspace: {directory: '"+w.home+"/a \"b\" \\c'}}\n")
	w.start()
	messages := func() []string { mu.Lock(); defer mu.Unlock(); return posted }
	w.waitFor("the chat is told", func() bool { return len(messages()) == 1 })
	path, body, _ := strings.Cut(messages()[0], " application/json ")
	assert.Equal(t, "/services/SECRET", path)
	var message struct{ Text string }
	require.NoError(t, json.Unmarshal([]byte(body), &message), body)
	assert.True(t, strings.HasPrefix(message.Text, "a is stuck (WorkspaceMissing): The directory "+w.home+`/a "b" \c does not exist`), message.Text)
	assert.True(t, strings.HasSuffix(message.Text, " — muxlet attach a"), message.Text)

	w.write(webhook, `url = "`+chat.URL+`/revoked/SECRET"`)
	failed := w.refuses(1, "config", "test-notification")
	assert.Contains(t, failed, "the command sh ended with exit status 22: curl: (22) The requested URL returned error: 403")
	assert.NotContains(t, w.log()+failed, "SECRET")
}

func TestTheSampleOfTheTerminalTellsWhoIsAttached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.configure(w.notificationSample("terminal.yaml"))
	w.start()
	assert.Contains(t, w.refuses(1, "config", "test-notification"), "no terminal is attached")
	w.several(1, "stay")
	const name = "s0"
	person := w.open("attach", name)
	w.waitFor("the person is attached", func() bool { return w.get(name).Status.Tmux.Attached == 1 })
	assert.Equal(t, "Terminals that were told: 1.\n", w.does("config", "test-notification"))
	person.shows("\x1b]9;muxlet: example waits for you (Test): this is a test\a\a")
	w.write("b.yaml", "apiVersion: muxlet.dev/v1alpha1\nkind: Session\nmetadata: {name: b}\nspec: {client: {command: [sleep, \"1000\"]}, workspace: {directory: "+w.home+"/absent}}\n")
	person.shows("\x1b]9;muxlet: b is stuck (WorkspaceMissing): The directory " + w.home + "/absent does not exist")
}
