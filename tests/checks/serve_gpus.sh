#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Tests packaging/serve-gpus, with programs in place of nvidia-smi and shufd. Each GPU must get one
# daemon with its share of the memory. Reload and the drain at SIGTERM must work. If one daemon ends,
# all must end.
# If nvidia-smi fails or hangs, no daemon may start.
#     tests/checks/serve_gpus.sh BUILD SOURCE
set -eu
build=$1
source=$2
work=$(mktemp -d)
export SHUFD_RUNTIME_DIR=$work PATH=$work/bin:$PATH
shufctl=$build/client/shufctl/shufctl
server=
trap '[ -z "$server" ] || kill -TERM "$server" 2>/dev/null || true; wait; rm -rf "$work"' EXIT

fail() {
    echo "FAIL: $*"
    cat "$work/log"
    exit 1
}

mkdir "$work/bin"
cat >"$work/bin/nvidia-smi" <<'PROGRAM'
#!/bin/sh
cat "$SHUFD_RUNTIME_DIR/gpus"
PROGRAM
cat >"$work/bin/shufd" <<PROGRAM
#!/bin/bash
touch "$work/begun"
while [ -e "$work/hold" ]; do sleep 0.01; done
exec "$build/daemon/shufd" "\${@/#cuda:*/cpu}"
PROGRAM
chmod +x "$work/bin/nvidia-smi" "$work/bin/shufd"

# start UUID...: serves these GPUs
start() {
    printf '%s\n' "$@" >"$work/gpus"
    printf 'host_memory = 25%%\nclients = 100\n' >"$work/shufd.conf"
    "$source/packaging/serve-gpus" --config "$work/shufd.conf" >"$work/log" 2>&1 &
    server=$!
}

# stop STATUS: waits for the end, and expects this status
stop() {
    status=0
    wait "$server" || status=$?
    server=
    [ $status = "$1" ] || fail "status $status, expected $1"
    [ -z "$(find "$work" -name '*.sock')" ] || fail "sockets are left"
}

status_of() {
    "$shufctl" status --socket "$work/$1.sock" --wait 60 --json
}

number_of() {
    status_of "$1" | sed -n "s/.*\"$2\": *\([0-9]*\).*/\1/p"
}

start GPU-1 GPU-2 GPU-3 GPU-4 GPU-5 GPU-6 GPU-7 GPU-8
for gpu in 1 2 3 4 5 6 7 8; do
    pids+=" $(number_of GPU-$gpu pid)"
done
[ "$(tr ' ' '\n' <<<"$pids" | grep . | sort -u | wc -l)" = 8 ] || fail "daemons:$pids, expected 8"
for pid in $pids; do
    [ "$(cut -d ' ' -f 5 "/proc/$pid/stat")" = "$pid" ] || fail "Ctrl-C would reach daemon $pid twice"
done
share=$(number_of GPU-8 host_limit)
[ "$share" -le $(($(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo) * 1024 / 32)) ] ||
    fail "each daemon has $share bytes, expected an eighth of 25%"
CUDA_VISIBLE_DEVICES=GPU-3 "$shufctl" permute --n 10 --seed 7 --out - --format raw >/dev/null ||
    fail "the client of GPU-3 finds no daemon"

sed -i 's/^clients.*/clients = 99/' "$work/shufd.conf"
kill -HUP "$server"
for try in $(seq 600); do
    [ "$(grep -c 'reload: clients = 99' "$work/log")" = 8 ] && break
    sleep 0.1
done
[ "$(grep -c 'reload: clients = 99' "$work/log")" = 8 ] || fail "not all daemons have reloaded"
status_of GPU-1 >/dev/null || fail "none answers after a reload"

kill -TERM "$server"
stop 0
start GPU-1 GPU-2
status_of GPU-1 >/dev/null # before its start ends, SIGTERM would leave its socket
kill -KILL "$(number_of GPU-2 pid)"
wait "$server" || true # a killed daemon leaves its socket
[ -S "$work/GPU-2.sock" ] || fail "no socket is left"
start GPU-1 GPU-3 # the next container has another GPU
status_of GPU-3 >/dev/null
[ ! -e "$work/GPU-2.sock" ] || fail "a socket without a daemon stays"
kill -KILL "$(number_of GPU-3 pid)"
rm -f "$work/GPU-3.sock"
stop 137

# A daemon that cannot start ends before others have started.
touch "$work/GPU-1.sock" # not a socket
start GPU-1 GPU-2 GPU-3 GPU-4
status=0
wait "$server" || status=$?
server=
[ $status = 73 ] || fail "status $status, expected 73: a daemon could not start"

# SIGHUP while the daemons start
rm -f "$work"/GPU-* "$work/begun"
touch "$work/hold"
start GPU-1 GPU-2
until [ -e "$work/begun" ]; do sleep 0.01; done
kill -HUP "$server"
sleep 0.2 # the signal also reaches the daemons
rm "$work/hold"
status_of GPU-1 >/dev/null || fail "SIGHUP has ended the start"
status_of GPU-2 >/dev/null || fail "SIGHUP has ended the start"
kill -TERM "$server"
stop 0

# SIGTERM while the daemons start, that is after the first lock
gpus=$(seq -f GPU-%g 30)
for delay in 0 0.02 0.1; do
    rm -f "$work"/*.sock "$work"/*.sock.lock
    # shellcheck disable=SC2086
    start $gpus
    until [ -n "$(find "$work" -name 'GPU-*.sock.lock' -print -quit)" ]; do sleep 0.01; done
    sleep $delay
    kill -TERM "$server"
    status=0
    wait "$server" || status=$?
    server=
    [ $status = 0 ] || fail "status $status, expected 0 after SIGTERM"
done
rm -f "$work"/*.sock

start GPU-1
status_of shufd >/dev/null || fail "no daemon of one GPU"
kill -TERM "$server"
stop 0

# A failing nvidia-smi is an error, and not a machine without GPUs.
cat >"$work/bin/nvidia-smi" <<'PROGRAM'
#!/bin/sh
echo "NVIDIA-SMI has failed"
exit 9
PROGRAM
chmod +x "$work/bin/nvidia-smi"
status=0
timeout 60 "$source/packaging/serve-gpus" --config "$work/shufd.conf" >"$work/log" 2>&1 || status=$?
[ $status = 69 ] || fail "status $status, expected 69: nvidia-smi fails"
grep -q 'nvidia-smi failed with status 9: NVIDIA-SMI has failed' "$work/log" ||
    fail "the log lacks the message"

# SIGTERM while nvidia-smi hangs
cat >"$work/bin/nvidia-smi" <<'PROGRAM'
#!/bin/sh
touch "$SHUFD_RUNTIME_DIR/asked"
exec sleep 600
PROGRAM
start GPU-1
until [ -e "$work/asked" ]; do sleep 0.01; done
kill -TERM "$server"
stop 0

# Without nvidia-smi there is one daemon.
rm "$work/bin/nvidia-smi"
if ! command -v nvidia-smi >/dev/null; then
    start
    status_of shufd >/dev/null || fail "no daemon without nvidia-smi"
    kill -TERM "$server"
    stop 0
fi
