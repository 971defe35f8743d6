#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes the reports on streams in the current folder. Takes 15 CPU minutes.
#
#     sh streams.sh PATH/shuf-quality [NAME...]
#
# Each NAME is a report, such as gauss-f64. Without any NAME it makes all reports. The runs on the bad
# generators end with 1, as they should.
quality=${1:?path of shuf-quality}
shift

report() {
    name=$1
    shift
    case " $selected " in
    "  " | *" $name "*)
        "$quality" stream "$@" --json --plot "stream-$name.svg" >"stream-$name.json"
        echo "$name: $?"
        ;;
    esac
}

selected=$*
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
