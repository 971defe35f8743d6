/* SPDX-License-Identifier: MIT
 *
 * A search for seeds with many targets at once. The targets are rows of `primefold` with n = 1031,
 * each with a random seed of BITS bits. The program makes the rows of random seeds, and compares
 * their first values with those of all targets.
 *
 *     attack-seeds [BITS [TARGETS [TRIALS]]]        by default 48, 2^22 and 2^28
 *
 * TARGETS * TRIALS / 2^BITS of the seeds are found on average.
 */
#include "shuf/primefold.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { P = 1031, MAPS = SHUF_PRIMEFOLD_MAPS_SMALL_13, VALUE_BITS = 11, FEW = 3, MANY = 5 };

struct target {
    uint64_t values, seed;
};

/* n = p, so no value is skipped. */
static uint64_t first_values(const shuf_primefold *f, unsigned count)
{
    uint64_t values = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t x = i;
        for (unsigned r = 0; r < MAPS; r++) {
            x = (uint32_t)(f->map[r].multiplier * x + (r == 0 ? f->addend : 0)) % P;
            if (r + 1 < MAPS)
                x = (uint32_t)shuf_primefold_fold(f, r, x);
        }
        values = values << VALUE_BITS | x;
    }
    return values;
}

/* Random words of seeds that nothing else uses. */
static uint64_t random_word(uint64_t stream, uint64_t i)
{
    uint32_t word[8];
    shuf_key_words(shuf_key_of_seed(UINT64_MAX - stream), i / 4, SHUF_PURPOSE_STREAM, 0, word);
    return (uint64_t)word[i % 4 * 2] << 32 | word[i % 4 * 2 + 1];
}

static int by_values(const void *a, const void *b)
{
    const uint64_t x = ((const struct target *)a)->values, y = ((const struct target *)b)->values;
    return (x > y) - (x < y);
}

static double argument(char **argv, int argc, int i, double missing)
{
    return i < argc ? strtod(argv[i], NULL) : missing;
}

int main(int argc, char **argv)
{
    const double bits = argument(argv, argc, 1, 48);
    const uint64_t targets = (uint64_t)argument(argv, argc, 2, 1 << 22);
    const uint64_t trials = (uint64_t)argument(argv, argc, 3, 1 << 28);
    if (!(bits >= 16 && bits <= 64) || targets < 1 || targets > 1 << 28 || trials < 1) {
        fputs("attack-seeds: expected BITS from 16 to 64, TARGETS from 1 to 2^28, and TRIALS\n",
              stderr);
        return 64;
    }
    const unsigned shift = 64 - (unsigned)bits;
    const shuf_primefold_shape shape = shuf_primefold_shape_of(P);
    struct target *target = malloc(targets * sizeof *target);
    const uint64_t size = UINT64_C(1) << FEW * VALUE_BITS;
    /* One bit for each sequence of first values. */
    uint64_t *seen = calloc(size / 64, sizeof *seen);
    uint64_t found = 0;
    if (!target || !seen)
        return 71;
    for (uint64_t i = 0; i < targets; i++) {
        const uint64_t seed = random_word(0, i) >> shift;
        const shuf_primefold f = shuf_primefold_make_of(&shape, shuf_key_of_seed(seed), 0);
        target[i] = (struct target){first_values(&f, MANY), seed};
        const uint64_t few = target[i].values >> (MANY - FEW) * VALUE_BITS;
        seen[few / 64] |= UINT64_C(1) << few % 64;
    }
    qsort(target, targets, sizeof *target, by_values);
#pragma omp parallel for schedule(static) reduction(+ : found)
    for (uint64_t i = 0; i < trials; i++) {
        const uint64_t seed = random_word(1, i) >> shift;
        const shuf_primefold f = shuf_primefold_make_of(&shape, shuf_key_of_seed(seed), 0);
        const uint64_t few = first_values(&f, FEW);
        if (!(seen[few / 64] >> few % 64 & 1))
            continue;
        const struct target row = {first_values(&f, MANY), 0};
        const struct target *hit = bsearch(&row, target, targets, sizeof row, by_values);
        found += hit && hit->seed == seed;
    }
    printf("%" PRIu64 " targets with seeds of %g bits, %" PRIu64 " trials: %" PRIu64
           " seeds found, %g expected\n",
           targets, bits, trials, found, (double)targets * (double)trials / exp2(bits));
    free(target);
    free(seen);
    return 0;
}
