#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes the reports broken-*.json of the old bits, and the reports control-*.json of exact shuffles and
# exact normal values. The tests are those that find faults of the old bits. It writes to the current
# folder, and takes ten minutes on two cores. The runs on the old bits end with 1, as they should.
#
#     sh broken.sh PATH/shuf-quality
quality=${1:?path of shuf-quality}

rows() { # n, rows, prime
	for generator in broken-primefold fisher-yates; do
		name=$([ $generator = fisher-yates ] && echo control || echo broken)
		"$quality" judge --generator $generator --n "$1" --samples "$2" --modulus "$3" \
			--tests parallelograms --json > "$name-$1.json"
	done
}

rows 97 200000 97
rows 127 50000 127
rows 128 50000 131
rows 257 10000 257
rows 1000 8000 1009
rows 1024 6200 1031
rows 4096 4000 4099
rows 65536 1000 65537
rows 1048576 1500 1048583

for dtype in f64 f32 f16 bf16; do
	for generator in broken-gauss polar; do
		name=$([ $generator = polar ] && echo control || echo broken)
		"$quality" stream --generator $generator --dtype $dtype --samples 2e7 --json \
			--tests lattice,cosines,quads,signs,norms,digits,round,ties,windows \
			> "$name-$dtype.json"
	done
done
