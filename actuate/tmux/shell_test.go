// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package tmux

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheAccountsShellIsUsedWhenItIsKnownToWork(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"fish", "zsh", "tcsh", "nologin"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
	blunt := filepath.Join(dir, "bash")
	require.NoError(t, os.WriteFile(blunt, nil, 0o600))
	passwd := filepath.Join(dir, "passwd")
	require.NoError(t, os.WriteFile(passwd, []byte(
		"root:x:0:0:root:/root:/bin/sh\n# comment\nbroken:x:1\n"+
			"fish:x:10:10::/h:"+dir+"/fish\nzsh:x:11:10::/h:"+dir+"/zsh\ntcsh:x:12:10::/h:"+dir+"/tcsh\n"+
			"none:x:13:10::/h:\nnologin:x:14:10::/h:"+dir+"/nologin\ngone:x:15:10::/h:/no/such/bash\n"+
			"blunt:x:16:10::/h:"+blunt+"\nlast:x:100:10::/h:"+dir+"/fish"), 0o600))
	for uid, want := range map[int]Shell{
		0:   {Path: "/bin/sh", Supported: true, Account: "/bin/sh"},
		10:  {Path: dir + "/fish", Supported: true, Account: dir + "/fish"},
		11:  {Path: dir + "/zsh", Supported: true, Account: dir + "/zsh"},
		12:  {Path: "/bin/sh", Account: dir + "/tcsh"},
		13:  {Path: "/bin/sh", Supported: true, Account: "/bin/sh"},
		14:  {Path: "/bin/sh", Account: dir + "/nologin"},
		15:  {Path: "/bin/sh", Account: "/no/such/bash"},
		16:  {Path: "/bin/sh", Account: blunt},
		100: {Path: dir + "/fish", Supported: true, Account: dir + "/fish"},
		1:   {Path: "/bin/sh"},
		999: {Path: "/bin/sh"},
	} {
		got, err := AccountShell(passwd, uid, "")
		require.NoError(t, err)
		assert.Equal(t, want, got, uid)
	}
	got, err := AccountShell(filepath.Join(dir, "gone"), 0, "")
	require.Error(t, err)
	assert.Equal(t, Shell{Path: "/bin/sh"}, got)
}

// macOS and directory services keep accounts elsewhere: SHELL tells there, and
// nowhere else.
func TestAnAccountThatIsNotInPasswdHasTheShellOfItsEnvironment(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"zsh", "tcsh"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
	}
	passwd := filepath.Join(dir, "passwd")
	require.NoError(t, os.WriteFile(passwd, []byte("root:x:0:0:root:/root:/bin/sh\nservice:x:1:1::/:/usr/sbin/nologin\n"), 0o600))
	for given, want := range map[string]Shell{
		dir + "/zsh":  {Path: dir + "/zsh", Supported: true, Account: dir + "/zsh"},
		dir + "/tcsh": {Path: "/bin/sh", Account: dir + "/tcsh"},
		dir + "/fish": {Path: "/bin/sh", Account: dir + "/fish"},
		"zsh":         {Path: "/bin/sh", Account: "zsh"},
		"":            {Path: "/bin/sh"},
	} {
		for _, file := range []string{passwd, dir + "/no passwd"} {
			got, _ := AccountShell(file, 1000, given)
			assert.Equal(t, want, got, given)
		}
		got, err := AccountShell(passwd, 0, given)
		require.NoError(t, err)
		assert.Equal(t, "/bin/sh", got.Account, "who is in passwd has the shell that is there")
		got, err = AccountShell(passwd, 1, given)
		require.NoError(t, err)
		assert.Equal(t, Shell{Path: "/bin/sh", Account: "/usr/sbin/nologin"}, got)
	}
}

func TestWhyAnotherShellIsUsedIsOneSentence(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/bash", nil, 0o600))
	require.NoError(t, os.Mkdir(dir+"/zsh", 0o700))
	for shell, want := range map[string]string{
		"/bin/false":        "The account's shell /bin/false refuses logins",
		"/usr/sbin/nologin": "The account's shell /usr/sbin/nologin refuses logins",
		"/bin/tcsh":         "The account's shell /bin/tcsh is not one that muxlet knows to work (bash, zsh, dash, sh, fish)",
		"/usr/bin/nu":       "The account's shell /usr/bin/nu is not one that muxlet knows to work (bash, zsh, dash, sh, fish)",
		dir + "/fish":       "The account's shell " + dir + "/fish does not exist",
		dir + "/bash":       "The account's shell " + dir + "/bash cannot be executed",
		dir + "/zsh":        "The account's shell " + dir + "/zsh cannot be executed",
		"bash":              "The account's shell bash is not an absolute path",
	} {
		assert.Equal(t, want, judgeShell(shell).Problem())
	}
	assert.Equal(t, "The account is not in /etc/passwd, and SHELL is not set", Shell{Path: "/bin/sh"}.Problem())
	assert.Empty(t, Shell{Path: "/bin/sh", Supported: true}.Problem())
}
