/* SPDX-License-Identifier: MIT
 *
 * The operations of primefold_vector.h that AVX2 does in its own way. A comparison sets all bits of
 * a lane, or none.
 */

/* y is the same in all lanes. */
static inline vector_32 high_product_32(vector_32 x, vector_32 y)
{
    vector_32 odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), y);
    return _mm256_blend_epi32(_mm256_srli_epi64(_mm256_mul_epu32(x, y), 32), odd, 0xaa);
}

/* A mask of the bits below the highest set bit of y. */
static inline vector_16 below_top_16(vector_16 y)
{
    y = _mm256_srli_epi16(y, 1);
    y = _mm256_or_si256(y, _mm256_srli_epi16(y, 1));
    y = _mm256_or_si256(y, _mm256_srli_epi16(y, 2));
    y = _mm256_or_si256(y, _mm256_srli_epi16(y, 4));
    return _mm256_or_si256(y, _mm256_srli_epi16(y, 8));
}

static inline vector_32 float_bits_32(vector_32 x)
{
    return _mm256_castps_si256(_mm256_cvtepi32_ps(x));
}

/* x ^ a ^ b in lanes with x < limit, else x. */
static inline vector_32 xor_below_32(vector_32 x, vector_32 a, vector_32 b, vector_32 limit)
{
    return _mm256_xor_si256(x,
                            _mm256_and_si256(_mm256_xor_si256(a, b), _mm256_cmpgt_epi32(limit, x)));
}

static inline bool any_from_16(vector_16 x, vector_16 limit)
{
    return _mm256_movemask_epi8(_mm256_cmpgt_epi16(limit, x)) != -1;
}

static inline bool any_from_32(vector_32 x, vector_32 limit)
{
    return _mm256_movemask_epi8(_mm256_cmpgt_epi32(limit, x)) != -1;
}

static inline bool any_from_50(vector_50 x, vector_50 limit)
{
    return _mm256_movemask_pd(_mm256_cmp_pd(x, limit, _CMP_GE_OQ)) != 0;
}

static inline void store_16(uint32_t *out, vector_16 x)
{
    store_32(out, _mm256_cvtepu16_epi32(_mm256_castsi256_si128(x)));
    store_32(out + 8, _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1)));
}

/* A bit for each of 64 values: whether it is `limit` or more. */
static inline uint64_t which_from_32(const uint32_t values[64], uint32_t limit)
{
    uint64_t below = 0;
    for (int i = 0; i < 64; i += 8) {
        __m256i less = _mm256_cmpgt_epi32(all_32(limit), load_32(values + i));
        below |= (uint64_t)(uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(less)) << i;
    }
    return ~below;
}

static inline uint64_t which_from_50(const uint64_t values[64], uint64_t limit)
{
    const __m256i limits = _mm256_set1_epi64x((long long)limit);
    uint64_t below = 0;
    for (int i = 0; i < 64; i += 4) {
        __m256i four = _mm256_loadu_si256((const __m256i *)(values + i));
        __m256d less = _mm256_castsi256_pd(_mm256_cmpgt_epi64(limits, four));
        below |= (uint64_t)(uint32_t)_mm256_movemask_pd(less) << i;
    }
    return ~below;
}

/* ---- Doubles ---- */

static inline vector_50 rounded_50(vector_50 x)
{
    return _mm256_round_pd(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* x + y in lanes with x < 0, else x. */
static inline vector_50 add_if_negative_50(vector_50 x, vector_50 y)
{
    return _mm256_add_pd(x, _mm256_and_pd(y, _mm256_cmp_pd(x, _mm256_setzero_pd(), _CMP_LT_OQ)));
}

static inline bits_50 all_bits_50(uint64_t word)
{
    return _mm256_set1_epi64x((long long)word);
}

static inline bits_50 to_bits_50(vector_50 x)
{
    return _mm256_castpd_si256(x);
}

static inline vector_50 of_bits_50(bits_50 bits)
{
    return _mm256_castsi256_pd(bits);
}

static inline bits_50 xor_50(bits_50 a, bits_50 b)
{
    return _mm256_xor_si256(a, b);
}

static inline bits_50 and_50(bits_50 a, bits_50 b)
{
    return _mm256_and_si256(a, b);
}

/* a & ~b */
static inline bits_50 and_not_50(bits_50 a, bits_50 b)
{
    return _mm256_andnot_si256(b, a);
}

/* x ^ ((a ^ b) & where) */
static inline bits_50 xor_where_50(bits_50 x, bits_50 a, bits_50 b, bits_50 where)
{
    return _mm256_xor_si256(x, _mm256_and_si256(_mm256_xor_si256(a, b), where));
}

/* bits ^ a ^ b in lanes with x < limit, else `bits`. */
static inline bits_50 xor_where_below_50(bits_50 bits, bits_50 a, bits_50 b, vector_50 x,
                                         vector_50 limit)
{
    bits_50 below = to_bits_50(_mm256_cmp_pd(x, limit, _CMP_LT_OQ));
    return _mm256_xor_si256(bits, _mm256_and_si256(_mm256_xor_si256(a, b), below));
}
