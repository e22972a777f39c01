// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muxlet/muxlet/actuate/workspace"
	"github.com/muxlet/muxlet/observe"
	"github.com/muxlet/muxlet/observe/process"
	"github.com/muxlet/muxlet/spec"
	"github.com/muxlet/muxlet/spec/manifest"
)

// owned is what the file system says of a path.
type owned struct {
	info fs.FileInfo
	uid  int
}

func lookAtPath(path string) (owned, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return owned{}, cause(err)
	}
	o := owned{info: info, uid: -1}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		o.uid = int(st.Uid)
	}
	return o, nil
}

func (p *patient) lookAtSockets() {
	paths := p.settings.Paths
	for _, socket := range []string{paths.APISocket(), paths.ReportsSocket(), paths.TmuxSocket()} {
		o, err := lookAtPath(socket)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			p.found(levelError, areaSockets, "", "%s cannot be looked at: %v", socket, err)
		case o.info.Mode()&fs.ModeSocket == 0:
			p.found(levelError, areaSockets, "remove it: rm "+shellWord(socket), "%s is no socket", socket)
		case o.uid != p.uid:
			p.found(levelError, areaSockets, "choose another directory with runtimeDir in the settings", "%s belongs to uid %d", socket, o.uid)
		case !answers(socket):
			p.found(levelNote, areaSockets, "", "nobody listens on %s: whoever comes next takes its place", socket)
		default:
			p.found(levelOK, areaSockets, "", "%s is listened on", socket)
		}
	}
	if dir := paths.SocketDir(); dir != paths.RuntimeDir {
		p.found(levelNote, areaSockets, "", "the sockets are in %s, since the path of %s is too long for them", dir, paths.RuntimeDir)
	}
}

// answers says whether somebody listens on a Unix socket.
func answers(socket string) bool {
	conn, err := net.DialTimeout("unix", socket, time.Second)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func (p *patient) lookAtDirectories() {
	dirs := []string{p.settings.StateDir, p.settings.RuntimeDir, p.settings.Paths.SocketDir()}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		p.lookAtPrivate(dir)
	}
	for _, root := range p.reading.Roots {
		switch {
		case root.Access == manifest.Missing:
			p.found(levelNote, areaSockets, "", "there is no %s yet: \"muxlet new\" makes it", root.Path)
		case root.Access != manifest.Readable:
			p.found(levelError, areaSockets, "mend its permissions, or its file system", "%s cannot be read: %s", root.Path, root.Message)
		case unix.Access(root.Path, unix.W_OK) != nil:
			p.found(levelNote, areaSockets, "", "%s cannot be written: suspend, resume, apply and edit are Forbidden for what is declared there", root.Path)
		default:
			p.found(levelOK, areaSockets, "", "%s has %s", root.Path, count(p.filesBelow(root.Path), "file"))
		}
	}
}

func (p *patient) filesBelow(root string) int {
	n := 0
	for _, f := range p.reading.Files {
		if rel, err := filepath.Rel(root, f.Path); err == nil && filepath.IsLocal(rel) {
			n++
		}
	}
	return n
}

func (p *patient) lookAtPrivate(dir string) {
	o, err := lookAtPath(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // the daemon makes it
	case err != nil:
		p.found(levelError, areaSockets, "", "%s cannot be looked at: %v", dir, err)
	case !o.info.IsDir() && o.info.Mode()&fs.ModeSymlink == 0:
		p.found(levelError, areaSockets, "remove it, or choose another directory in the settings", "%s is no directory", dir)
	case o.uid != p.uid:
		p.found(levelError, areaSockets, "choose another one in the settings", "%s belongs to uid %d", dir, o.uid)
	case o.info.IsDir() && o.info.Mode().Perm()&0o077 != 0:
		p.found(levelWarning, areaSockets, "chmod 700 "+shellWord(dir), "%s is open to others (mode %04o)", dir, o.info.Mode().Perm())
	case unix.Access(dir, unix.W_OK|unix.X_OK) != nil:
		p.found(levelError, areaSockets, "chmod 700 "+shellWord(dir), "%s cannot be written", dir)
	}
}

// lookAtSecrets looks at the files that sessions read variables from: whether they can be
// read, and by whom else.
func (p *patient) lookAtSecrets() {
	sessions, _ := p.sessions()
	seen := map[string]bool{}
	for _, doc := range sessions {
		for _, ref := range secretsOf(&doc.Session.Spec.Client) {
			// What the client's own environment would be needed for is left to its start.
			path, err := workspace.Expand(ref.Path, p.lookupEnv)
			if err != nil || seen[path] {
				continue
			}
			seen[path] = true
			p.lookAtSecret(doc.Name, path, ref.Optional)
		}
	}
}

func secretsOf(client *spec.ClientSpec) []spec.FileRef {
	var refs []spec.FileRef
	for _, source := range client.EnvFrom {
		if source.FileRef != nil {
			refs = append(refs, *source.FileRef)
		}
	}
	for _, v := range client.Env {
		if v.ValueFrom != nil && v.ValueFrom.FileRef != nil {
			refs = append(refs, *v.ValueFrom.FileRef)
		}
	}
	return refs
}

func (p *patient) lookAtSecret(session, path string, optional bool) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && optional:
	case err != nil:
		p.found(levelError, areaSockets, "write the file, or make the reference optional", "%s, which session %s reads, cannot be read: %v", path, session, cause(err))
	case unix.Access(path, unix.R_OK) != nil:
		p.found(levelError, areaSockets, "chmod 600 "+shellWord(path), "%s, which session %s reads, cannot be read", path, session)
	case info.Mode().Perm()&0o044 != 0:
		p.found(levelWarning, areaSockets, "chmod 600 "+shellWord(path), "%s, from which session %s gets its environment, can be read by others (mode %04o)", path, session, info.Mode().Perm())
	}
}

func (p *patient) lookAtLimits() {
	limits := process.Limits(p.tmuxServer)
	sessions, _ := p.sessions()
	daemon := observe.Use{}
	if p.daemon != nil {
		daemon = process.Files(p.daemon.PID)
	}
	p.findings = append(p.findings, judgeLimits(limits, daemon, len(sessions))...)
}

// What a session needs of the tmux server's descriptors at most, in tenths, and what is
// kept free; see facts on tmux: one for each pane, one more while something is piped.
const (
	filesPerSession = 12
	filesKept       = 64
	terminalsKept   = 16
)

// judgeLimits says whether that many sessions fit.
func judgeLimits(limits observe.Limits, daemon observe.Use, sessions int) []finding {
	var found []finding
	judge := func(use observe.Use, what, fix string, needed, kept int) {
		left, known := use.Left()
		if !known {
			return
		}
		f := finding{Level: levelOK, Area: areaLimits, Message: sentence(fmt.Sprintf("%s: %d of %d are in use", what, use.Used, use.Limit))}
		switch {
		case left < kept:
			f.Level, f.Fix = levelError, sentence(fix)
			f.Message = sentence(fmt.Sprintf("%s: %d of %d are in use, and %d are kept free: nothing is started", what, use.Used, use.Limit, kept))
		case use.Limit < needed+kept:
			f.Level, f.Fix = levelWarning, sentence(fix)
			f.Message = sentence(fmt.Sprintf("%s: there may be %d, and %s need about %d", what, use.Limit, count(sessions, "declared session"), needed+kept))
		}
		found = append(found, f)
	}
	judge(limits.Terminals, "Pseudo-terminals of the system", "sysctl kernel.pty.max=8192", sessions, terminalsKept)
	judge(limits.ServerFiles, "Open files of the tmux server", fmt.Sprintf("raise its limit (it may be %d): prlimit --nofile", limits.ServerHardLimit), sessions*filesPerSession/10, filesKept/2)
	judge(daemon, "Open files of the daemon", "raise the limit (ulimit -n, LimitNOFILE) and restart the daemon", sessions, filesKept)
	return found
}

func (p *patient) lookAtDisk() {
	var seen []string
	for _, dir := range append([]string{p.settings.StateDir, p.settings.RuntimeDir}, p.settings.Manifests...) {
		at := existing(dir)
		var st unix.Statfs_t
		var id unix.Stat_t
		if unix.Stat(at, &id) != nil || unix.Statfs(at, &st) != nil {
			continue
		}
		device := fmt.Sprint(id.Dev)
		if slices.Contains(seen, device) {
			continue
		}
		seen = append(seen, device)
		p.findings = append(p.findings, judgeDisk(dir, room{
			blocks: st.Blocks, free: st.Bavail * uint64(st.Bsize), files: st.Files, freeFiles: st.Ffree,
		})...)
	}
}

// existing is dir, or what there is above it.
func existing(dir string) string {
	for ; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); err == nil {
			return dir
		}
	}
	return dir
}

// room is what a file system has; blocks and files are 0 where it does not tell.
type room struct{ blocks, free, files, freeFiles uint64 }

// Below these bytes nothing is started, or soon will not be.
const (
	noRoom     = 1 << 20
	littleRoom = 256 << 20
	fewFiles   = 1000
)

func judgeDisk(dir string, r room) []finding {
	f := finding{Level: levelOK, Area: areaDisk, Message: fmt.Sprintf("%s has %d MiB free.", dir, r.free>>20)}
	switch {
	case r.blocks > 0 && r.free < noRoom:
		f.Level, f.Fix = levelError, "Make room; starts go on by themselves."
		f.Message = fmt.Sprintf("%s is on a disk that is full (%d KiB are free): nothing is started.", dir, r.free>>10)
	case r.blocks > 0 && r.free < littleRoom:
		f.Level, f.Fix = levelWarning, "Make room before it is full: nothing is started then."
	case r.files > 0 && r.freeFiles < fewFiles:
		f.Level, f.Fix = levelWarning, "Remove files before there is no inode left: nothing is started then."
		f.Message = fmt.Sprintf("%s is on a disk with %d inodes free.", dir, r.freeFiles)
	}
	return []finding{f}
}

func (p *patient) lookAtClock() {
	newest := time.Time{}
	entries, _ := os.ReadDir(filepath.Join(p.settings.StateDir, "records"))
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	p.findings = append(p.findings, judgeClock(p.now(), newest)...)
	if _, err := os.ReadFile(p.settings.Observation.BootIDPath); err != nil {
		p.found(levelNote, areaDisk, "", "the boot id cannot be read (%v): one line of the log will say unknown", cause(err))
	}
}

// judgeClock compares the clock with the newest record.
func judgeClock(now, newest time.Time) []finding {
	const slack = time.Minute
	if ahead := newest.Sub(now); ahead > slack {
		return []finding{{
			Level: levelWarning, Area: areaDisk,
			Message: fmt.Sprintf("The clock was set back: the newest record is %s ahead of it.", ahead.Round(time.Second)),
			Fix:     "Set the clock (timedatectl set-ntp true); waits are bounded, deadlines and ages are wrong until then.",
		}}
	}
	return []finding{{Level: levelOK, Area: areaDisk, Message: fmt.Sprintf("The clock says %s.", now.UTC().Format(time.DateTime+" UTC"))}}
}

// lookAtServers looks for tmux servers of a muxlet whose daemon is gone, and for panes
// that nobody claims.
func (p *patient) lookAtServers() {
	servers, err := process.AllServers()
	if err != nil {
		p.found(levelNote, areaServers, "", "%v", err)
		return
	}
	before := len(p.findings)
	for _, s := range servers {
		if filepath.Base(s.Socket) == filepath.Base(p.settings.Paths.TmuxSocket()) && (filepath.Base(s.Conf) == tmuxConf || s.Conf == unitConf) {
			p.lookAtServer(s)
		}
	}
	if p.daemon != nil {
		for _, line := range unclaimedLines(*p.daemon) {
			p.found(levelWarning, areaServers, "", "%s", line)
		}
	}
	if len(p.findings) == before {
		p.found(levelOK, areaServers, "", "no server, pane or client was left behind")
	}
}

// lookAtServer says what a tmux server is that looks like one of a muxlet and is not this
// daemon's.
func (p *patient) lookAtServer(s process.TmuxServer) {
	dir := filepath.Dir(s.Socket)
	ours := s.Socket == p.settings.Paths.TmuxSocket()
	switch {
	case s.Process == p.tmuxServer:
	case ours && p.tmuxServer.PID != 0 && unitOf(s.PID).Name == p.service().names.Tmux:
		p.found(levelNote, areaServers, "", "the tmux server of %s (pid %d) waits: sessions go on in the one that was started before (pid %d), and come into it once that has ended",
			p.service().names.Tmux, s.PID, p.tmuxServer.PID)
	case ours && p.daemon != nil:
		p.found(levelWarning, areaServers, fmt.Sprintf("see what is in it, then end it: kill %d", s.PID), "a second tmux server (pid %d) was started on %s", s.PID, s.Socket)
	case !ours && !answers(filepath.Join(dir, filepath.Base(p.settings.Paths.APISocket()))):
		p.found(levelWarning, areaServers, fmt.Sprintf("start its daemon (--runtime-dir %s), or end it with its sessions: tmux -S %s kill-server", shellWord(filepath.Clean(dir)), shellWord(s.Socket)),
			"the tmux server of another muxlet (pid %d, %s) has no daemon", s.PID, s.Socket)
	}
}
