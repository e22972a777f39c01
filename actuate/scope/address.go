// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package scope

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Address is where the bus of the systemd manager of the user uid is: what the
// environment names, which lookup reads, else where a login of that user would find it, so
// that a system service of a user who lingers finds it too. Without one it is empty, and
// why is half a sentence. Nobody is asked: whether somebody answers there is found out by
// who enters a scope.
func Address(lookup func(string) (string, bool), uid int) (address, why string) {
	if given, _ := lookup("DBUS_SESSION_BUS_ADDRESS"); given != "" {
		return judge(given)
	}
	dir, _ := lookup("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = fmt.Sprintf("/run/user/%d", uid)
	}
	return judge("unix:path=" + dbus.EscapeBusAddressValue(filepath.Join(dir, "bus")))
}

func judge(address string) (string, string) {
	path := SocketOf(address)
	switch info, err := os.Stat(path); {
	case !strings.HasPrefix(address, "unix:"):
		return "", "the bus that DBUS_SESSION_BUS_ADDRESS names is not on this machine"
	case path == "":
		return address, ""
	case err != nil:
		return "", fmt.Sprintf("there is no bus of this user at %s", path)
	case info.Mode()&os.ModeSocket == 0:
		return "", path + " is no socket"
	}
	return address, ""
}

// SocketOf is the path of the socket that an address names; empty where it names none, or
// several.
func SocketOf(address string) string {
	rest, found := strings.CutPrefix(address, "unix:path=")
	value, _, _ := strings.Cut(rest, ",")
	path, err := dbus.UnescapeBusAddressValue(value)
	if !found || err != nil || strings.Contains(address, ";") {
		return ""
	}
	return path
}
