/* SPDX-License-Identifier: MIT
 *
 * See primefold.h.
 */
#include "simd/primefold.h"

#include "inverse.h"

unsigned shuf__primefold_word_bits(const shuf_primefold_shape *shape)
{
    if (shape->maps == 0)
        return 0;
    return shape->p >> 15 == 0 ? 16 : shape->p >> 31 == 0 ? 32 : 64;
}

static uint64_t quotient(uint64_t multiplier, unsigned word_bits, uint64_t p)
{
    if (word_bits == 64)
        return (uint64_t)(((unsigned __int128)multiplier << 64) / p);
    return (multiplier << word_bits) / p;
}

void shuf__primefold_make(struct shuf__primefold *row, const shuf_primefold_shape *shape,
                          shuf_key key, uint64_t epoch)
{
    row->plain = shuf_primefold_make_of(shape, key, epoch);
    row->inverse = false;
    row->word_bits = shuf__primefold_word_bits(shape);
    for (unsigned r = 0; r < shape->maps; r++)
        row->quotient[r] = quotient(row->plain.map[r].multiplier, row->word_bits, shape->p);
}

void shuf__primefold_invert(struct shuf__primefold *row)
{
    const shuf_primefold_shape *const shape = &row->plain.shape;
    if (shape->maps > 0)
        shuf__invert_maps(&row->plain);
    for (unsigned r = 0; r < shape->maps; r++)
        row->quotient[r] = quotient(row->plain.map[r].multiplier, row->word_bits, shape->p);
    row->inverse = !row->inverse;
}
