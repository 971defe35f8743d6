#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs the postinst of the Debian package with fake commands. An upgrade restarts the daemons only if
# the check of the configuration succeeds, and succeeds in every case.
#     tests/checks/postinst.sh POSTINST
set -eu
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
failures=0

fake() {
    printf '#!/bin/sh\n%s\n' "$2" >"$directory/$1"
    chmod +x "$directory/$1"
}

# The fake systemctl knows one running daemon, and logs its other calls. The script thinks that
# systemd runs.
sed "s|/run/systemd/system|$directory|" "$1" >"$directory/postinst"

# expect CHECK RESTART TEXT CALLS: the exit codes of the check and of the restart, a text of stderr,
# and the number of restarts.
expect() {
    : >"$directory/calls"
    fake runuser "exit $1"
    fake systemctl "case \$1 in list-units) echo shufd.service ;; try-restart) echo >>$directory/calls; exit $2 ;; esac"
    code=0
    PATH=$directory:$PATH sh "$directory/postinst" configure 0.9 2>"$directory/err" || code=$?
    [ -s "$directory/err" ] || echo 'no message' >"$directory/err"
    restarts=$(wc -l <"$directory/calls")
    if [ "$code" -ne 0 ] || [ "$restarts" -ne "$4" ] || ! grep -q "$3" "$directory/err"; then
        echo "FAIL: check $1, restart $2: exit code $code, $restarts restarts: $(cat "$directory/err")"
        failures=$((failures + 1))
    fi
}

expect 78 0 'the daemons are not restarted' 0
expect 0 1 'a daemon failed at its restart' 1
expect 0 0 'no message' 1
[ "$failures" -eq 0 ]
