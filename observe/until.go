// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muxlet/muxlet/spec/lazyregexp"
)

const (
	// maxUntil is how long ahead a client may be said to be unusable; what is further
	// away was misread.
	maxUntil = 366 * 24 * time.Hour
	// minuteSlack: clients write times without seconds.
	minuteSlack = time.Minute
	// yearSlack is how long ago a date without a year may be before next year's is
	// meant.
	yearSlack = 180 * 24 * time.Hour
)

var (
	untilZone     = lazyregexp.New(`\(([A-Za-z0-9_+\-/]+)\)`)
	untilWord     = lazyregexp.New(`\b(?:at|on|again|try|retry|resets?|until|and|the)\b|[,.]+(?:\s|$)`)
	untilOrdinal  = lazyregexp.New(`\b(\d{1,2})(?:st|nd|rd|th)\b`)
	untilMeridiem = lazyregexp.New(`(\d)\s*([ap])\.?m\b\.?`)
	untilEpoch    = lazyregexp.New(`^\d{10}(\d{3})?$`)
	untilAmount   = lazyregexp.New(`(\d+(?:\.\d+)?)\s*(weeks?|w|days?|d|hours?|hrs?|h|minutes?|mins?|m|seconds?|secs?|s)\b\s*`)
	untilJoined   = lazyregexp.New(`([a-z])(\d)`)
)

var (
	clockLayouts = []string{"3:04pm", "3pm", "15:04", "15:04:05"}
	dayLayouts   = []string{"Jan 2", "January 2", "2 Jan", "2 January"}
	yearLayouts  = []string{"Jan 2 2006", "January 2 2006", "2 Jan 2006", "2 January 2006", "2006-01-02"}
)

// ParseUntil reads when a client may be used again, as clients write it: a time of
// day ("2:38 PM", "3pm (UTC)"), a date with or without year and time ("Nov 30 at
// 3pm", "Nov 30th, 2026 3:12 PM"), a weekday ("Mon 9:00 AM"), a while ("in 2 hours"),
// RFC 3339, or seconds or milliseconds since 1970. now is when it was written, and
// its location what a time without a zone is in. A time of day that has passed means
// tomorrow's. What cannot be read is the zero time.
func ParseUntil(text string, now time.Time) time.Time {
	text = strings.TrimSpace(text)
	if until, err := time.Parse(time.RFC3339, strings.TrimRight(text, ".")); err == nil {
		return plausible(until, now)
	}
	if m := untilZone.Get().FindStringSubmatchIndex(text); m != nil {
		zone, err := time.LoadLocation(text[m[2]:m[3]])
		if err != nil {
			return time.Time{}
		}
		now, text = now.In(zone), text[:m[0]]+text[m[1]:]
	}
	text = untilMeridiem.ReplaceAllString(strings.ToLower(text), "${1}${2}m ")
	text = untilOrdinal.ReplaceAllString(untilWord.ReplaceAllString(text, " "), "$1")
	text = strings.Join(strings.Fields(text), " ")
	for _, parse := range []func(string, time.Time) (time.Time, bool){parseEpoch, parseWhile, parseClock, parseDate, parseWeekday} {
		if until, ok := parse(text, now); ok {
			return plausible(until, now)
		}
	}
	return time.Time{}
}

func plausible(until, now time.Time) time.Time {
	if until.Sub(now) > maxUntil {
		return time.Time{}
	}
	return until
}

func parseEpoch(text string, _ time.Time) (time.Time, bool) {
	m := untilEpoch.FindStringSubmatch(text)
	if m == nil {
		return time.Time{}, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if m[1] != "" {
		return time.UnixMilli(n), err == nil
	}
	return time.Unix(n, 0), err == nil
}

// parseWhile reads "in 2 hours", "2h30m", "1 day 3 hours".
func parseWhile(text string, now time.Time) (time.Time, bool) {
	text = untilJoined.ReplaceAllString(strings.TrimPrefix(text, "in "), "$1 $2")
	var sum time.Duration
	amounts := untilAmount.Get().FindAllStringSubmatch(text, -1)
	if len(amounts) == 0 || strings.TrimSpace(untilAmount.ReplaceAllString(text, "")) != "" {
		return time.Time{}, false
	}
	unit := map[byte]time.Duration{'w': 7 * 24 * time.Hour, 'd': 24 * time.Hour, 'h': time.Hour, 'm': time.Minute, 's': time.Second}
	for _, a := range amounts {
		n, err := strconv.ParseFloat(a[1], 64)
		if err != nil || n > maxUntil.Seconds() {
			return time.Time{}, false
		}
		sum += time.Duration(min(n*float64(unit[a[2][0]]), float64(2*maxUntil)))
	}
	return now.Add(min(sum, 2*maxUntil)), true
}

// parseTime reads the text by the first layout that fits.
func parseTime(text string, layouts []string, zone *time.Location) (time.Time, bool) {
	for _, l := range layouts {
		if t, err := time.ParseInLocation(l, text, zone); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// onDay is the clock's time on a day. It counts by the calendar: a day may have 23
// hours.
func onDay(day, clock time.Time, days int) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day()+days, clock.Hour(), clock.Minute(), clock.Second(), 0, day.Location())
}

func parseClock(text string, now time.Time) (time.Time, bool) {
	days := 0
	if rest, ok := strings.CutPrefix(text, "tomorrow"); ok {
		text, days = strings.TrimSpace(rest), 1
	}
	clock, ok := parseTime(text, clockLayouts, now.Location())
	if !ok {
		return time.Time{}, false
	}
	until := onDay(now, clock, days)
	if until.Before(now.Add(-minuteSlack)) {
		until = onDay(now, clock, 1)
	}
	return until, true
}

// parseDate reads a date, with a time of day or without.
func parseDate(text string, now time.Time) (time.Time, bool) {
	words := strings.Fields(text)
	for cut := range slices.Backward(append(words, "")) {
		day, clock := strings.Join(words[:cut], " "), strings.Join(words[cut:], " ")
		var at time.Time
		if clock != "" {
			var ok bool
			if at, ok = parseTime(clock, clockLayouts, now.Location()); !ok {
				continue
			}
		}
		if t, ok := parseTime(day, yearLayouts, now.Location()); ok {
			return onDay(t, at, 0), true
		}
		if t, ok := parseTime(day, dayLayouts, now.Location()); ok {
			return inYear(t, at, now), true
		}
	}
	return time.Time{}, false
}

// inYear is a date without a year: this year's, or next year's when that is long ago.
func inYear(day, clock, now time.Time) time.Time {
	until := onDay(day.AddDate(now.Year(), 0, 0), clock, 0)
	if now.Sub(until) > yearSlack {
		until = onDay(day.AddDate(now.Year()+1, 0, 0), clock, 0)
	}
	return until
}

func parseWeekday(text string, now time.Time) (time.Time, bool) {
	word, rest, _ := strings.Cut(text, " ")
	clock, ok := time.Time{}, rest == ""
	if !ok {
		clock, ok = parseTime(rest, clockLayouts, now.Location())
	}
	if !ok || len(word) < 3 {
		return time.Time{}, false
	}
	for days := range 8 {
		until := onDay(now, clock, days)
		name := strings.ToLower(until.Weekday().String())
		if strings.HasPrefix(name, word) && !until.Before(now.Add(-minuteSlack)) {
			return until, true
		}
	}
	return time.Time{}, false
}
