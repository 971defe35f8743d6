/* SPDX-License-Identifier: MIT
 *
 * `broken-gauss`: an old Gaussian stream whose blocks are not random enough. Each of 32 random
 * words selects two table numbers. Their 32 sums go through a Walsh-Hadamard transform. Each result
 * then gets a uniform part that is finer than the distance of two results. This stream is kept to
 * show that the tests detect its fault.
 */
#include "broken_gauss_table.h"
#include "stream.h"

#include "shuf/key.h"
#include "shuf/philox4x32.h"

#include <math.h>

enum { PURPOSE = 4, ROUNDS = 7 };

struct key {
    uint32_t key[2], high[2];
};

struct block {
    int32_t s[SHUF__BLOCK];
    uint32_t word[SHUF__BLOCK], more[SHUF__BLOCK];
};

static void draw(const struct key *key, uint64_t index, uint32_t word[SHUF__BLOCK])
{
    for (unsigned j = 0; j < SHUF__BLOCK / 4; j++, index++) {
        const shuf_philox4x32 counter = {
            {(uint32_t)index, (uint32_t)(index >> 32), key->high[0], key->high[1]}};
        const shuf_philox4x32 four =
            shuf_philox4x32_rounds(counter, key->key[0], key->key[1], ROUNDS);
        for (unsigned k = 0; k < 4; k++)
            word[4 * j + k] = four.word[k];
    }
}

static int32_t table_number(unsigned index, unsigned table)
{
    const int32_t size = shuf__broken_table[index % 128][table % 16];
    return index & 128 ? -size : size;
}

static void transform(int32_t x[SHUF__BLOCK])
{
    for (unsigned step = 1; step < SHUF__BLOCK; step *= 2)
        for (unsigned p = 0; p < SHUF__BLOCK; p++)
            if (!(p & step)) {
                const int32_t sum = x[p] + x[p + step], difference = x[p] - x[p + step];
                x[p] = sum;
                x[p + step] = difference;
            }
}

static struct block make_block(const struct key *key, uint64_t number)
{
    struct block b;
    const unsigned lane = (unsigned)(number % SHUF__BLOCK);
    draw(key, SHUF__BLOCK / 2 * number, b.word);
    draw(key, SHUF__BLOCK / 2 * number + SHUF__BLOCK / 4, b.more);
    for (unsigned p = 0; p < SHUF__BLOCK; p++)
        b.s[p] = table_number(b.word[p] & 255, p + lane) +
                 table_number(b.word[p] >> 8 & 255, p + lane + 8);
    transform(b.s);
    for (unsigned p = 0; p < SHUF__BLOCK; p++)
        b.s[p] = b.word[p] >> 31 ? -b.s[p] : b.s[p];
    return b;
}

static double value_of(const struct block *b, unsigned p, shuf_dtype dtype)
{
    if (dtype == SHUF_F64)
        return fma((int32_t)b->more[p] + 0.5, SHUF__BROKEN_C, fma(b->s[p], SHUF__BROKEN_A, 0));
    const int32_t h = (int32_t)((b->word[p] & 0xffff0000) | b->word[p ^ 1] >> 16);
    const float a = (float)SHUF__BROKEN_A, c = (float)SHUF__BROKEN_C;
    return shuf__dtype_round(dtype, fmaf((float)h, c, fmaf((float)b->s[p], a, 0)));
}

static void fill(uint64_t seed, uint64_t stream, shuf_dtype dtype, uint64_t first, size_t count,
                 double *value)
{
    uint32_t word[8];
    shuf_key_words(shuf_key_of_seed(seed), stream, (enum shuf_purpose)PURPOSE, 0, word);
    const struct key key = {{word[0], word[1]}, {word[2], word[3]}};
    for (size_t i = 0; i < count; i += SHUF__SUPERBLOCK)
        for (unsigned lane = 0; lane < SHUF__BLOCK; lane++) {
            const struct block block = make_block(&key, (first + i) / SHUF__BLOCK + lane);
            for (unsigned p = 0; p < SHUF__BLOCK; p++)
                value[i + 64 * (p / 2) + 2 * lane + p % 2] = value_of(&block, p, dtype);
        }
}

const struct shuf__stream_generator shuf__stream_broken_gauss = {
    "broken-gauss", "not normal: the Gaussian stream of shufd as it was", false, fill};
