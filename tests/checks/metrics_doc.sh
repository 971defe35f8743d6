#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compares the table in docs/metrics.md with the daemon's table of metrics. With --write, replaces the
# table in the document.
#     tests/checks/metrics_doc.sh [--write] TABLE-PROGRAM DOCUMENT
set -eu
write=
[ "$1" != --write ] || { write=1 && shift; }
table=$("$1")
document=$2
if [ -n "$write" ]; then
    printf '%s\n' "$table" >"$document.table"
    sed -i -e "/^| metric |/,/^\$/{/^\$/!d}" -e "/^<!-- table -->\$/r $document.table" "$document"
    rm "$document.table"
fi
found=$(sed -n '/^| metric |/,/^$/p' "$document")
[ "$found" = "$table" ] || {
    echo "$document: its table differs from daemon/handlers/metrics.def; run:"
    echo "    tests/checks/metrics_doc.sh --write $1 $document"
    exit 1
}
