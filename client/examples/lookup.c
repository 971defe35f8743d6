/* SPDX-License-Identifier: MIT
 *
 * A worker that needs neither daemon nor library: it works its own positions out,
 * the first few of rank R of W, by inline C.
 *
 *     cc lookup.c $(pkg-config --cflags libshuf) -o lookup && ./lookup 1e9 7 3 1 8
 */
#include <shuf/primefold.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SHOWN = 5 };

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: lookup N SEED EPOCH RANK WORLD\n");
        return EXIT_FAILURE;
    }
    const uint64_t n = (uint64_t)strtod(argv[1], NULL), seed = strtoull(argv[2], NULL, 0);
    const uint64_t epoch = strtoull(argv[3], NULL, 0), rank = strtoull(argv[4], NULL, 0);
    const uint64_t world = strtoull(argv[5], NULL, 0);
    if (n < 1 || n > UINT64_C(1) << 62 || rank >= world) {
        fprintf(stderr, "lookup: expected N from 1 to 2^62, and RANK below WORLD\n");
        return EXIT_FAILURE;
    }
    shuf_primefold f = shuf_primefold_make(n, seed, epoch);
    for (uint64_t i = 0, at = rank; i < SHOWN && at < n; i++, at += world)
        printf("%" PRIu64 "\n", shuf_primefold_forward(&f, at));
    return EXIT_SUCCESS;
}
