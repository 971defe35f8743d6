#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Compares the binary interface of libshuf with the recorded one, libshuf.abi.xz. Any difference is a failure, also a
# new function. With --write it records new functions; it refuses other differences, which would break programs.
#     abi.sh LIBRARY [--write]
set -eu
library=$(realpath "$1")
cd "$(dirname "$0")"
for program in abidiff xz; do
    command -v $program >/dev/null || {
        echo "abi: skipped: no $program (Debian: abigail-tools, xz-utils)"
        exit 77
    }
done
case $(uname -m) in
x86_64) ;;
*)
    echo "abi: skipped: the record is of x86-64"
    exit 77
    ;;
esac
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT

# differ OPTION...: prints the differences, and succeeds if there are any
differ() {
    ! abidiff "$@" "$directory/libshuf.abi" "$library"
}

record() {
    abidw --no-corpus-path --no-show-locs --no-comp-dir-path --no-elf-needed --no-parameter-names --drop-private-types \
        --exported-interfaces-only --type-id-style hash --headers-dir ../../client/include --headers-dir ../../core "$library" |
        xz -9 >libshuf.abi.xz
}

[ ! -e libshuf.abi.xz ] || xz -dc libshuf.abi.xz >"$directory/libshuf.abi"
if [ "${2-}" = --write ]; then
    if [ -e libshuf.abi.xz ] && differ --no-added-syms; then
        echo "abi: not recorded: programs that use the old interface would break; before the release, remove the record" >&2
        exit 1
    fi
    record
elif differ; then
    echo "abi: the interface has changed; if it only has new functions, run tests/record/abi.sh $library --write" >&2
    exit 1
fi
