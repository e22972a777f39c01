// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// figure is one of what is looked at. It may grow by slack, and by a part of itself, over
// the time that is judged.
type figure struct {
	name        string
	part, slack float64
	// whole says that it is one of the world and not of one daemon.
	whole bool
}

var figures = []figure{
	{name: "daemon RSS MiB", part: .08, slack: 2},
	// What the collector lets the heap grow to: twice what lives, without what is garbage.
	{name: "heap goal MiB", part: .15, slack: 4},
	{name: "goroutines", part: .05, slack: 5},
	{name: "daemon fds", part: .05, slack: 5},
	{name: "tmux fds", part: .05, slack: 10, whole: true},
	{name: "tmux RSS MiB", part: .10, slack: 2, whole: true},
	{name: "state MiB", part: .08, slack: .3, whole: true},
	{name: "state files", part: .05, slack: 10, whole: true},
}

// sample is one look. daemon and server are the pids.
type sample struct {
	at             time.Duration
	daemon, server int
	values         []float64
	running        float64
	restarts       float64
	errors         float64
}

const mib = 1 << 20

func (w *world) look(at time.Duration) (sample, error) {
	text, err := w.metrics()
	if err != nil {
		return sample{}, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	m, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return sample{}, fmt.Errorf("read metrics: %w", err)
	}
	s := sample{at: at, daemon: w.daemon.Process.Pid, server: w.serverPID(), restarts: total(m["muxlet_client_restarts_total"], ""),
		errors: total(m["muxlet_reconcile_errors_total"], ""), running: total(m["muxlet_sessions"], "Running")}
	if s.server == 0 {
		return sample{}, errors.New("there is no tmux server now")
	}
	bytes, files := usage(filepath.Join(w.dir, "state"))
	s.values = []float64{
		rss(s.daemon), total(m["go_memstats_next_gc_bytes"], "") / mib, total(m["go_goroutines"], ""), total(m["process_open_fds"], ""),
		descriptors(s.server), rss(s.server), float64(bytes) / mib, float64(files),
	}
	return s, nil
}

// total of what has the given value of a label.
func total(family *dto.MetricFamily, label string) (sum float64) {
	for _, m := range family.GetMetric() {
		if label != "" && !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == label }) {
			continue
		}
		sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return sum
}

// rss is the resident memory of a process in MiB.
func rss(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return math.NaN()
	}
	var size, resident float64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return math.NaN()
	}
	return resident * float64(os.Getpagesize()) / mib
}

func descriptors(pid int) float64 {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return math.NaN()
	}
	return float64(len(entries))
}

func usage(dir string) (bytes int64, files int) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return nil
		}
		info, err := e.Info()
		if err != nil {
			return nil
		}
		files++
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			bytes += st.Blocks * 512
		}
		return nil
	})
	return bytes, files
}

func header() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%8s %8s", "time", "running")
	for _, f := range figures {
		fmt.Fprintf(&out, " %15s", f.name)
	}
	fmt.Fprintf(&out, " %9s %7s\n", "restarts", "errors")
	return out.String()
}

// String is a line of the table.
func (s sample) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%8s %8.0f", s.at.Round(time.Second), s.running)
	for _, v := range s.values {
		fmt.Fprintf(&out, " %15.1f", v)
	}
	fmt.Fprintf(&out, " %9.0f %7.0f\n", s.restarts, s.errors)
	return out.String()
}

// judge tells by what each figure grew, and in its error which did not stay flat.
// The first third is left out: caches fill, bounds are reached, and daemons are killed. Of
// what belongs to one daemon, the last daemon's samples count from when it had the time to
// see each session's client die: what it then knows of each it did not know before.
func judge(samples []sample, warm time.Duration) (table string, err error) {
	if len(samples) < 3 {
		return "", fmt.Errorf("%d looks are too few to judge", len(samples))
	}
	late := samples[len(samples)/3:]
	last := late[len(late)-1].daemon
	ours := warmed(slices.DeleteFunc(slices.Clone(samples), func(s sample) bool { return s.daemon != last }), late[0].at, warm)
	var out strings.Builder
	fmt.Fprintf(&out, "%-16s %10s %10s %12s %12s\n", "figure", "median", "growth", "allowed", "per hour")
	var grown []string
	for i, f := range figures {
		of := ours
		if f.whole {
			of = late
		}
		if len(of) < 2 {
			return "", errors.New("one daemon did not live long enough to be judged")
		}
		slope, median := trend(of, i)
		window := of[len(of)-1].at - of[0].at
		growth, allowed := slope*window.Hours(), f.slack+f.part*median
		word := "flat"
		if growth > allowed {
			word = "GROWS"
			grown = append(grown, f.name)
		}
		fmt.Fprintf(&out, "%-16s %10.1f %+10.2f %12.2f %+12.2f  %s\n", f.name, median, growth, allowed, slope, word)
	}
	if len(grown) > 0 {
		return out.String(), fmt.Errorf("not flat: %s", strings.Join(grown, ", "))
	}
	return out.String() + "\nflat\n", nil
}

// warmed leaves out what comes before from, and before the daemon is warm; the second half
// counts where a run is too short for that.
func warmed(ours []sample, from, warm time.Duration) []sample {
	from = max(from, ours[0].at+warm)
	first := slices.IndexFunc(ours, func(s sample) bool { return s.at >= from })
	if half := len(ours) / 2; first < 0 || first > half {
		first = half
	}
	return ours[first:]
}

// trend is the slope per hour of a figure, and its median: the median of the slopes
// between all pairs of samples (Theil and Sen), which one odd look does not move.
func trend(samples []sample, i int) (slope, median float64) {
	var slopes, values []float64
	for a, x := range samples {
		if math.IsNaN(x.values[i]) {
			continue
		}
		values = append(values, x.values[i])
		for _, y := range samples[:a] {
			if d := (x.at - y.at).Hours(); d > 0 && !math.IsNaN(y.values[i]) {
				slopes = append(slopes, (x.values[i]-y.values[i])/d)
			}
		}
	}
	return middle(slopes), middle(values)
}

func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[len(values)/2]
}
