/* SPDX-License-Identifier: MIT
 *
 * The loops of integer streams (shuf/integers.h). A loop makes the words of a run of values, and
 * repeats this for the next attempt while one of them is undecided: for a small bound almost never.
 * Like simd_ops.c, this file is compiled once for each instruction set.
 */
#include "simd/simd_ops.h"

#include <string.h>

enum { RUN = 128 }; /* words */

static void words_of(const shuf_integers *s, uint32_t attempt, uint64_t draw, void *word)
{
    const shuf_stream words = shuf_integers_attempt(s, attempt);
    SHUF__SIMD_NAME(shuf__uniform_words)(&words, draw, word, RUN);
}

/* For a type of values: set_...() sets the values that are open to those of their words, and clears
 * `open` of those that are decided. It returns 0 if none is open. draw_...() is the loop. */
#define DRAW(name, type)                                                                      \
    static inline type set_##name(const shuf_integers *s, const type *restrict word,          \
                                  type *restrict open, type *restrict value, int count)       \
    {                                                                                         \
        type any = 0, next;                                                                   \
        for (int i = 0; i < count; i++) {                                                     \
            const type undecided = (type)0 - !shuf_integers_##name##_of(s, word[i], &next);   \
            value[i] = (value[i] & ~open[i]) | (next & open[i]);                              \
            open[i] &= undecided;                                                             \
            any |= open[i];                                                                   \
        }                                                                                     \
        return any;                                                                           \
    }                                                                                         \
                                                                                              \
    static void draw_##name(const union shuf__source *source, uint64_t super, void *out)      \
    {                                                                                         \
        enum { VALUES = RUN * sizeof(uint32_t) / sizeof(type), OF_DRAW = 16 / sizeof(type) }; \
        const shuf_integers s = source->integers;                                             \
        for (uint64_t i = 0; i < SHUF__SUPER; i += VALUES) {                                  \
            type word[VALUES], open[VALUES], any = 1;                                         \
            memset(open, 0xff, sizeof open);                                                  \
            for (uint32_t attempt = 0; any != 0; attempt++) {                                 \
                words_of(&s, attempt, (super * SHUF__SUPER + i) / OF_DRAW, word);             \
                any = set_##name(&s, word, open, (type *)out + i, VALUES);                    \
            }                                                                                 \
        }                                                                                     \
    }

DRAW(u32, uint32_t)
DRAW(u64, uint64_t)

shuf__draw *SHUF__SIMD_NAME(shuf__integers)(shuf_dtype dtype)
{
    return dtype == SHUF_U64 ? draw_u64 : draw_u32;
}
