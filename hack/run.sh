#!/usr/bin/env bash
# Copyright The muxlet Authors
# SPDX-License-Identifier: Apache-2.0
#
# run.sh start: runs bin/muxlet on copies of the samples, with settings, state and
# sockets of its own below .run/, and says what to type next. Once more: restarts
# the daemon alone.
# run.sh stop: ends the daemon, its sessions and its tmux server; the files stay.
#
# Nothing that a person configured for their own muxlet is read or written.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=$(pwd -P)
run=$root/.run
bin=$root/bin/muxlet
log=$run/daemon.log

# MUXLET_…: another muxlet's settings, or the mark of a session that this runs in.
# shellcheck disable=SC2086 # names of variables
unset ${!MUXLET_@}

fail() {
    echo "Error: $*" >&2
    exit 1
}

# within SECONDS COMMAND…: tries until the command succeeds or the time is over.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < end)) || return 1
        sleep 0.1
    done
}

# --- folders -----------------------------------------------------------------

# find_runtime sets runtime. A socket's path has at most 100 bytes for tmux on every
# system: a checkout that lies deeper gets a folder below /tmp, which .run/ remembers.
find_runtime() {
    local longest remembered=$run/runtime-dir
    runtime=$run/runtime
    longest=$(LC_ALL=C; path=$runtime/muxlet.sock; echo "${#path}")
    if ((longest <= 100)); then return; fi
    if [[ -s $remembered ]]; then
        runtime=$(<"$remembered")
        if [[ ! -e $runtime ]]; then mkdir -m 0700 "$runtime"; fi
        if [[ -d $runtime && -O $runtime && ! -L $runtime ]]; then return; fi
    fi
    runtime=$(mktemp -d /tmp/muxlet-run.XXXXXX)
    printf '%s\n' "$runtime" >"$remembered"
}

# copy_samples keeps what is there, so that edits stay. The samples' own folders are
# made below .run/ instead of the home directory, where the path needs no quotes.
copy_samples() {
    [[ -e $run/sessions ]] && return
    local file copies=$run/sessions.new
    rm -rf "$copies"
    mkdir -p "$copies"
    for file in config/samples/*.yaml; do
        if [[ $run =~ ^[A-Za-z0-9._/-]+$ ]]; then
            sed "s|~/muxlet-samples|$run/workspaces|g" "$file" >"$copies/${file##*/}"
        else
            cp "$file" "$copies/"
        fi
    done
    mv "$copies" "$run/sessions"
}

write_settings() {
    [[ -e $run/config.yaml ]] && return
    cat >"$run/config.yaml" <<'YAML'
# The settings of the daemon that `make run` starts. muxlet config view shows all.
apiVersion: config.muxlet.dev/v1alpha1
kind: MuxletConfiguration
YAML
}

# quoted TEXT: as one word of a shell.
quoted() {
    printf "'%s'" "${1//\'/\'\\\'\'}"
}

write_env() {
    cat >"$run/env" <<SHELL
# Source this, and muxlet talks to the daemon that \`make run\` started.
export MUXLET_CONFIG=$(quoted "$run/config.yaml")
export MUXLET_MANIFESTS=$(quoted "$run/sessions")
export MUXLET_STATE_DIR=$(quoted "$run/state")
export MUXLET_RUNTIME_DIR=$(quoted "$runtime")
case ":\$PATH:" in *:$(quoted "$root/bin"):*) ;; *) export PATH=$(quoted "$root/bin"):"\$PATH" ;; esac
SHELL
}

# muxlet VERB…: the built binary, on this run's folders.
muxlet() {
    local verb=$1
    shift
    "$bin" "$verb" --config "$run/config.yaml" --manifests "$run/sessions" \
        --state-dir "$run/state" --runtime-dir "$runtime" "$@"
}

# --- processes ---------------------------------------------------------------

# command_of PID prints its command line, or nothing when it does not run.
command_of() {
    if [[ -d /proc/self ]]; then
        tr '\0' ' ' 2>/dev/null <"/proc/$1/cmdline" || true
    else
        ps -o args= -p "$1" 2>/dev/null || true
    fi
}

ended() {
    local pid
    for pid in "$@"; do
        # A zombie has no command line: it has ended.
        if [[ -n $(command_of "$pid") ]]; then return 1; fi
    done
}

# find_daemon sets daemon to the pid of the daemon that an earlier start left, or to
# nothing. The pid alone proves nothing: its command must be ours.
find_daemon() {
    daemon=
    if [[ -s $run/daemon.pid ]]; then daemon=$(<"$run/daemon.pid"); fi
    if [[ -n $daemon && $(command_of "$daemon") != "$bin daemon --config $run/"* ]]; then daemon=; fi
}

stop_daemon() {
    kill -TERM "$daemon" 2>/dev/null || true
    if ! within 10 ended "$daemon"; then
        echo "The daemon (pid $daemon) did not end within 10 s of SIGTERM: killing it." >&2
        kill -KILL "$daemon" 2>/dev/null || true
        within 5 ended "$daemon" || fail "the daemon (pid $daemon) cannot be killed."
    fi
    rm -f "$run/daemon.pid"
}

# start_daemon gives the daemon a process group of its own, so that a Ctrl-C at make
# does not reach it.
start_daemon() {
    # Where this start's lines begin.
    log_start=$(($(wc -c <"$log") + 1))
    set -m
    nohup "$bin" daemon --config "$run/config.yaml" --manifests "$run/sessions" \
        --state-dir "$run/state" --runtime-dir "$runtime" </dev/null >>"$log" 2>&1 &
    daemon=$!
    disown
    set +m
    echo "$daemon" >"$run/daemon.pid"
}

# answers_or_ended: the wait for the first answer is over, one way or the other.
answers_or_ended() {
    muxlet get >/dev/null 2>&1 || ended "$daemon"
}

# settled: no session is on its way to somewhere else.
settled() {
    local table
    table=$(muxlet get 2>/dev/null) || return 1
    awk 'NR > 1 { n++; if ($3 ~ /^(Starting|Stopping|Unknown)$/) moving = 1 } END { exit (n == 0 || moving) }' <<<"$table"
}

# --- start -------------------------------------------------------------------

# say_next shows the way on, with a session that runs as the example.
say_next() {
    local example pid=
    example=$(muxlet get 2>/dev/null | awk 'NR > 1 && $3 == "Running" && !n++ { print $1 }') || true
    if [[ -n $example ]]; then
        pid=$(muxlet get "$example" -o json 2>/dev/null | awk -F '[:,]' '/"pid":/ && !n++ { print $2 + 0 }') || true
    fi
    printf '\nThe daemon runs (pid %s, log .run/daemon.log). What to type next:\n\n' "$daemon"
    say '. .run/env' 'now muxlet talks to this daemon'
    say 'muxlet get -o wide' 'all sessions at a glance'
    if [[ -n $pid ]]; then
        say "muxlet describe $example" 'one of them, and why it is as it is'
        say "kill -9 $pid" "the client of $example: see muxlet get again"
        say "muxlet attach $example" 'and leave with C-b d'
    fi
    # shellcheck disable=SC2016 # for the person's shell
    say '${EDITOR:-vi} .run/sessions/*' 'an edit, a new file or a removed one acts at once'
    say 'make run' 'builds anew and restarts the daemon alone'
    say 'make stop' 'ends all of it; the files in .run/ stay'
}

say() {
    printf '  %-32s%s\n' "$1" "$2"
}

start() {
    [[ -x $bin ]] || fail "bin/muxlet is not built: type make run."
    (umask 077 && mkdir -p "$run" "$run/runtime" "$run/state")
    find_runtime
    copy_samples
    write_settings
    write_env
    touch "$log"

    find_daemon
    if [[ -n $daemon ]]; then
        echo "A daemon runs here already (pid $daemon): restarting it alone, the sessions keep their processes."
        stop_daemon
    fi
    start_daemon

    within 20 answers_or_ended || true
    if ended "$daemon"; then
        tail -c "+$log_start" "$log" | tail -n 20 >&2
        rm -f "$run/daemon.pid"
        fail "the daemon ended at once; the lines above are from .run/daemon.log."
    fi
    within 30 settled || echo "Not every session came to rest within 30 s: muxlet describe NAME says why."
    muxlet get || fail "the daemon (pid $daemon) does not answer: see .run/daemon.log."
    say_next
}

# --- stop --------------------------------------------------------------------

# servers prints the pid of each tmux that was given this run's socket. They are asked
# nothing, since one that is stopped would not answer.
servers() {
    local socket=$runtime/tmux.sock file
    if [[ -d /proc/self ]]; then
        # grep fails when one of the processes has ended meanwhile.
        { grep -lzsxF -- "$socket" /proc/[0-9]*/cmdline || true; } | while IFS= read -r file; do
            file=${file%/cmdline}
            if [[ $(cat "$file/comm" 2>/dev/null) == tmux* ]]; then echo "${file#/proc/}"; fi
        done
    else
        ps -axo pid=,args= | awk -v given="-S $socket" '$2 ~ /(^|\/)tmux$/ && index($0, given) { print $1 }'
    fi
}

# clients prints the pid of whatever this run's sessions started: on Linux what carries
# the mark of this instance, in a pane or not; elsewhere the children of the tmux server.
clients() {
    local instance server
    if [[ -d /proc/self ]]; then
        instance=$(grep -oE '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}' "$run/state/instance" 2>/dev/null | head -n 1) || true
        if [[ -n $instance ]]; then
            grep -lzsE "^MUXLET_CLIENT=$instance/" /proc/[0-9]*/environ | tr -cd '0-9\n' || true
        fi
    else
        for server in $(servers); do
            ps -axo pid=,ppid= | awk -v parent="$server" '$2 == parent { print $1 }'
        done
    fi
}

# end_sessions is what a shutdown of the machine is to the sessions: SIGTERM, then
# their terminal goes, then SIGKILL. The verbs of muxlet would do more than that:
# suspend and delete edit the YAML, terminate keeps a session down at the next start.
end_sessions() {
    local noted server
    noted=$(clients)
    server=$(servers)
    # shellcheck disable=SC2086 # lists of pids
    {
        if [[ -n $noted ]]; then
            kill -TERM $noted 2>/dev/null || true
            within 3 ended $noted || true
        fi
        if [[ -n $server ]]; then
            kill -TERM $server 2>/dev/null || true
            kill -CONT $server 2>/dev/null || true
            within 3 ended $server || kill -KILL $server 2>/dev/null || true
        fi
        if [[ -n $noted ]] && ! within 5 ended $noted; then
            echo "Killing what did not end by itself." >&2
            for pid in $noted; do
                if ! ended "$pid"; then kill -KILL "$pid" 2>/dev/null || true; fi
            done
            within 5 ended $noted || fail "these clients cannot be killed:" $noted
        fi
    }
}

stop() {
    if [[ ! -d $run ]]; then return; fi
    find_runtime
    find_daemon
    if [[ -n $daemon ]]; then stop_daemon; fi
    end_sessions
    echo "Nothing of .run/ runs any more; its files are kept."
}

case ${1:-} in
    start) start ;;
    stop) stop ;;
    *) fail "usage: hack/run.sh start|stop" ;;
esac
