/* SPDX-License-Identifier: MIT
 *
 * The operations of primefold_vector.h that AVX-512 does in its own way. A comparison gives a mask
 * with one bit for each lane.
 */
enum { XOR_OF_3 = 0x96, OR_OF_3 = 0xfe, XOR_IF_BOTH = 0x78 }; /* truth tables for ternarylogic */

/* y is the same in all lanes. */
static inline vector_32 high_product_32(vector_32 x, vector_32 y)
{
    vector_32 odd = _mm512_mul_epu32(_mm512_srli_epi64(x, 32), y);
    return _mm512_mask_shuffle_epi32(odd, 0x5555, _mm512_mul_epu32(x, y), _MM_PERM_DDBB);
}

/* A mask of the bits below the highest set bit of y. The steps set 3, 9 and 15 bits. */
static inline vector_16 below_top_16(vector_16 y)
{
    y = _mm512_ternarylogic_epi32(_mm512_srli_epi16(y, 1), _mm512_srli_epi16(y, 2),
                                  _mm512_srli_epi16(y, 3), OR_OF_3);
    y = _mm512_ternarylogic_epi32(y, _mm512_srli_epi16(y, 3), _mm512_srli_epi16(y, 6), OR_OF_3);
    return _mm512_or_si512(y, _mm512_srli_epi16(y, 6));
}

static inline vector_32 float_bits_32(vector_32 x)
{
    return _mm512_castps_si512(_mm512_cvtepi32_ps(x));
}

/* x ^ a ^ b in lanes with x < limit, else x. */
static inline vector_32 xor_below_32(vector_32 x, vector_32 a, vector_32 b, vector_32 limit)
{
    return _mm512_mask_ternarylogic_epi32(x, _mm512_cmplt_epu32_mask(x, limit), a, b, XOR_OF_3);
}

static inline bool any_from_16(vector_16 x, vector_16 limit)
{
    return _mm512_cmpge_epu16_mask(x, limit) != 0;
}

static inline bool any_from_32(vector_32 x, vector_32 limit)
{
    return _mm512_cmpge_epu32_mask(x, limit) != 0;
}

static inline bool any_from_50(vector_50 x, vector_50 limit)
{
    return _mm512_cmp_pd_mask(x, limit, _CMP_GE_OQ) != 0;
}

static inline void store_16(uint32_t *out, vector_16 x)
{
    store_32(out, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(x)));
    store_32(out + 16, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(x, 1)));
}

/* A bit for each of 64 values: whether it is `limit` or more. */
static inline uint64_t which_from_32(const uint32_t values[64], uint32_t limit)
{
    uint64_t which = 0;
    for (int i = 0; i < 64; i += 16)
        which |= (uint64_t)_mm512_cmpge_epu32_mask(load_32(values + i), all_32(limit)) << i;
    return which;
}

static inline uint64_t which_from_50(const uint64_t values[64], uint64_t limit)
{
    const __m512i limits = _mm512_set1_epi64((long long)limit);
    uint64_t which = 0;
    for (int i = 0; i < 64; i += 8)
        which |= (uint64_t)_mm512_cmpge_epu64_mask(_mm512_loadu_si512(values + i), limits) << i;
    return which;
}

/* ---- Doubles ---- */

static inline vector_50 rounded_50(vector_50 x)
{
    return _mm512_roundscale_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* x + y in lanes with x < 0, else x. */
static inline vector_50 add_if_negative_50(vector_50 x, vector_50 y)
{
    return _mm512_mask_add_pd(x, _mm512_cmp_pd_mask(x, _mm512_setzero_pd(), _CMP_LT_OQ), x, y);
}

static inline bits_50 all_bits_50(uint64_t word)
{
    return _mm512_set1_epi64((long long)word);
}

static inline bits_50 to_bits_50(vector_50 x)
{
    return _mm512_castpd_si512(x);
}

static inline vector_50 of_bits_50(bits_50 bits)
{
    return _mm512_castsi512_pd(bits);
}

static inline bits_50 xor_50(bits_50 a, bits_50 b)
{
    return _mm512_xor_si512(a, b);
}

static inline bits_50 and_50(bits_50 a, bits_50 b)
{
    return _mm512_and_si512(a, b);
}

/* a & ~b */
static inline bits_50 and_not_50(bits_50 a, bits_50 b)
{
    return _mm512_andnot_si512(b, a);
}

/* x ^ ((a ^ b) & where) */
static inline bits_50 xor_where_50(bits_50 x, bits_50 a, bits_50 b, bits_50 where)
{
    return _mm512_ternarylogic_epi32(x, _mm512_xor_si512(a, b), where, XOR_IF_BOTH);
}

/* bits ^ a ^ b in lanes with x < limit, else `bits`. */
static inline bits_50 xor_where_below_50(bits_50 bits, bits_50 a, bits_50 b, vector_50 x,
                                         vector_50 limit)
{
    return _mm512_mask_ternarylogic_epi64(bits, _mm512_cmp_pd_mask(x, limit, _CMP_LT_OQ), a, b,
                                          XOR_OF_3);
}
