// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muxlet/muxlet/controller/record"
	"github.com/muxlet/muxlet/spec"
)

// profiles are the files below the home directory that each shell reads for a
// login, and the ones that those read as a rule.
var profiles = map[string][]string{
	"bash": {".bash_profile", ".bash_login", ".profile", ".bashrc"},
	"zsh":  {".zshenv", ".zprofile", ".zshrc", ".zlogin"},
	"dash": {".profile"},
	"sh":   {".profile"},
	"fish": {".config/fish/config.fish"},
}

// profileBehind are the files to look at again when a start failed for want of
// something that a profile could have given: a PATH with the program in it, or a
// variable in the path of an env file. What else a profile reads is not known.
func (c *Controller) profileBehind(r record.Record) []string {
	mayMend := []string{spec.ReasonCommandNotFound, spec.ReasonEnvFileMissing, spec.ReasonEnvFileUnreadable, spec.ReasonEnvFileInvalid}
	if r.Spec == nil || r.Spec.Client.ShellMode == spec.ShellNone || !slices.Contains(mayMend, r.Block.Reason) {
		return nil
	}
	home := ""
	for _, pair := range c.Base {
		if value, ok := strings.CutPrefix(pair, "HOME="); ok {
			home = value
		}
	}
	if home == "" {
		return nil
	}
	var files []string
	for _, name := range profiles[filepath.Base(c.Shell)] {
		files = append(files, filepath.Join(home, name))
	}
	return files
}

func anyChangedSince(files []string, moment time.Time) bool {
	return slices.ContainsFunc(files, func(file string) bool { return changedSince(file, moment) })
}
