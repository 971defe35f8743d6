#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes the reports primefold-*.json, and fisher-yates-*.json: an exact shuffle of as many rows,
# judged by the same tests with the same modulus. In the folder that it runs in; 25 CPU minutes.
#
#     sh permutations.sh PATH/shuf-quality [N...]
#
# Each N is a size, or `small`. Without any N it makes all reports.
quality=${1:?path of shuf-quality}
shift
selected=$*

is_wanted() {
	case " $selected " in "  " | *" $1 "*) return 0 ;; esac
	return 1
}

rows() { # n, rows, prime of primefold
	is_wanted "$1" || return 0
	"$quality" judge --generator primefold --n "$1" --samples "$2" --json > "primefold-$1.json"
	echo "primefold-$1: $?"
	"$quality" judge --generator fisher-yates --n "$1" --samples "$2" --modulus "$3" \
		--json > "fisher-yates-$1.json"
	echo "fisher-yates-$1: $?"
}

rows 257 200000 257
rows 521 50000 521
rows 1000 20000 1009
rows 1023 20000 1031
rows 1024 20000 1031
rows 1025 20000 1031
rows 4096 10000 4099
rows 65535 1000 65537
rows 65536 1000 65537
rows 65537 1000 65537
if is_wanted small; then
	"$quality" suite --generator primefold --n-list 2:64,100,127:129,255,256 --samples 1e4 --json \
		> primefold-small.json
	echo "primefold-small: $?"
fi
