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

// lingering has a file for each user whose manager runs without a login; see
// loginctl(1).
const lingering = "/var/lib/systemd/linger"

// User is whose systemd manager is meant.
type User struct {
	UID  int
	Name string
}

// Address is where the bus of the systemd manager of a user is: what the environment
// names, which lookup reads, else where a login of that user would find it. That is for a
// system service: its clients would end with the user's last login, unless she lingers.
// Without one it is empty, and why is half a sentence. Nobody is asked: whether somebody
// answers there is found out by who enters a scope.
func Address(lookup func(string) (string, bool), user User) (address, why string) {
	return addressOf(lookup, user, lingering)
}

func addressOf(lookup func(string) (string, bool), user User, lingering string) (address, why string) {
	if given, _ := lookup("DBUS_SESSION_BUS_ADDRESS"); given != "" {
		return judge(given)
	}
	dir, _ := lookup("XDG_RUNTIME_DIR")
	if dir != "" {
		return judge("unix:path=" + dbus.EscapeBusAddressValue(filepath.Join(dir, "bus")))
	}
	if _, err := os.Stat(filepath.Join(lingering, user.Name)); user.Name == "" || err != nil {
		return "", "XDG_RUNTIME_DIR is not set, and the manager of this user does not outlive a logout (loginctl enable-linger)"
	}
	return judge(fmt.Sprintf("unix:path=/run/user/%d/bus", user.UID))
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
