#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Traces the daemons of some tests, and checks that the filter of the units admits each of their
# system calls. systemd/list-syscalls without names of tests traces all of them, to write
# systemd/syscalls.txt.
#     tests/checks/syscalls.sh BUILD SOURCE
set -eu
build=$1
source=$2
. "$source/tests/support/syscalls.sh"

if ! strace -qq -o /dev/null true 2>/dev/null; then
    echo "no strace, or no permission to trace"
    exit 77
fi
made=$("$source/systemd/list-syscalls" "$build" activation lifecycle keys leases reload metrics_export \
    shuffle_wire warm | grep -v '^#')
[ "$(echo "$made" | wc -l)" -gt 50 ] || {
    echo "FAIL: the daemons of the tests made only these calls:" $made
    exit 1
}
admitted=$(admitted_calls $(sed -n 's/^driver: //; /^[a-z@]/p' "$source/systemd/syscall-filter.txt"))
status=0
for call in $made; do
    echo "$admitted" | grep -qx "$call" || {
        echo "FAIL: the filter refuses $call: correct shufd, or systemd/syscall-filter.txt and syscalls.txt"
        status=1
    }
done
exit $status
