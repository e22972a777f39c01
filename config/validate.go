// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muxlet/muxlet/spec"
)

// Validate says what is wrong with settings as they stand in a file, defaults
// filled in. Paths are not expanded yet, and an empty stateDir or runtimeDir
// means the default.
func Validate(c *MuxletConfiguration) field.ErrorList {
	errs := validatePaths(c)
	errs = append(errs, spec.ValidateClassName(c.DefaultClientClassName, field.NewPath("defaultClientClassName"))...)
	errs = append(errs, spec.ValidateSessionDefaults(&c.SessionDefaults, field.NewPath("sessionDefaults"))...)
	errs = append(errs, validateTimes(c)...)
	errs = append(errs, validateCounts(c)...)
	errs = append(errs, validateSizes(c)...)
	errs = append(errs, validateNotifications(&c.Notifications, field.NewPath("notifications"))...)
	if c.Scopes != spec.ScopesAuto && c.Scopes != spec.ScopesNever {
		errs = append(errs, field.Invalid(field.NewPath("scopes"), c.Scopes,
			fmt.Sprintf("%q is not one of %s, %s", c.Scopes, spec.ScopesAuto, spec.ScopesNever)))
	}
	errs = append(errs, validateMetrics(&c.Metrics, field.NewPath("metrics"))...)
	if c.Logging.Format != LogText && c.Logging.Format != LogJSON {
		errs = append(errs, field.Invalid(field.NewPath("logging", "format"), c.Logging.Format,
			fmt.Sprintf("%q is not one of %s, %s", c.Logging.Format, LogText, LogJSON)))
	}
	return errs
}

func validatePaths(c *MuxletConfiguration) field.ErrorList {
	var errs field.ErrorList
	for i, root := range c.Manifests {
		errs = append(errs, anchored(field.NewPath("manifests").Index(i), root)...)
	}
	for _, p := range []struct{ path, value string }{{"stateDir", c.StateDir}, {"runtimeDir", c.RuntimeDir}} {
		if p.value != "" {
			errs = append(errs, anchored(field.NewPath(p.path), p.value)...)
		}
	}
	errs = append(errs, anchored(field.NewPath("observation", "bootIDPath"), c.Observation.BootIDPath)...)
	if c.Tmux.Include != "" {
		errs = append(errs, anchored(field.NewPath("tmux", "include"), c.Tmux.Include)...)
	}
	errs = append(errs, validatePrefix(field.NewPath("tmux", "prefix"), c.Tmux.Prefix)...)
	errs = append(errs, validateServer(&c.Tmux, field.NewPath("tmux"))...)
	command := field.NewPath("tmux", "command")
	if strings.Contains(c.Tmux.Command, "/") || c.Tmux.Command == "" {
		return append(errs, anchored(command, c.Tmux.Command)...)
	}
	return append(errs, noNUL(command, c.Tmux.Command)...)
}

// prefixPattern matches the keys that tmux can read: modifiers, and one character or the
// name of a key.
var prefixPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(None|([CMS]-){0,3}([!-~]|F[1-9]|F1[0-2]|Space|Tab|BTab|Enter|Escape|BSpace|Up|Down|Left|Right|Home|End|IC|DC|Insert|Delete|NPage|PPage|PageUp|PageDown))$`)
})

func validatePrefix(at *field.Path, key string) field.ErrorList {
	if prefixPattern().MatchString(key) {
		return nil
	}
	return field.ErrorList{field.Invalid(at, key, fmt.Sprintf("%q is no key of tmux, such as C-b, M-Space or F12, and not None", key))}
}

// unitPattern matches the names that systemd takes for a service.
var unitPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9:_.@\\-]+\.service$`) })

func validateServer(t *Tmux, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if t.Server != TmuxManaged && t.Server != TmuxExternal {
		errs = append(errs, field.Invalid(at.Child("server"), t.Server, fmt.Sprintf("%q is not one of %s, %s", t.Server, TmuxManaged, TmuxExternal)))
	}
	if len(t.Unit) > 255 || !unitPattern().MatchString(t.Unit) {
		errs = append(errs, field.Invalid(at.Child("unit"), t.Unit, fmt.Sprintf("%q is no name of a service of systemd, such as %s", t.Unit, DefaultTmuxUnit)))
	}
	return errs
}

// anchored wants a path that does not depend on where the daemon is started.
func anchored(at *field.Path, path string) field.ErrorList {
	switch {
	case path == "":
		return field.ErrorList{field.Required(at, "it is empty")}
	case filepath.IsAbs(path), path == "~", strings.HasPrefix(path, "~/"), path[0] == '$':
		return noNUL(at, path)
	}
	return field.ErrorList{field.Invalid(at, path, fmt.Sprintf("%q is relative; it must begin with /, ~/ or $VAR", path))}
}

func noNUL(at *field.Path, path string) field.ErrorList {
	if strings.ContainsRune(path, 0) {
		return field.ErrorList{field.Invalid(at, path, "a path cannot have a NUL byte")}
	}
	return nil
}

func validateTimes(c *MuxletConfiguration) field.ErrorList {
	const day = 24 * time.Hour
	var errs field.ErrorList
	for _, t := range []struct {
		path      *field.Path
		value     metav1.Duration
		low, high time.Duration
	}{
		{field.NewPath("tmux", "timeout"), c.Tmux.Timeout, 100 * time.Millisecond, time.Minute},
		{field.NewPath("resyncPeriod"), c.ResyncPeriod, 100 * time.Millisecond, time.Hour},
		{field.NewPath("observation", "unknownGracePeriod"), c.Observation.UnknownGracePeriod, 0, 10 * time.Minute},
		{field.NewPath("backOff", "initial"), c.BackOff.Initial, time.Millisecond, day},
		{field.NewPath("backOff", "max"), c.BackOff.Max, time.Millisecond, day},
		{field.NewPath("backOff", "resetAfter"), c.BackOff.ResetAfter, time.Millisecond, day},
		{field.NewPath("removal", "settle"), c.Removal.Settle, 0, time.Hour},
		{field.NewPath("activity", "reportTTL"), c.Activity.ReportTTL, time.Second, day},
		{field.NewPath("activity", "focusAfter"), c.Activity.FocusAfter, 100 * time.Millisecond, time.Hour},
		{field.NewPath("notifications", "minInterval"), c.Notifications.MinInterval, 0, day},
		{field.NewPath("notifications", "timeout"), c.Notifications.Timeout, 100 * time.Millisecond, spec.MaxNotificationTimeout},
		{field.NewPath("retention", "turnAge"), c.Retention.TurnAge, 0, 3650 * day},
		{field.NewPath("retention", "archive"), c.Retention.Archive, 0, 3650 * day},
	} {
		if t.value.Duration < t.low || t.value.Duration > t.high {
			errs = append(errs, field.Invalid(t.path, t.value.Duration.String(),
				fmt.Sprintf("%s is not between %s and %s", short(t.value.Duration), short(t.low), short(t.high))))
		}
	}
	if len(errs) == 0 && c.BackOff.Initial.Duration > c.BackOff.Max.Duration {
		errs = append(errs, field.Invalid(field.NewPath("backOff", "max"), c.BackOff.Max.Duration.String(),
			fmt.Sprintf("%s is less than backOff.initial, which is %s", short(c.BackOff.Max.Duration), short(c.BackOff.Initial.Duration))))
	}
	return errs
}

func validateCounts(c *MuxletConfiguration) field.ErrorList {
	var errs field.ErrorList
	for _, n := range []struct {
		path             *field.Path
		value, low, high int32
	}{
		{field.NewPath("starts", "maxInFlight"), c.Starts.MaxInFlight, 1, 1000},
		{field.NewPath("massDeath", "minSessions"), c.MassDeath.MinSessions, 1, 100_000},
		{field.NewPath("massDeath", "percent"), c.MassDeath.Percent, 1, 100},
		{field.NewPath("removal", "guardMin"), c.Removal.GuardMin, 1, 100_000},
		{field.NewPath("removal", "guardPercent"), c.Removal.GuardPercent, 1, 100},
		{field.NewPath("retention", "events"), c.Retention.Events, 1, 100_000},
		{field.NewPath("retention", "turns"), c.Retention.Turns, 1, 100_000},
		{field.NewPath("logging", "verbosity"), c.Logging.Verbosity, 0, 10},
	} {
		if n.value < n.low || n.value > n.high {
			errs = append(errs, field.Invalid(n.path, n.value, fmt.Sprintf("%d is not between %d and %d", n.value, n.low, n.high)))
		}
	}
	return errs
}

func validateSizes(c *MuxletConfiguration) field.ErrorList {
	var errs field.ErrorList
	for _, q := range []struct {
		name      string
		value     resource.Quantity
		low, high string
	}{
		{"turnBytes", c.Retention.TurnBytes, "1Mi", "64Gi"},
		{"archiveBytes", c.Retention.ArchiveBytes, "1Mi", "64Gi"},
		{"screenBytes", c.Retention.ScreenBytes, "1Mi", "64Gi"},
		{"reportSpool", c.Retention.ReportSpool, "64Ki", "16Gi"},
	} {
		if q.value.Cmp(resource.MustParse(q.low)) < 0 || q.value.Cmp(resource.MustParse(q.high)) > 0 {
			errs = append(errs, field.Invalid(field.NewPath("retention", q.name), q.value.String(),
				fmt.Sprintf("%s is not between %s and %s", &q.value, q.low, q.high)))
		}
	}
	return errs
}

func validateNotifications(n *Notifications, at *field.Path) field.ErrorList {
	errs := slices.Concat(among(at.Child("on"), n.On, spec.NotificationEvents), among(at.Child("terminal"), n.Terminal, spec.TerminalNotifications))
	for i, word := range n.Command {
		at := at.Child("command").Index(i)
		switch {
		case strings.ContainsRune(word, 0):
			errs = append(errs, field.Invalid(at, word, "a word of a command cannot have a NUL byte"))
		case i == 0 && (word == "" || strings.Contains(word, "/") || strings.HasPrefix(word, "$")):
			errs = append(errs, anchored(at, word)...)
		}
	}
	return errs
}

// among wants each word to be one of those that are known, once.
func among[T ~string](at *field.Path, words, known []T) field.ErrorList {
	var errs field.ErrorList
	for i, word := range words {
		switch {
		case !slices.Contains(known, word):
			names := make([]string, len(known))
			for i, k := range known {
				names[i] = string(k)
			}
			errs = append(errs, field.Invalid(at.Index(i), word, fmt.Sprintf("%q is not one of %s", word, strings.Join(names, ", "))))
		case slices.Contains(words[:i], word):
			errs = append(errs, field.Invalid(at.Index(i), word, fmt.Sprintf("%q is there twice", word)))
		}
	}
	return errs
}

// short writes a duration as a person does: 5m, not 5m0s.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
