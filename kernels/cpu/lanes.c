/* SPDX-License-Identifier: MIT
 *
 * Plain loops that the compiler vectorises (see -fopt-info-vec); compiled with
 * SHUF_LANES set to the instruction set's name and the flags that allow it.
 */
#include "lanes.h"

#include "shuf/fingerprint.h"

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

#define M0 SHUF_PHILOX24_MULTIPLIER

/* One round where both halves have at most 16 bits, so that 16-bit lanes do.
 * Bits 32 to 47 of M0 * left are needed, and bits 0 to 15; the product is
 * assembled from 16-bit limbs of M0, with the one carry that can reach bit 32.
 * `top` is the highest bit of the right half if that half is the longer one,
 * else 0: the bit that the rotation carries over. */
#define NARROW_ROUND(left, right, key, pad, top, left_mask, right_mask)                            \
    do {                                                                                           \
        const uint16_t m_0 = (uint16_t)M0, m_1 = (uint16_t)(M0 >> 16), m_2 = (uint16_t)(M0 >> 32); \
        uint16_t lo_0 = (uint16_t)(left * m_0), hi_0 = (uint16_t)((uint32_t)left * m_0 >> 16);     \
        uint16_t lo_1 = (uint16_t)(left * m_1), hi_1 = (uint16_t)((uint32_t)left * m_1 >> 16);     \
        uint16_t carried = (uint16_t)(lo_1 + hi_0);                                                \
        uint16_t hi = (uint16_t)(hi_1 + (carried < lo_1) + (uint16_t)(left * m_2));                \
        uint16_t lo = pad ? (uint16_t)((uint16_t)(lo_0 << 1) | ((right & top) ? 1 : 0)) : lo_0;    \
        left = (uint16_t)((hi ^ (key) ^ right) & left_mask);                                       \
        right = (uint16_t)(lo & right_mask);                                                       \
    } while (0)

#define NARROW_SPLIT(x, left, right)                             \
    uint16_t left = (uint16_t)(((x) >> right_bits) & left_mask); \
    uint16_t right = (uint16_t)((x)&right_mask)

#define NARROW_LOOP(pad)                                                            \
    for (size_t i = 0; i < half; i++) {                                             \
        NARROW_SPLIT(x0 + (uint32_t)i * step, left_0, right_0);                     \
        NARROW_SPLIT(x1 + (uint32_t)i * step, left_1, right_1);                     \
        _Pragma("GCC unroll 24") for (int r = 0; r < SHUF_PHILOX24_ROUNDS; r++)     \
        {                                                                           \
            NARROW_ROUND(left_0, right_0, key[r], pad, top, left_mask, right_mask); \
            NARROW_ROUND(left_1, right_1, key[r], pad, top, left_mask, right_mask); \
        }                                                                           \
        out_0[i] = (uint32_t)left_0 << right_bits | right_0;                        \
        out_1[i] = (uint32_t)left_1 << right_bits | right_1;                        \
    }

/* Two values side by side, from either half of the array: a round waits for the one before it, and
 * the rounds of a single value are as many instructions as a processor looks ahead. */
static void philox24_halves(const shuf_philox24 *p, uint32_t x0, uint32_t x1, uint32_t step,
                            uint32_t *restrict out_0, uint32_t *restrict out_1, size_t half)
{
    const unsigned right_bits = p->right_bits;
    const uint16_t left_mask = (uint16_t)((1u << p->left_bits) - 1);
    const uint16_t right_mask = (uint16_t)((1u << right_bits) - 1);
    const uint16_t top = (uint16_t)(right_mask & ~left_mask);
    uint16_t key[SHUF_PHILOX24_ROUNDS];
    for (int r = 0; r < SHUF_PHILOX24_ROUNDS; r++)
        key[r] = (uint16_t)p->key[r];
    if (top)
        NARROW_LOOP(1)
    else
        NARROW_LOOP(0)
}

static void philox24_narrow(const union shuf__bijection *f, uint32_t x0, uint32_t step,
                            uint32_t *restrict out, size_t count)
{
    const shuf_philox24 *p = &f->philox24;
    const size_t half = count / 2;
    philox24_halves(p, x0, x0 + (uint32_t)half * step, step, out, out + half, half);
    if (count % 2) {
        uint64_t mask = (UINT64_C(1) << (p->left_bits + p->right_bits)) - 1;
        out[count - 1] = (uint32_t)shuf_philox24_forward(p, (x0 + (count - 1) * step) & mask);
    }
}

static void philox24_wide(const union shuf__bijection *f, uint64_t x0, uint64_t step,
                          uint64_t *restrict out, size_t count)
{
    const shuf_philox24 p = f->philox24;
    const uint64_t mask = (UINT64_C(1) << (p.left_bits + p.right_bits)) - 1;
    for (size_t i = 0; i < count; i++)
        out[i] = shuf_philox24_forward(&p, (x0 + i * step) & mask);
}

static void lcg_narrow(const union shuf__bijection *f, uint32_t x0, uint32_t step,
                       uint32_t *restrict out, size_t count)
{
    const uint32_t a = (uint32_t)f->lcg.multiplier, c = (uint32_t)f->lcg.increment;
    const uint32_t mask = (uint32_t)f->lcg.mask;
    for (size_t i = 0; i < count; i++)
        out[i] = (a * (x0 + (uint32_t)i * step) + c) & mask;
}

static void lcg_wide(const union shuf__bijection *f, uint64_t x0, uint64_t step,
                     uint64_t *restrict out, size_t count)
{
    const shuf_lcg l = f->lcg;
    for (size_t i = 0; i < count; i++)
        out[i] = shuf_lcg_forward(&l, x0 + i * step);
}

static size_t compact_narrow(uint32_t *values, size_t count, uint32_t n)
{
    size_t kept = 0, i = 0;
#ifdef __AVX512F__
    const __m512i bound = _mm512_set1_epi32((int)n);
    for (; i + 16 <= count; i += 16) {
        __m512i v = _mm512_loadu_si512(values + i);
        __mmask16 keep = _mm512_cmplt_epu32_mask(v, bound);
        /* Compressed in a register and stored whole: what is written past the
         * kept values lies in what has been read already. */
        _mm512_storeu_si512(values + kept, _mm512_maskz_compress_epi32(keep, v));
        kept += (size_t)__builtin_popcount(keep);
    }
#endif
    for (; i < count; i++) {
        uint32_t v = values[i];
        values[kept] = v;
        kept += v < n;
    }
    return kept;
}

static size_t compact_wide(uint64_t *values, size_t count, uint64_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t v = values[i];
        values[kept] = v;
        kept += v < n;
    }
    return kept;
}

static uint64_t fingerprint_narrow(const uint32_t *values, size_t count, uint64_t first)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += shuf_fingerprint_term(first + i, values[i]);
    return sum;
}

static uint64_t fingerprint_wide(const uint64_t *values, size_t count, uint64_t first)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += shuf_fingerprint_term(first + i, values[i]);
    return sum;
}

extern const struct shuf__lanes PASTE(shuf__lanes_, SHUF_LANES);

const struct shuf__lanes PASTE(shuf__lanes_, SHUF_LANES) = {
    .name = TEXT(SHUF_LANES),
    .narrow = {[SHUF_ALGORITHM_PHILOX24] = philox24_narrow, [SHUF_ALGORITHM_LCG] = lcg_narrow},
    .wide = {[SHUF_ALGORITHM_PHILOX24] = philox24_wide, [SHUF_ALGORITHM_LCG] = lcg_wide},
    .compact_narrow = compact_narrow,
    .compact_wide = compact_wide,
    .fingerprint_narrow = fingerprint_narrow,
    .fingerprint_wide = fingerprint_wide,
};
