#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Makes the reports broken-*.json and control-*.json: the old bits, and exact shuffles and normals
# by the tests that the old bits made necessary, in the folder that it runs in; half an hour on
# two cores. Those of the old bits end with 1, which is their purpose, except for windows
# and norms.
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

# Three of the ten maps of primefold.
"$quality" judge --generator primefold --rounds 3 --n 257 --samples 4000 \
	--tests ratios,characters --json > broken-maps-257.json
"$quality" judge --generator fisher-yates --n 257 --samples 4000 --modulus 257 \
	--tests ratios,characters --json > control-maps-257.json

values() { # report, generator, type, values, tests
	"$quality" stream --generator "$2" --dtype "$3" --samples "$4" --json --tests "$5" > "$1.json"
}

for dtype in f64 f32 f16 bf16; do
	for generator in broken-gauss polar; do
		name=$([ $generator = polar ] && echo control || echo broken)
		values "$name-$dtype" $generator $dtype 2e7 \
			lattice,cosines,quads,signs,norms,digits,round,ties,windows
	done
done

# Three tests that find nothing in 2e7 values, with more. Only `ties` then fails.
values broken-f64-windows broken-gauss f64 1e9 windows
values broken-f32-norms broken-gauss f32 8e9 norms
values broken-f16-ties broken-gauss f16 3.6e9 ties
values control-f16-ties polar f16 3.2e9 ties
