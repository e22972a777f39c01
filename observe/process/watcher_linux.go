// Copyright The muxlet Authors
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"

	"github.com/muxlet/muxlet/observe"
)

// noPidfd stands for a process that had ended before its pidfd could be opened.
const noPidfd = -1

// NewWatcher returns the best Watcher of this platform: one pidfd for each process
// and one epoll for all, which costs nothing while nobody dies. Where the kernel
// or a sandbox refuses pidfds, it is a polling one with the interval and the clock
// given.
func NewWatcher(interval time.Duration, clk clock.WithTicker) (Watcher, error) {
	return chooseWatcher(tryPidfd(), interval, clk)
}

// tryPidfd says why this process cannot have pidfds.
func tryPidfd() error {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return fmt.Errorf("opening a pidfd: %w", err)
	}
	if err := unix.Close(fd); err != nil {
		return fmt.Errorf("closing a pidfd: %w", err)
	}
	return nil
}

func chooseWatcher(refusal error, interval time.Duration, clk clock.WithTicker) (Watcher, error) {
	switch {
	case refusal == nil:
		return newPidfdWatcher()
	case errors.Is(refusal, unix.ENOSYS), errors.Is(refusal, unix.EPERM):
		return NewPollingWatcher(interval, clk), nil
	}
	return nil, refusal
}

// pidfdWatcher holds a pidfd of each watched process until it is forgotten.
type pidfdWatcher struct {
	box *outbox
	// epoll is itself watched by the runtime's poller, so that waiting for a death
	// takes a goroutine and no thread.
	epoll *os.File
	raw   syscall.RawConn
	done  chan struct{}

	mu sync.Mutex
	// next is the number of the next watch. Events carry it: an event of a closed
	// pidfd must not be taken for one of a later pidfd with the same number.
	next    uint64
	numbers map[uint64]*watched
	// watches by process; nil after Close.
	watches map[observe.Process]*watched
}

// watched is one watched process.
type watched struct {
	process observe.Process
	key     string
	pidfd   int
	number  uint64
}

func newPidfdWatcher() (*pidfdWatcher, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("creating an epoll: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing an epoll: %w", err), unix.Close(fd))
	}
	epoll := os.NewFile(uintptr(fd), "epoll")
	raw, err := epoll.SyscallConn()
	// Only a file that the runtime can poll has deadlines.
	if err = errors.Join(err, epoll.SetReadDeadline(time.Time{})); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing an epoll: %w", err), epoll.Close())
	}
	w := &pidfdWatcher{
		box: newOutbox(), epoll: epoll, raw: raw, done: make(chan struct{}),
		numbers: map[uint64]*watched{}, watches: map[observe.Process]*watched{},
	}
	go w.poll()
	return w, nil
}

// poll waits for deaths until the epoll is closed.
func (w *pidfdWatcher) poll() {
	defer close(w.done)
	events := make([]unix.EpollEvent, 64)
	for {
		var died []unix.EpollEvent
		closed := w.raw.Read(func(fd uintptr) bool {
			n, err := unix.EpollWait(int(fd), events, 0)
			died = events[:max(0, n)]
			return n > 0 || err == unix.EINTR
		})
		if closed != nil {
			return
		}
		for _, event := range died {
			w.ended(numberOf(event))
		}
	}
}

// ended gives notice of the death of the watch with the number, unless it was
// forgotten meanwhile. The pidfd is kept for Exit, and leaves the epoll: it would
// be ready for ever.
func (w *pidfdWatcher) ended(number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	watch, known := w.numbers[number]
	if !known {
		return
	}
	delete(w.numbers, number)
	_ = w.control(unix.EPOLL_CTL_DEL, watch)
	w.box.put(Notice{Process: watch.process, Key: watch.key})
}

// Watch is Watcher's.
func (w *pidfdWatcher) Watch(p observe.Process, key string) error {
	if err := checkWatchable(p); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watches == nil {
		return fmt.Errorf("watching process %s: %w", p, ErrClosed)
	}
	if watch, known := w.watches[p]; known {
		watch.key = key
		return nil
	}
	pidfd, err := openPidfd(p)
	if err != nil {
		return fmt.Errorf("watching process %s: %w", p, err)
	}
	return w.add(&watched{process: p, key: key, pidfd: pidfd})
}

// add is called with the lock held.
func (w *pidfdWatcher) add(watch *watched) error {
	if watch.pidfd == noPidfd {
		w.watches[watch.process] = watch
		w.box.put(Notice{Process: watch.process, Key: watch.key})
		return nil
	}
	w.next++
	watch.number = w.next
	if err := w.control(unix.EPOLL_CTL_ADD, watch); err != nil {
		return errors.Join(fmt.Errorf("watching process %s: %w", watch.process, err), unix.Close(watch.pidfd))
	}
	w.watches[watch.process] = watch
	w.numbers[watch.number] = watch
	return nil
}

// control adds a pidfd to the epoll or takes it out. Close ends it with an error.
func (w *pidfdWatcher) control(operation int, watch *watched) error {
	var err error
	event := unix.EpollEvent{
		Events: unix.EPOLLIN, Fd: int32(watch.number), Pad: int32(watch.number >> 32),
	}
	if gone := w.raw.Control(func(fd uintptr) {
		err = unix.EpollCtl(int(fd), operation, watch.pidfd, &event)
	}); gone != nil {
		return gone
	}
	return err
}

// numberOf undoes what control did to the number of a watch: the kernel hands the
// eight bytes back as they were.
func numberOf(event unix.EpollEvent) uint64 {
	return uint64(uint32(event.Fd)) | uint64(uint32(event.Pad))<<32
}

// openPidfd returns a pidfd that is p's: its start ticks are compared after the
// pidfd was opened, for until then the pid may pass to another process. noPidfd:
// p has ended.
func openPidfd(p observe.Process) (int, error) {
	pidfd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return noPidfd, nil
	}
	if err != nil {
		return noPidfd, fmt.Errorf("opening a pidfd: %w", err)
	}
	ticks, err := Ticks(p.PID)
	switch {
	case err == nil && ticks == p.Ticks:
		return pidfd, nil
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return noPidfd, unix.Close(pidfd)
	}
	return noPidfd, errors.Join(err, unix.Close(pidfd))
}

// Forget is Watcher's.
func (w *pidfdWatcher) Forget(p observe.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	watch, known := w.watches[p]
	if !known {
		return
	}
	delete(w.watches, p)
	delete(w.numbers, watch.number)
	w.box.drop(p)
	if watch.pidfd != noPidfd {
		// The close takes it out of the epoll too.
		_ = unix.Close(watch.pidfd)
	}
}

// State is Watcher's: a pidfd is ready once its process has ended. 1 µs, where
// the process table takes 20.
func (w *pidfdWatcher) State(p observe.Process) observe.Liveness {
	w.mu.Lock()
	defer w.mu.Unlock()
	watch, known := w.watches[p]
	switch {
	case !known:
		return observe.LivenessUnknown
	case watch.pidfd == noPidfd:
		return observe.Gone
	}
	fds := []unix.PollFd{{Fd: int32(watch.pidfd), Events: unix.POLLIN}}
	switch n, err := unix.Poll(fds, 0); {
	case err != nil:
		return observe.LivenessUnknown
	case n == 0:
		return observe.Running
	}
	return observe.Gone
}

// Exit is Watcher's. It needs Linux 6.15: until a process is collected by its
// parent, and on older kernels always, it is nil.
func (w *pidfdWatcher) Exit(p observe.Process) *observe.Exit {
	w.mu.Lock()
	defer w.mu.Unlock()
	watch, known := w.watches[p]
	if !known || watch.pidfd == noPidfd {
		return nil
	}
	info := unix.PidfdInfo{Mask: unix.PIDFD_INFO_EXIT}
	if err := unix.IoctlPidfdInfo(watch.pidfd, &info); err != nil || info.Mask&unix.PIDFD_INFO_EXIT == 0 {
		return nil
	}
	status := unix.WaitStatus(uint32(info.Exit_code))
	switch {
	case status.Exited():
		return &observe.Exit{Code: status.ExitStatus()}
	case status.Signaled():
		return &observe.Exit{Signal: int(status.Signal())}
	}
	return nil
}

// Notices is Watcher's.
func (w *pidfdWatcher) Notices() <-chan Notice { return w.box.out }

// Close is Watcher's.
func (w *pidfdWatcher) Close() error {
	w.mu.Lock()
	watches := w.watches
	w.watches, w.numbers = nil, nil
	w.mu.Unlock()
	if watches == nil {
		return fmt.Errorf("closing the watcher of processes: %w", ErrClosed)
	}
	err := w.epoll.Close()
	<-w.done
	w.box.close()
	for _, watch := range watches {
		if watch.pidfd != noPidfd {
			err = errors.Join(err, unix.Close(watch.pidfd))
		}
	}
	return err
}
