#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes reports in the folder that it runs in.
#
#     sh make.sh permutations PATH/shuf-quality [N...]    # 25 CPU minutes; each N is a size, or `small`
#     sh make.sh streams PATH/shuf-quality [NAME...]      # 15 CPU minutes; each NAME is one such as gauss-f64
#     sh make.sh broken PATH/shuf-quality                 # half an hour on two cores
#
# Without any N or NAME it makes all of them. `permutations` are primefold-*.json, and fisher-yates-*.json: an
# exact shuffle of as many rows, judged by the same tests with the same modulus. `broken` are broken-*.json and
# control-*.json: the old bits, and exact shuffles and normals by the tests that the old bits made necessary.
# The runs on bad generators and on the old bits end with 1, as they should, except for windows and norms.
kind=$1
quality=${2:?path of shuf-quality}
shift 2
selected=$*

is_wanted() {
    case " $selected " in "  " | *" $1 "*) return 0 ;; esac
    return 1
}

# judge NAME OPTION...; stream NAME OPTION...: the report NAME.json.
judge() {
    name=$1
    shift
    "$quality" judge "$@" --json >"$name.json"
    echo "$name: $?"
}

stream() {
    name=$1
    shift
    "$quality" stream "$@" --json >"$name.json"
    echo "$name: $?"
}

# ---- Permutations ----

rows() { # n, rows, prime of primefold
    is_wanted "$1" || return 0
    judge "primefold-$1" --generator primefold --n "$1" --samples "$2"
    judge "fisher-yates-$1" --generator fisher-yates --n "$1" --samples "$2" --modulus "$3"
}

permutations() {
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
            >primefold-small.json
        echo "primefold-small: $?"
    fi
}

# ---- Streams ----

report() {
    is_wanted "$1" || return 0
    name=$1
    shift
    stream "stream-$name" "$@" --plot "stream-$name.svg"
}

streams() {
    report gauss-f64 --generator gauss --samples 1e8
    report gauss-f32 --generator gauss --dtype f32 --samples 5e7
    report gauss-f16 --generator gauss --dtype f16 --samples 2e7
    report gauss-bf16 --generator gauss --dtype bf16 --samples 2e7
    report box-muller-f64 --generator box-muller --samples 5e7
    report box-muller-f32 --generator box-muller --dtype f32 --samples 5e7
    report box-muller-f16 --generator box-muller --dtype f16 --samples 2e7
    report box-muller-bf16 --generator box-muller --dtype bf16 --samples 2e7
    report polar --generator polar --samples 5e7
    report broken-gauss --generator broken-gauss --samples 1e7
    report broken-gauss-f16 --generator broken-gauss --dtype f16 --samples 1e7
    report icdf-table --generator icdf-table --samples 1e7
    report box-muller-32 --generator box-muller-32 --samples 1e7
    report irwin-hall --generator irwin-hall --samples 1e7
    report uniform-f64 --generator uniform --samples 5e7
    report uniform-f32 --generator uniform --dtype f32 --samples 5e7
}

# ---- The old bits ----

old_rows() { # n, rows, prime
    for generator in broken-primefold fisher-yates; do
        [ $generator = fisher-yates ] && name=control || name=broken
        judge "$name-$1" --generator $generator --n "$1" --samples "$2" --modulus "$3" --tests parallelograms
    done
}

values() { # report, generator, type, values, tests
    stream "$1" --generator "$2" --dtype "$3" --samples "$4" --tests "$5"
}

broken() {
    old_rows 97 200000 97
    old_rows 127 50000 127
    old_rows 128 50000 131
    old_rows 257 10000 257
    old_rows 1000 8000 1009
    old_rows 1024 6200 1031
    old_rows 4096 4000 4099
    old_rows 65536 1000 65537
    old_rows 1048576 1500 1048583

    # Three of the ten maps of primefold.
    judge broken-maps-257 --generator primefold --rounds 3 --n 257 --samples 4000 --tests ratios,characters
    judge control-maps-257 --generator fisher-yates --n 257 --samples 4000 --modulus 257 --tests ratios,characters

    for dtype in f64 f32 f16 bf16; do
        for generator in broken-gauss polar; do
            [ $generator = polar ] && name=control || name=broken
            values "$name-$dtype" $generator $dtype 2e7 lattice,cosines,quads,signs,norms,digits,round,ties,windows
        done
    done

    # Three tests that find nothing in 2e7 values, with more. Only `ties` then fails.
    values broken-f64-windows broken-gauss f64 1e9 windows
    values broken-f32-norms broken-gauss f32 8e9 norms
    values broken-f16-ties broken-gauss f16 3.6e9 ties
    values control-f16-ties polar f16 3.2e9 ties
}

case $kind in
permutations | streams | broken) $kind ;;
*)
    echo "make.sh: $kind: expected permutations, streams or broken" >&2
    exit 64
    ;;
esac
