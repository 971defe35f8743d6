/* SPDX-License-Identifier: MIT
 *
 * See primefold.h.
 */
#include "simd/primefold.h"

shuf_primefold_shape shuf__primefold_shape(uint64_t n)
{
    static _Thread_local shuf_primefold_shape last;
    if (last.n != n)
        last = shuf_primefold_shape_of(n);
    return last;
}

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

/* y = m x + a (mod p), so x = m^-1 y - m^-1 a (mod p). */
void shuf__invert_maps(shuf_primefold *f)
{
    shuf_primefold there = *f;
    const unsigned maps = there.shape.maps;
    const uint64_t p = there.shape.p;
    shuf_primefold_make_inverse(&there);
    for (unsigned r = 0; r < maps; r++) {
        const unsigned from = maps - 1 - r;
        f->map[r] =
            (shuf_primefold_map){there.inverse[from], from > 0 ? there.map[from - 1].fold : 0};
    }
    f->addend = shuf__multiply_mod(there.inverse[0], (p - there.addend) % p, p);
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
