/* SPDX-License-Identifier: MIT
 *
 * The loops of Bernoulli streams (shuf/bernoulli.h). A lane of a vector has the 128 bits of one
 * evaluation of Philox, and the loop over digits ends where all lanes are decided. Like simd_ops.c,
 * this file is compiled once for each instruction set.
 */
#include "simd/simd_ops.h"

#include <string.h>

#ifdef SHUF__SIMD_VECTORS

#include "stream_vector.h"

/* The bits of LANES neighbouring groups. The upper 32 bits of their numbers must be equal. */
static inline void make_groups(const shuf_bernoulli *b, uint64_t group, vector less[4])
{
    const vector number = V(add_epi32)(lane_numbers(), all((uint32_t)group));
    const shuf__bernoulli_bits begin = shuf__bernoulli_begin(b->threshold);
    uint64_t rest = b->threshold << 1;
    vector equal[4], open = all(1);
    for (int i = 0; i < 4; i++) {
        less[i] = all(begin.less);
        equal[i] = all(begin.equal);
    }
    for (uint32_t digit = 0; rest != 0 && !is_zero(open); digit++, rest <<= 1) {
        shuf_stream words = b->words;
        words.high[0] ^= digit;
        struct state digits = uniform_of(&words, number, (uint32_t)(group >> 32));
        const vector ones = all(0 - (uint32_t)(rest >> 63));
        rounds(&digits, SHUF_BERNOULLI_ROUNDS);
        open = all(0);
        for (int i = 0; i < 4; i++) {
            less[i] = VI(or)(less[i], VI(and)(equal[i], VI(andnot)(digits.c[i], ones)));
            equal[i] = VI(andnot)(VI(xor)(digits.c[i], ones), equal[i]);
            open = VI(or)(open, equal[i]);
        }
    }
}

static inline void draw(const shuf_bernoulli *b, uint64_t group, uint32_t *out, size_t count)
{
    for (size_t i = 0; i < count; i += 4 * LANES) {
        vector less[4];
        make_groups(b, group + i / 4, less);
        store_fours(out + i, less);
    }
}

#else

static inline void draw(const shuf_bernoulli *b, uint64_t group, uint32_t *out, size_t count)
{
    for (size_t i = 0; i < count; i += 4) {
        const shuf_philox4x32 bits = shuf_bernoulli_group(b, group + i / 4);
        memcpy(out + i, bits.word, sizeof bits.word);
    }
}

#endif

static void draw_u32(const union shuf__source *source, uint64_t super, void *out)
{
    draw(&source->bernoulli, super * (SHUF__SUPER / 4), out, SHUF__SUPER);
}

static void draw_u64(const union shuf__source *source, uint64_t super, void *out)
{
    draw(&source->bernoulli, super * (SHUF__SUPER / 2), out, 2 * SHUF__SUPER);
}

shuf__draw *SHUF__SIMD_NAME(shuf__bernoulli)(shuf_dtype dtype)
{
    return dtype == SHUF_U64 ? draw_u64 : draw_u32;
}
