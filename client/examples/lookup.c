/* SPDX-License-Identifier: MIT
 *
 * A worker that needs neither a daemon nor the library. As rank R of W, it computes the values at
 * its first positions by inline C functions.
 *
 * cc lookup.c $(pkg-config --cflags libshuf) -o lookup && ./lookup 1e9 7 3 1 8
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
    const double size = strtod(argv[1], NULL); /* accepts 1e9 */
    const uint64_t seed = strtoull(argv[2], NULL, 0);
    const uint64_t epoch = strtoull(argv[3], NULL, 0), rank = strtoull(argv[4], NULL, 0);
    const uint64_t world = strtoull(argv[5], NULL, 0);
    if (!(size >= 1 && size <= 0x1p62)) {
        fprintf(stderr, "lookup: N %s: expected 1 to 2^62\n", argv[1]);
        return EXIT_FAILURE;
    }
    const uint64_t n = (uint64_t)size;
    if (rank >= world || world > n) {
        fprintf(stderr,
                "lookup: RANK %s, WORLD %s: expected RANK below WORLD, and that at most N\n",
                argv[4], argv[5]);
        return EXIT_FAILURE;
    }
    shuf_primefold f = shuf_primefold_make(n, seed, epoch);
    for (uint64_t i = 0, at = rank; i < SHOWN && at < n; i++, at += world)
        printf("%" PRIu64 "\n", shuf_primefold_forward(&f, at));
    return EXIT_SUCCESS;
}
