/* SPDX-License-Identifier: MIT
 *
 * See shim.h.
 */
#include "shim.h"

/* ---- Draws with replacement ------------------------------------------------ */

void shufpy_scale(const uint64_t *bits, size_t count, uint64_t n, uint64_t *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = shuf__mulhi64(bits[i], n);
}

/* ---- NumPy's bit generator ---------------------------------------------- */

/* numpy/random/bitgen.h: part of NumPy's stable interface. */
struct bitgen {
    void *state;
    uint64_t (*next_uint64)(void *);
    uint32_t (*next_uint32)(void *);
    double (*next_double)(void *);
    uint64_t (*next_raw)(void *);
};

static uint64_t next_uint64(void *state)
{
    shufpy_draw *draw = state;
    const uint64_t pair = draw->offset / 2;
    if (pair != draw->pair) {
        const shuf_philox4x32 words = shuf_stream_words(&draw->stream, pair, SHUF_UNIFORM_ROUNDS);
        draw->word[0] = (uint64_t)words.word[1] << 32 | words.word[0];
        draw->word[1] = (uint64_t)words.word[3] << 32 | words.word[2];
        draw->pair = pair;
    }
    return draw->word[draw->offset++ % 2];
}

static uint32_t next_uint32(void *state)
{
    shufpy_draw *draw = state;
    if (draw->has_half) {
        draw->has_half = false;
        return draw->half;
    }
    const uint64_t value = next_uint64(draw);
    draw->half = (uint32_t)(value >> 32);
    draw->has_half = true;
    return (uint32_t)value;
}

static double next_double(void *state)
{
    return shuf_uniform_f64_of(next_uint64(state));
}

void shufpy_draw_make(shufpy_draw *draw, int source, uint64_t seed, uint64_t stream,
                      uint64_t offset)
{
    static const uint64_t blocks[] = {SHUF_STREAM_UNIFORM, SHUF_STREAM_REPLACEMENT,
                                      SHUF_STREAM_RECORD};
    *draw = (shufpy_draw){
        .stream = shuf_stream_make(shuf_key_of_seed(seed), stream, blocks[source]),
        .seed = seed,
        .number = stream,
        .offset = offset,
        .pair = UINT64_MAX,
    };
}

void shufpy_bitgen_fill(void *bitgen, shufpy_draw *draw)
{
    *(struct bitgen *)bitgen =
        (struct bitgen){draw, next_uint64, next_uint32, next_double, next_uint64};
}
