/* SPDX-License-Identifier: MIT
 *
 * The loops of philox24 and lcg, compaction and fingerprints. The compiler vectorises plain loops
 * (-fopt-info-vec shows which). Where gcc does this badly for AVX-512, the code uses intrinsics.
 * This file is compiled once for each instruction set, with SHUF_SIMD set to the name of the set.
 */
#include "simd/simd_ops.h"

#include <stdbool.h>
#include <string.h>

#ifdef __AVX512BW__
#include <immintrin.h>
#endif

#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

#define M0 SHUF_PHILOX24_MULTIPLIER

#ifdef __AVX512BW__

/* How philox24 gets the product of a round if both halves of a value fit 16-bit lanes. MULTIPLIED
 * computes it from 16-bit limbs. OF_32 and OF_64 look it up in a table, for a left half of 5 or 6
 * bits, which has 32 or 64 products. Nanoseconds a value on one core of an EPYC 9004 at 3.7 GHz:
 *
 *     multiplied 1.6     looked up 0.54 (0.74 if the right half is longer)     plain loop 2.25
 *
 * The plain loop below is slow for two reasons: gcc 12 moves the carry's mask through a general
 * register, and each round waits for the round before it. */
enum product { MULTIPLIED, OF_32, OF_64 };

/* The number of vectors that a loop computes at the same time. With MULTIPLIED, 1 vector takes 2.9
 * ns a value and 2 vectors take 2.1. 8 vectors would be 7 % faster at n = 1000, but 44 % slower at
 * n = 100. */
enum { VECTORS = 4, BLOCK = 32 * VECTORS };

struct narrow {
    unsigned pad; /* the right half is longer than the left one by so many bits: 0 or 1 */
    __m128i left_bits, right_bits;
    __m512i left_mask, right_mask;
    __m512i products[2];                /* table for looked_up_round(); its index is a left half */
    uint32_t key[SHUF_PHILOX24_ROUNDS]; /* each holds a 16-bit key twice, for two lanes */
};

enum { XOR = 0x96, A_OR_B_AND_C = 0xA8, A_XOR_B_AND_C = 0x78 }; /* truth tables for ternarylogic */

/* Bits 32 to 47 of the product M0 * left. Only one carry can reach bit 32, and it is added. */
static inline __m512i product_hi(__m512i left)
{
    const __m512i m_0 = _mm512_set1_epi16((short)M0), m_1 = _mm512_set1_epi16((short)(M0 >> 16)),
                  m_2 = _mm512_set1_epi16((short)(M0 >> 32)), one = _mm512_set1_epi16(1);
    __m512i lo_1 = _mm512_mullo_epi16(left, m_1);
    __m512i carried = _mm512_add_epi16(lo_1, _mm512_mulhi_epu16(left, m_0));
    __m512i hi = _mm512_add_epi16(_mm512_mulhi_epu16(left, m_1), _mm512_mullo_epi16(left, m_2));
    return _mm512_mask_add_epi16(hi, _mm512_cmplt_epu16_mask(carried, lo_1), hi, one);
}

/* Bits 0 to 15 of the product, shifted left by `pad`. */
static inline __m512i product_lo(__m512i left, unsigned pad)
{
    return _mm512_mullo_epi16(left, _mm512_set1_epi16((short)(M0 << pad)));
}

static inline void multiplied_round(const struct narrow *f, bool pad, __m512i key, __m512i *left,
                                    __m512i *right)
{
    __m512i lo = product_lo(*left, pad);
    __m512i sum = _mm512_ternarylogic_epi32(product_hi(*left), key, *right, XOR);
    *left = _mm512_and_si512(sum, f->left_mask);
    *right = pad ? _mm512_ternarylogic_epi32(lo, _mm512_srl_epi16(*right, f->left_bits),
                                             f->right_mask, A_OR_B_AND_C)
                 : _mm512_and_si512(lo, f->right_mask);
}

/* One round: a look-up, a shift and an exclusive or of three operands. If the right half is longer,
 * two more instructions carry its extra bit over. A lane has the left half in its low byte and the
 * right half in its high byte. In the low byte, the bits above the left half are undefined. A
 * product in the table has its `hi` in the low byte and its `lo` in the high byte. */
static inline __m512i looked_up_round(const struct narrow *f, enum product product, bool pad,
                                      __m512i key, __m512i both)
{
    __m512i entry = product == OF_32
                        ? _mm512_permutexvar_epi16(both, f->products[0])
                        : _mm512_permutex2var_epi16(f->products[0], both, f->products[1]);
    __m512i next = _mm512_ternarylogic_epi32(entry, key, _mm512_srli_epi16(both, 8), XOR);
    return pad ? _mm512_ternarylogic_epi32(next, _mm512_srl_epi16(both, f->left_bits),
                                           _mm512_set1_epi16(1 << 8), A_XOR_B_AND_C)
               : next;
}

/* Makes the table for looked_up_round(). The products repeat in it, because the upper bits of an
 * index are undefined. */
static void make_products(struct narrow *f)
{
    uint16_t index[64];
    for (int i = 0; i < 64; i++)
        index[i] = (uint16_t)i;
    for (int i = 0; i < 2; i++) {
        __m512i left = _mm512_and_si512(_mm512_loadu_si512(index + 32 * i), f->left_mask);
        __m512i hi = _mm512_and_si512(product_hi(left), f->left_mask);
        __m512i lo = _mm512_and_si512(product_lo(left, f->pad), f->right_mask);
        f->products[i] = _mm512_or_si512(hi, _mm512_slli_epi16(lo, 8));
    }
}

static struct narrow make_narrow(const shuf_philox24 *p)
{
    struct narrow f = {.pad = p->right_bits - p->left_bits};
    const uint32_t left_mask = (1u << p->left_bits) - 1, right_mask = (1u << p->right_bits) - 1;
    f.left_bits = _mm_cvtsi32_si128((int)p->left_bits);
    f.right_bits = _mm_cvtsi32_si128((int)p->right_bits);
    f.left_mask = _mm512_set1_epi16((short)left_mask);
    f.right_mask = _mm512_set1_epi16((short)right_mask);
    for (int r = 0; r < SHUF_PHILOX24_ROUNDS; r++)
        f.key[r] = (p->key[r] & left_mask) * 0x10001;
    if (p->left_bits <= 6)
        make_products(&f);
    return f;
}

/* Splits 32 values into left and right halves, in 16-bit lanes. x has 16 values in 32-bit lanes,
 * and y = x + 16 steps has the next 16. In *left and *right the halves of x and of y alternate. */
static inline void split(const struct narrow *f, __m512i x, __m512i y, __m512i *left,
                         __m512i *right)
{
    const __mmask32 odd = 0xaaaaaaaa;
    __m512i lx = _mm512_srl_epi32(x, f->right_bits), ly = _mm512_srl_epi32(y, f->right_bits);
    *left =
        _mm512_and_si512(_mm512_mask_blend_epi16(odd, lx, _mm512_slli_epi32(ly, 16)), f->left_mask);
    *right =
        _mm512_and_si512(_mm512_mask_blend_epi16(odd, x, _mm512_slli_epi32(y, 16)), f->right_mask);
}

static inline void interleave(const struct narrow *f, __m512i left, __m512i right, uint32_t *out)
{
    const __m512i even = _mm512_set1_epi32(0xffff);
    __m512i lx = _mm512_and_si512(left, even), ly = _mm512_srli_epi32(left, 16);
    __m512i rx = _mm512_and_si512(right, even), ry = _mm512_srli_epi32(right, 16);
    _mm512_storeu_si512(out, _mm512_or_si512(_mm512_sll_epi32(lx, f->right_bits), rx));
    _mm512_storeu_si512(out + 16, _mm512_or_si512(_mm512_sll_epi32(ly, f->right_bits), ry));
}

static inline void narrow_block(const struct narrow *f, enum product product, bool pad, __m512i x,
                                __m512i step_16, uint32_t *out)
{
    __m512i left[VECTORS], right[VECTORS];
    for (int v = 0; v < VECTORS; v++) {
        __m512i y = _mm512_add_epi32(x, step_16);
        split(f, x, y, &left[v], &right[v]);
        x = _mm512_add_epi32(y, step_16);
        if (product != MULTIPLIED)
            left[v] = _mm512_or_si512(left[v], _mm512_slli_epi16(right[v], 8));
    }
    for (int r = 0; r < SHUF_PHILOX24_ROUNDS; r++) {
        const __m512i key = _mm512_set1_epi32((int)f->key[r]);
        for (int v = 0; v < VECTORS; v++)
            if (product == MULTIPLIED)
                multiplied_round(f, pad, key, &left[v], &right[v]);
            else
                left[v] = looked_up_round(f, product, pad, key, left[v]);
    }
    for (int v = 0; v < VECTORS; v++)
        if (product == MULTIPLIED)
            interleave(f, left[v], right[v], out + 32 * v);
        else
            interleave(f, _mm512_and_si512(left[v], f->left_mask), _mm512_srli_epi16(left[v], 8),
                       out + 32 * v);
}

static inline __attribute__((always_inline)) void
narrow_blocks(const struct narrow *f, enum product product, bool pad, uint32_t x0, uint32_t step,
              uint32_t *restrict out, size_t count)
{
    const __m512i ramp = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i steps = _mm512_set1_epi32((int)step), step_16 = _mm512_slli_epi32(steps, 4);
    const __m512i step_block = _mm512_set1_epi32((int)(step * BLOCK));
    __m512i x = _mm512_add_epi32(_mm512_set1_epi32((int)x0), _mm512_mullo_epi32(ramp, steps));
    for (; count >= BLOCK; count -= BLOCK, out += BLOCK) {
        narrow_block(f, product, pad, x, step_16, out);
        x = _mm512_add_epi32(x, step_block);
    }
    if (count) {
        uint32_t last[BLOCK];
        narrow_block(f, product, pad, x, step_16, last);
        memcpy(out, last, count * sizeof *out);
    }
}

static void philox24_narrow(const union shuf__bijection *bijection, uint32_t x0, uint32_t step,
                            uint32_t *restrict out, size_t count)
{
    const unsigned left_bits = bijection->philox24.left_bits;
    const struct narrow f = make_narrow(&bijection->philox24);
    if (left_bits <= 5 && f.pad)
        narrow_blocks(&f, OF_32, true, x0, step, out, count);
    else if (left_bits <= 5)
        narrow_blocks(&f, OF_32, false, x0, step, out, count);
    else if (left_bits <= 6 && f.pad)
        narrow_blocks(&f, OF_64, true, x0, step, out, count);
    else if (left_bits <= 6)
        narrow_blocks(&f, OF_64, false, x0, step, out, count);
    else if (f.pad)
        narrow_blocks(&f, MULTIPLIED, true, x0, step, out, count);
    else
        narrow_blocks(&f, MULTIPLIED, false, x0, step, out, count);
}

#else

/* One round if both halves fit 16-bit lanes. It needs bits 32 to 47 and 0 to 15 of the product M0 *
 * left. The code computes them from 16-bit limbs of M0, and adds the only carry that can reach bit
 * 32. `top` is the highest bit of the right half if that half is longer, else 0. The round moves
 * this bit to the end of the new right half. */
#define NARROW_ROUND(left, right, key, pad, top, left_mask, right_mask)                            \
    do {                                                                                           \
        const uint16_t m_0 = (uint16_t)M0, m_1 = (uint16_t)(M0 >> 16), m_2 = (uint16_t)(M0 >> 32); \
        const uint32_t wide = left; /* an int would overflow */                                    \
        uint16_t lo_0 = (uint16_t)(wide * m_0), hi_0 = (uint16_t)(wide * m_0 >> 16);               \
        uint16_t lo_1 = (uint16_t)(wide * m_1), hi_1 = (uint16_t)(wide * m_1 >> 16);               \
        uint16_t carried = (uint16_t)(lo_1 + hi_0);                                                \
        uint16_t hi = (uint16_t)(hi_1 + (carried < lo_1) + (uint16_t)(wide * m_2));                \
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

/* Computes two values at a time, one in each half of the array. A round waits for the round before
 * it. Meanwhile the processor works on the other value, but only if the loop has the same round of
 * both values side by side: the processor does not look further ahead than all rounds of one value.
 */
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

#endif

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
#ifdef __AVX512BW__
    const __m512i bound = _mm512_set1_epi32((int)n);
    for (; i + 16 <= count; i += 16) {
        __m512i v = _mm512_loadu_si512(values + i);
        __mmask16 keep = _mm512_cmplt_epu32_mask(v, bound);
        /* Moves the kept values to the front of a register, and stores the whole register. The
         * other lanes overwrite only values that the loop has already read. */
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

extern const struct shuf__simd_ops SHUF__SIMD_NAME(shuf__simd_ops);

const struct shuf__simd_ops SHUF__SIMD_NAME(shuf__simd_ops) = {
    .name = TEXT(SHUF_SIMD),
    .stream = SHUF__SIMD_NAME(shuf__stream),
    .exponential_keys = SHUF__SIMD_NAME(shuf__exponential_keys),
    .narrow = {[SHUF_ALGORITHM_PRIMEFOLD] = SHUF__SIMD_NAME(shuf__primefold_narrow),
               [SHUF_ALGORITHM_PHILOX24] = philox24_narrow,
               [SHUF_ALGORITHM_LCG] = lcg_narrow},
    .wide = {[SHUF_ALGORITHM_PRIMEFOLD] = SHUF__SIMD_NAME(shuf__primefold_wide),
             [SHUF_ALGORITHM_PHILOX24] = philox24_wide,
             [SHUF_ALGORITHM_LCG] = lcg_wide},
    .records_narrow = SHUF__SIMD_NAME(shuf__records_narrow),
    .records_widened = SHUF__SIMD_NAME(shuf__records_widened),
    .records_wide = SHUF__SIMD_NAME(shuf__records_wide),
    .search_narrow = SHUF__SIMD_NAME(shuf__search_narrow),
    .search_widened = SHUF__SIMD_NAME(shuf__search_widened),
    .search_wide = SHUF__SIMD_NAME(shuf__search_wide),
    .compact_narrow = compact_narrow,
    .compact_wide = compact_wide,
    .fingerprint_half = SHUF__SIMD_NAME(shuf__fingerprint_half),
    .fingerprint_narrow = SHUF__SIMD_NAME(shuf__fingerprint_narrow),
    .fingerprint_wide = SHUF__SIMD_NAME(shuf__fingerprint_wide),
};
