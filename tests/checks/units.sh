#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks the units of systemd/ without a running systemd. They must have no mistakes and a tight
# sandbox, which still admits the system calls of shufd. The generator must make one instance for
# each GPU.
#     tests/checks/units.sh CMAKE BUILD SOURCE
set -eu
cmake=$1
build=$2
source=$3
. "$source/tests/support/syscalls.sh"
prefix=$build/units-test
units=$prefix/lib/systemd/system
failures=0

fail() {
    echo "FAIL: $*"
    failures=$((failures + 1))
}

rm -rf "$prefix"
"$cmake" --install "$build" --prefix "$prefix" >"$build/units-test.log" 2>&1 || {
    cat "$build/units-test.log"
    exit 1
}

# ---- Mistakes and the sandbox --------------------------------------------------

# systemd-analyze prints only complaints, even if its exit code is 0.
complaints=$(SYSTEMD_UNIT_PATH=$units: systemd-analyze verify --man=no "$units"/shufd* 2>&1) ||
    fail "systemd-analyze verify: exit code $?"
[ -z "$complaints" ] || fail "systemd-analyze verify: $complaints"

# systemd 249, of Ubuntu 22.04, measures only loaded units.
can_measure=yes
systemd-analyze security --help | grep -q -e --offline || {
    echo "skipped: this systemd-analyze does not measure the exposure of files"
    can_measure=no
}

exposure() {
    SYSTEMD_UNIT_PATH=$units: systemd-analyze security --offline=true --no-pager "$1" |
        sed -n 's/.*Overall exposure level for .*: \([0-9.]*\) .*/\1/p'
}

# check_exposure UNIT MOST: MOST is the present exposure, so a setting that is lost is seen
check_exposure() {
    [ "$can_measure" = yes ] || return 0
    found=$(exposure "$units/$1")
    awk -v found="$found" -v most="$2" 'BEGIN { exit !(found != "" && found + 0 <= most + 0) }' ||
        fail "$1: exposure '$found', expected at most $2"
}

# check_line UNIT LINE: the unit has this line
check_line() {
    grep -qxF "$2" "$units/$1" || fail "$1: no line $2"
}

check_exposure shufd-gpus.service 2.5
# make-gpu-files loads a module, makes device files and sets their owner and mode, which systemd-analyze does
# not know.
check_line shufd-gpus.service "CapabilityBoundingSet=CAP_SYS_MODULE CAP_MKNOD CAP_CHOWN CAP_FOWNER"
check_line shufd-instances.service CapabilityBoundingSet=
check_exposure shufd-instances.service 0.9
for unit in shufd.service shufd@.service; do
    check_exposure $unit 0.5
    for needed in DevicePolicy=closed "DeviceAllow=char-nvidia rw" \
        "DeviceAllow=char-nvidia-uvm rw" "DeviceAllow=char-nvidiactl rw" Type=notify \
        CapabilityBoundingSet= AmbientCapabilities= WatchdogSec=60s \
        Restart=on-failure RestartSec=500ms "RestartPreventExitStatus=64 69 78" "Wants=shufd-gpus.service nvidia-persistenced.service"; do
        check_line $unit "$needed"
    done
    # With these options the daemon would have no GPU, or could not tell its users apart.
    for harmful in PrivateDevices PrivateUsers ProcSubset; do
        ! grep -q "^$harmful=" "$units/$unit" || fail "$unit: has $harmful="
    done
done

# ---- System calls --------------------------------------------------------------

admitted=$build/units-test.admitted
filter=$(sed -n 's/^SystemCallFilter=//p' "$units/shufd.service")
admitted_calls $filter >"$admitted"
[ "$(wc -l <"$admitted")" -gt 100 ] || fail "the filter admits only $(wc -l <"$admitted") calls"

called=$(grep -v '^#' "$source/systemd/syscalls.txt")
for call in $called; do
    grep -qx "$call" "$admitted" || fail "SystemCallFilter: refuses $call, which shufd calls"
done
for call in ptrace mount umount2 bpf setuid chown reboot init_module kexec_load perf_event_open \
    process_vm_writev swapon add_key sched_setscheduler io_uring_setup; do
    ! grep -qx "$call" "$admitted" || fail "SystemCallFilter: admits $call"
done
for entry in $(grep '^[a-z@]' "$source/systemd/syscall-filter.txt" | grep -v '^driver:'); do
    calls=$entry
    [ "${entry#@}" = "$entry" ] || calls=$(expand_calls "$entry")
    for call in $calls; do
        ! echo "$called" | grep -qx "$call" || continue 2
    done
    fail "SystemCallFilter: no call of $entry was ever seen"
done

# ---- Reload --------------------------------------------------------------------

# Runs the command of ExecReload= like systemd: with few environment variables, and with $ for each
# $$. The command may start no other program, and may make only system calls that the filter admits.
reload=$(sed -n 's/^ExecReload=//p' "$units/shufd.service" | sed 's/\$\$/$/g')
trace=$build/units-test.trace
ready=$build/units-test.ready
rm -f "$ready"
sh -c 'trap "exit 42" HUP; : >"$1"; for i in $(seq 100); do sleep 0.1; done' sh "$ready" &
until [ -e "$ready" ]; do sleep 0.05; done
eval "env -i PATH=/nonexistent MAINPID=$! $(command -v strace) -f -o $trace $reload" ||
    fail "ExecReload: exit code $?"
code=0
wait $! || code=$?
[ "$code" -eq 42 ] || fail "ExecReload: no SIGHUP came, the exit code is $code"
[ "$(grep -c 'execve(' "$trace")" -eq 1 ] || fail "ExecReload: starts another program"
for call in $(sed -n 's/^[0-9]* *\([a-z_0-9]*\)(.*/\1/p' "$trace" | sort -u); do
    grep -qx "$call" "$admitted" || fail "SystemCallFilter: refuses $call, which ExecReload calls"
done

# ---- The generator -------------------------------------------------------------

generator=$prefix/lib/systemd/system-generators/shufd-generator

# list_gpus UUID...: makes a folder like the driver's list of GPUs
list_gpus() {
    rm -rf "$build/units-test.gpus" "$build/units-test.out"
    mkdir -p "$build/units-test.gpus" "$build/units-test.out"
    number=0
    for uuid in "$@"; do
        number=$((number + 1))
        mkdir "$build/units-test.gpus/0000:0$number:00.0"
        printf 'Model: \t\t NVIDIA H200\nIRQ:   \t\t 1\nGPU UUID: \t %s\nDevice Minor: \t %d\n' \
            "$uuid" $((number - 1)) >"$build/units-test.gpus/0000:0$number:00.0/information"
    done
}

# expect_units SHARE LINK...: the generator must make exactly these links, in any order
expect_units() {
    share=$1
    shift
    SHUFD_GPUS=$build/units-test.gpus "$generator" "$build/units-test.out" x y \
        2>"$build/units-test.err" || fail "generator: exit code $?"
    made=$(cd "$build/units-test.out" && find . -type l | sort | tr '\n' ' ')
    expected=$(for link in "$@"; do echo "./shufd.target.wants/$link"; done | sort | tr '\n' ' ')
    [ "$made" = "$expected" ] || fail "generator: made $made, expected $expected"
    for link in "$build"/units-test.out/shufd.target.wants/*; do
        [ -e "$link" ] || fail "generator: $link leads to nothing"
    done
    drop_in=$(cat "$build/units-test.out/shufd@.service.d/share.conf" 2>/dev/null || true)
    [ "$drop_in" = "${share:+[Service]
Environment=SHUFD_INSTANCES=$share}" ] || fail "generator: drop-in $drop_in, share $share"
}

list_gpus
expect_units "" shufd.socket
list_gpus GPU-0a-1
expect_units "" shufd.socket
list_gpus GPU-0a-1 GPU-0b-2
expect_units 2 shufd@GPU-0a-1.socket shufd@GPU-0b-2.socket
list_gpus GPU-1 GPU-2 GPU-3 GPU-4 GPU-5 GPU-6 GPU-7 GPU-8
expect_units 8 shufd@GPU-1.socket shufd@GPU-2.socket shufd@GPU-3.socket shufd@GPU-4.socket \
    shufd@GPU-5.socket shufd@GPU-6.socket shufd@GPU-7.socket shufd@GPU-8.socket
list_gpus GPU-1 'GPU-????????' GPU-../../x GPU-4 # the second is not initialised, the third is harmful
expect_units 2 shufd@GPU-1.socket shufd@GPU-4.socket
grep -q 'GPU-../../x: not usable' "$build/units-test.err" || fail "generator: no warning about GPU-../../x"
rm -rf "$build/units-test.gpus"
mkdir -p "$build/units-test.out"
rm -rf "$build/units-test.out"/*
expect_units "" shufd.socket

# ---- The device files ----------------------------------------------------------

list_gpus GPU-1 GPU-2
mkdir "$build/units-test.gpus/bin"
cat >"$build/units-test.gpus/bin/nvidia-modprobe" <<END_OF_PROGRAM
#!/bin/sh
echo "\$*" >>"$build/units-test.out/calls"
END_OF_PROGRAM
chmod +x "$build/units-test.gpus/bin/nvidia-modprobe"
PATH=$build/units-test.gpus/bin:$PATH SHUFD_GPUS=$build/units-test.gpus \
    "$prefix/libexec/shufd/make-gpu-files" || fail "make-gpu-files: exit code $?"
made=$(tr '\n' ' ' <"$build/units-test.out/calls")
[ "$made" = "-u -c 0 -c 1 " ] || fail "make-gpu-files: nvidia-modprobe $made"

rm -rf "$prefix" "$build"/units-test.*
[ $failures -eq 0 ]
