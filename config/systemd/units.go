// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

// Package systemd holds the units by which systemd runs muxlet: one for the daemon, one for
// the tmux server that owns the sessions, the daemon's socket, and a slice; for one user's
// manager, or as templates by the user's name for the system's. It renders text and writes
// nothing.
package systemd

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/muxlet/muxlet/config"
)

//go:embed units/*.tmpl
var files embed.FS

// Where a system's units and its exception for needrestart are.
const (
	SystemDir       = "/etc/systemd/system"
	NeedrestartFile = "/etc/needrestart/conf.d/muxlet.conf"
)

// Settings are what the units depend on.
type Settings struct {
	// System renders templates by the user's name for the system's manager.
	System bool
	// Binary and Tmux are the absolute paths of the two programs.
	Binary, Tmux string
	// Paths of the user's daemon; for system units they follow from the user's name.
	Paths config.Paths
	// UserRuntimeDir is the user's XDG_RUNTIME_DIR: paths below it are written with %t.
	UserRuntimeDir string
	// Arguments of the daemon.
	Arguments []string
	// Variables are further ones of the daemon.
	Variables []Variable
	// Path is the PATH of the daemon, and Lang the LANG of the panes; empty for the manager's.
	Path, Lang string
}

// Variable is one of the environment.
type Variable struct{ Name, Value string }

// File is one file that systemd, or needrestart, reads.
type File struct {
	// Name of the unit; for the exception of needrestart its path.
	Name string
	// Content with its mark.
	Content []byte
}

// Names are those of the units, for the system's manager those of one user.
type Names struct{ Daemon, Tmux, Socket, Slice string }

// UnitNames are the names of the units; for the system's manager with the user's name, and
// those of the templates without one.
func UnitNames(system bool, user string) Names {
	at := ""
	if system {
		at = "@" + user
	}
	return Names{Daemon: "muxlet" + at + ".service", Tmux: "muxlet-tmux" + at + ".service", Socket: "muxlet" + at + ".socket", Slice: "muxlet.slice"}
}

// Units renders all files of the settings.
func Units(s Settings) ([]File, error) {
	names := UnitNames(s.System, "")
	wanted := []struct{ template, name string }{
		{"muxlet-tmux.service", names.Tmux}, {"muxlet.socket", names.Socket}, {"muxlet.service", names.Daemon}, {"muxlet.slice", names.Slice},
	}
	if s.System {
		wanted = append(wanted, struct{ template, name string }{"needrestart.conf", NeedrestartFile})
	}
	var out []File
	for _, w := range wanted {
		text, err := files.ReadFile("units/" + w.template + ".tmpl")
		if err != nil {
			return nil, fmt.Errorf("render unit %s: %w", w.name, err)
		}
		var b bytes.Buffer
		b.WriteString(editionStart + edition(text) + "\n")
		t, err := template.New(w.name).Parse(string(text))
		if err == nil {
			err = t.Execute(&b, view{s})
		}
		if err != nil {
			return nil, fmt.Errorf("render unit %s: %w", w.name, err)
		}
		out = append(out, File{Name: w.name, Content: Mark(b.Bytes())})
	}
	return out, nil
}

// editionStart begins the line that says of which template a file is.
const editionStart = "# Edition "

// edition tells one text of a template from another one.
func edition(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// Current says whether a file is of the template that this muxlet would use for it, whatever
// was filled in.
func Current(name string, file []byte) bool {
	text, err := files.ReadFile("units/" + strings.Replace(name, "@", "", 1) + ".tmpl")
	return err == nil && bytes.Contains(file, []byte("\n"+editionStart+edition(text)+"\n"))
}

// view is what the templates see.
type view struct{ Settings }

// TmuxUnit is the name of the tmux server's unit as the daemon's unit says it.
func (v view) TmuxUnit() string { return UnitNames(v.System, "%i").Tmux }

// SocketUnit is that of the socket.
func (v view) SocketUnit() string { return UnitNames(v.System, "%i").Socket }

// place is a path as systemd expands it.
type place string

func (v view) place(path string) place {
	escaped := strings.ReplaceAll(path, "%", "%%")
	if rest, ok := strings.CutPrefix(path, v.UserRuntimeDir+"/"); ok && v.UserRuntimeDir != "" {
		escaped = "%t/" + strings.ReplaceAll(rest, "%", "%%")
	}
	return place(escaped)
}

// systemRuntimeDir is where the daemon of the user of a template has its sockets.
const systemRuntimeDir = place("/run/muxlet-%i")

// RuntimeDir of the daemon.
func (v view) RuntimeDir() place {
	if v.System {
		return systemRuntimeDir
	}
	return v.place(v.Paths.RuntimeDir)
}

// SocketDir is where its sockets are.
func (v view) SocketDir() place {
	if v.System {
		return systemRuntimeDir
	}
	return v.place(v.Paths.SocketDir())
}

// TmuxSocket is the path of the tmux server.
func (v view) TmuxSocket() place {
	return v.SocketDir() + "/" + place(filepath.Base(v.Paths.TmuxSocket()))
}

// APISocket is the path of the API.
func (v view) APISocket() place {
	return v.SocketDir() + "/" + place(filepath.Base(v.Paths.APISocket()))
}

// Plain is a path that takes the rest of its line.
func (v view) Plain(path place) string { return string(path) }

// Program is the path of a program, the first word of a command line, in which no
// variable is expanded (systemd.service(5), COMMAND LINES).
func (v view) Program(path string) string { return quote(strings.ReplaceAll(path, "%", "%%")) }

// Word is a further word of a command line.
func (v view) Word(word any) string {
	var text string
	switch word := word.(type) {
	case place:
		text = string(word)
	default:
		text = string(v.place(fmt.Sprint(word)))
	}
	return quote(strings.ReplaceAll(text, "$", "$$"))
}

// Assign is one assignment of Environment=, in which a $ means nothing.
func (v view) Assign(name string, value any) string {
	text, ok := value.(place)
	if !ok {
		text = v.place(fmt.Sprint(value))
	}
	return quote(name + "=" + string(text))
}

// quote makes one word (systemd.syntax(7), QUOTING) where the text would not be one as it is.
func quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@:=%,$", r)
	}
	if text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(text) + `"`
}

// markStart begins the first line of each file that muxlet writes.
const markStart = "# Written by `muxlet install`. What you want otherwise belongs in a drop-in (systemctl edit). sha256:"

// Mark puts a line before content by which a file that somebody has edited is known.
func Mark(content []byte) []byte {
	sum := sha256.Sum256(content)
	return append([]byte(markStart+hex.EncodeToString(sum[:])+"\n"), content...)
}

// Edited says whether a file is not, or not any more, as muxlet has written it.
func Edited(file []byte) bool {
	mark, rest, _ := bytes.Cut(file, []byte("\n"))
	sum, ours := strings.CutPrefix(string(mark), markStart)
	want := sha256.Sum256(rest)
	return !ours || sum != hex.EncodeToString(want[:])
}
