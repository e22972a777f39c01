// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// The variables of muxlet that $(NAME) stands for in a client class.
const (
	// VarConversationID is the conversation's id; empty for a fresh client whose
	// conversation is Reported.
	VarConversationID = "CONVERSATION_ID"
	// VarPrompt is the prompt of a turn, in submit.command and submit.arguments alone.
	VarPrompt = "PROMPT"
	// VarWorkspace is the directory in which the client runs.
	VarWorkspace = "WORKSPACE"
	// VarHome is HOME of the client's environment.
	VarHome = "HOME"
	// VarConfigDirectory is the class's configDirectory.
	VarConfigDirectory = "CONFIG_DIRECTORY"
	// VarSessionName and VarSessionUID are the session's.
	VarSessionName = "SESSION_NAME"
	VarSessionUID  = "SESSION_UID"
	// VarHook is the command, as a word for a shell, that a hook of the client runs to
	// report.
	VarHook = "MUXLET_HOOK"
	// VarHookSettings is a settings file of Claude Code that wires its hooks to that
	// command.
	VarHookSettings = "MUXLET_HOOK_SETTINGS"
)

// ClassVariables are the names of all of them.
var ClassVariables = []string{
	VarConversationID, VarWorkspace, VarHome, VarConfigDirectory, VarSessionName, VarSessionUID, VarHook, VarHookSettings,
}

// Expand replaces each $(NAME) that lookup knows, and $$ by $. What lookup does not
// know stays as it is written, as do other uses of $: the rules of Kubernetes for
// command and args.
func Expand(text string, lookup func(name string) (value string, known bool)) string {
	var out strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i+1 == len(text) {
			out.WriteString(text)
			return out.String()
		}
		out.WriteString(text[:i])
		text = text[i:]
		end := strings.IndexByte(text, ')')
		switch {
		case text[1] == '$':
			out.WriteByte('$')
			text = text[2:]
		case text[1] == '(' && end > 0:
			if value, known := lookup(text[2:end]); known {
				out.WriteString(value)
			} else {
				out.WriteString(text[:end+1])
			}
			text = text[end+1:]
		default:
			out.WriteByte('$')
			text = text[1:]
		}
	}
}

// ClassRevision tells two declared classes apart by which a running client would have
// been started differently. It is empty for a built-in class: a new version of muxlet
// restarts nobody.
func ClassRevision(c *ClientClass) string {
	if c.Status.BuiltIn {
		return ""
	}
	data, err := json.Marshal(ClientClassSpec{
		Start: c.Spec.Start, Resume: c.Spec.Resume, ConfigDirectory: c.Spec.ConfigDirectory,
		Reports: c.Spec.Reports, Env: c.Spec.Env, UnsetEnv: c.Spec.UnsetEnv,
	})
	if err != nil {
		// Its fields hold nothing that JSON cannot say.
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
