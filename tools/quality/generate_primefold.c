/* SPDX-License-Identifier: MIT
 *
 * `primefold`, or only its first rounds. A round is a map and the fold after it. For a small n,
 * primefold has exchanges instead of rounds, and the code always does all of them.
 */
#include "generator.h"

#include "shuf/primefold.h"

#include <assert.h>

struct primefold {
    shuf_primefold_shape shape; /* the shape with all maps */
    shuf_primefold f;
    uint64_t reciprocal; /* 2^64 / p, rounded down */
};

/* `state` has zeros, or the shape that an earlier call with the same n and `rounds` has made. */
static void make(void *state, uint32_t n, uint64_t seed, uint64_t epoch, unsigned rounds)
{
    struct primefold *p = state;
    if (p->shape.n != n) {
        p->shape = shuf_primefold_shape_of(n);
        if (p->shape.maps > 0)
            p->reciprocal = UINT64_MAX / p->shape.p; /* equals floor(2^64 / p), because p is odd */
    }
    p->f = shuf_primefold_make_of(&p->shape, shuf_key_of_seed(seed), epoch);
    if (p->f.shape.maps > rounds)
        p->f.shape.maps = rounds;
}

/* Makes all values. Exchange k puts value k to the position of its partner. */
static void exchange(const shuf_primefold *f, uint32_t n, uint32_t *row)
{
    uint8_t position[SHUF_PRIMEFOLD_EXACT];
    for (unsigned value = 0; value < n; value++)
        position[value] = (uint8_t)value;
    for (unsigned k = 1; k < n; k++) {
        const uint8_t mine = position[k];
        position[k] = position[f->exchange[k]];
        position[f->exchange[k]] = mine;
    }
    for (unsigned value = 0; value < n; value++)
        row[position[value]] = value;
}

/* The maps of shuf_primefold_forward() without a division. All numbers are below 2^29, so their
 * products are below 2^58. The estimated quotient is then too small by at most one. */
static uint64_t all_maps(const struct primefold *p, uint64_t x)
{
    const uint64_t prime = p->f.shape.p;
    for (unsigned r = 0; r < p->f.shape.maps; r++) {
        const uint64_t sum = p->f.map[r].multiplier * x + (r == 0 ? p->f.addend : 0);
        const uint64_t rest = sum - shuf__mulhi64(sum, p->reciprocal) * prime;
        x = rest < prime ? rest : rest - prime;
        if (r + 1 < p->f.shape.maps)
            x = shuf_primefold_fold(&p->f, r, x);
    }
    return x;
}

static void fill(const void *state, uint32_t n, uint32_t *row)
{
    const struct primefold *p = state;
    if (p->f.shape.maps == 0) {
        exchange(&p->f, n, row);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        uint64_t x = i;
        do
            x = all_maps(p, x);
        while (x >= n);
        row[i] = (uint32_t)x;
    }
}

/* Returns the prime p, or 0 for an exact shuffle. */
static uint64_t modulus(uint32_t n)
{
    return shuf_primefold_shape_of(n).p;
}

_Static_assert(sizeof(struct primefold) <= SHUF__GENERATOR_STATE, "it is kept there");

const struct shuf__generator shuf__generator_primefold = {
    "primefold",
    "multiplications modulo a prime, with folds; exchanges for small n",
    SHUF_PRIMEFOLD_MAPS,
    SHUF_PRIMEFOLD_MAPS,
    make,
    fill,
    modulus};
