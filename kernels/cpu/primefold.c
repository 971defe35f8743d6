/* SPDX-License-Identifier: MIT
 *
 * See primefold.h.
 */
#include "primefold.h"

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

/* shuf_primefold_make() without the search for the prime, which is the same for all rows. */
void shuf__primefold_make(struct shuf__primefold *row, const shuf_primefold_shape *shape,
                          uint64_t seed, uint64_t epoch)
{
    uint32_t word[SHUF_PRIMEFOLD_EXACT];
    const unsigned blocks = shuf_primefold_key_blocks(shape);
    shuf_primefold *f = &row->plain;
    f->shape = *shape;
    row->word_bits = shuf__primefold_word_bits(shape);
    for (unsigned block = 0; block < blocks; block++)
        shuf_key_words_for(shape->n, seed, epoch, SHUF_PURPOSE_PRIMEFOLD, block, word + 8 * block);
    for (unsigned r = 0; r < shape->maps; r++) {
        f->map[r] = shuf_primefold_map_of(shape, word, r);
        row->quotient[r] = quotient(f->map[r].multiplier, row->word_bits, shape->p);
    }
    if (shape->maps == 0)
        for (unsigned k = 1; k < shape->n; k++)
            f->exchange[k] = shuf_primefold_exchange(word[k], k);
}
