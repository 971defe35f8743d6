/* SPDX-License-Identifier: MIT
 *
 * Gaussian streams on the GPU (shuf/gauss.h): a thread computes a block of 32 values in its
 * registers, for each type of values. gauss.cu has the kernels.
 *
 * *Sums are floats.* They hold integers below 2^24, which a float holds exactly, and the GPU adds
 * floats at twice the rate of integers.
 *
 * *Tables.* Row `index` of the shared memory has number `index` of each of the 16 tables, four
 * times. For position p, lane l needs the tables (p + l) mod 16 and (p + l + 8) mod 16, which are
 * in the columns p % 16 + l and p % 16 + l + 8. So the 32 lanes of a warp read 32 different banks,
 * whatever their rows are.
 */
#ifndef SHUF__CUDA_GAUSS_CUH
#define SHUF__CUDA_GAUSS_CUH

#include "backend.h"
#include "philox.cuh"
#include "shuf/gauss.h"
#include "tuning.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace shuf::gauss
{

constexpr int block = SHUF_GAUSS_BLOCK, tables = 16, indices = 256;
constexpr int columns = 64; /* of a row: the least power of two above 15 + 31 + 8 */
constexpr unsigned shared_bytes = indices * columns * sizeof(float);
constexpr uint32_t sign = 0x80000000;

/* Subtracted from each number of shuf_gauss_table. An entry is the sum of two of these numbers and
 * a spread(), and spread() is too large by 2 * entry_less. */
constexpr int entry_less = 0x6000;
constexpr float unit = 0x1p-19f;

struct Gauss {
    Words<SHUF_GAUSS_ROUNDS> words;
    double std, mean;
    float std_f32, mean_f32;
    uint64_t offset, count; /* of the request */

    Gauss(const shuf_gauss &g, const shuf__stream &s)
        : words(g.words), std(g.std), mean(g.mean), std_f32(g.std_f32), mean_f32(g.mean_f32),
          offset(s.offset), count(s.count)
    {
    }
};

/* ---- Tables ---- */

/* shuf_gauss_table as floats, which hold its numbers and all sums exactly. */
struct alignas(16) Numbers {
    float of[indices * tables];
};

constexpr Numbers make_numbers()
{
    Numbers numbers{};
    for (int i = 0; i < indices * tables; i++)
        numbers.of[i] =
            static_cast<float>(shuf_gauss_table[i / tables][i % tables] - entry_less) * unit;
    return numbers;
}

static __device__ const Numbers numbers = make_numbers();

extern __shared__ __align__(16) float rows[];

__device__ __forceinline__ void fill_rows()
{
    constexpr int four = 4, times = columns / tables;
    const auto *const from = reinterpret_cast<const float4 *>(numbers.of);
    for (int i = threadIdx.x; i < indices * tables / four; i += blockDim.x) {
        const float4 entries = __ldg(from + i);
        const int row = i / (tables / four), column = i % (tables / four);
#pragma unroll
        for (int k = 0; k < times; k++)
            reinterpret_cast<float4 *>(rows)[(row * times + k) * (tables / four) + column] =
                entries;
    }
    __syncthreads();
}

/* Reads a table number for position p, by at<Byte, Further>(). Byte `Byte` of the word selects the
 * number in its table. The table comes `Further` tables after that of the position. */
struct InShared {
    uint32_t lane_bytes;

    template <int Byte, int Further> __device__ __forceinline__ float at(uint32_t word, int p) const
    {
        static_assert(columns * sizeof(float) == 256, "the index is the address's second byte");
        const uint32_t row = __byte_perm(word, lane_bytes, 0x7704 | Byte << 4);
        return *reinterpret_cast<const float *>(reinterpret_cast<const char *>(rows) + row +
                                                (p % tables + Further) * sizeof(float));
    }
};

/* Does the same as InShared, but reads the table in global memory. This suits few values, because
 * filling the shared memory takes time. */
struct InGlobal {
    uint32_t lane;

    template <int Byte, int Further> __device__ __forceinline__ float at(uint32_t word, int p) const
    {
        return __ldg(numbers.of + (word >> 8 * Byte & 255) * tables +
                     (p + lane + Further) % tables);
    }
};

/* ---- A block of values ---- */

__device__ __forceinline__ void transform(float (&x)[block])
{
#pragma unroll
    for (int step = 1; step < block; step *= 2)
#pragma unroll
        for (int p = 0; p < block; p++)
            if (!(p & step)) {
                const float sum = x[p] + x[p + step], difference = x[p] - x[p + step];
                x[p] = sum;
                x[p + step] = difference;
            }
}

__device__ __forceinline__ float negated(float x, uint32_t by)
{
    return __uint_as_float(__float_as_uint(x) ^ (by & sign));
}

/* (2^15 + 15 bits of the word + 1/2) * unit. The 15 bits become the upper bits of the float's
 * significand. */
__device__ __forceinline__ float spread(uint32_t word)
{
    return __uint_as_float((word & 0x007fff00) | 0x3d800080);
}

/* 2^23 + the dither of the word. The last bit of the dither is set. */
__device__ __forceinline__ float dither(uint32_t word)
{
    return __uint_as_float((word & 0x7ffffe) | 0x4b000001);
}

/* 2^52 + x. */
__device__ __forceinline__ double beyond_2_52(uint32_t x)
{
    return __hiloint2double(0x43300000, static_cast<int>(x));
}

/* Does the same as shuf__gauss_double(), from a sum, its word, and the word and early word of the
 * block's second half, which have more bits. */
__device__ __forceinline__ double exact_of(float s, uint32_t word, uint32_t second, uint32_t early)
{
    const double a = fma(beyond_2_52(word & 0x007fffff), 0x1p-37,
                         static_cast<double>(s) - (0x1p15 + 0x1p-15 - 48 * 0x1p-19));
    const double b = fma(beyond_2_52(early), 0x1p-101, 0x1p-102 - 0x1p-49);
    const double z = a + fma(beyond_2_52(second) - 0x1p52, 0x1p-69, b);
    return __hiloint2double(__double2hiint(z) ^ static_cast<int>(word & sign), __double2loint(z));
}

/* The words and the early words of draw number high << 32 | low. One product of the first round and
 * one of the second are the same for all threads of a warp. */
__device__ __forceinline__ void draw(const Gauss &g, uint32_t low, uint32_t high,
                                     uint32_t (&early)[4], uint32_t *word)
{
    early[0] = low;
    early[1] = g.words.high[0];
    early[2] = high;
    early[3] = g.words.high[1];
    g.words.rounds<0, SHUF_GAUSS_EARLY_ROUNDS>(early);
#pragma unroll
    for (int k = 0; k < 4; k++)
        word[k] = early[k];
    g.words.rounds<SHUF_GAUSS_EARLY_ROUNDS, SHUF_GAUSS_ROUNDS>(word);
}

struct Block {
    uint32_t low, high; /* the halves of the index of its first draw */
    uint32_t word[block];
    float s[block]; /* sums less 48 units: 32 for 2^23 in dither(), and 16 to centre the dither */

    template <typename Table>
    __device__ __forceinline__ Block(const Gauss &g, uint64_t super, uint32_t lane,
                                     const Table &table)
    {
        const uint64_t index = super * (SHUF_GAUSS_LANES * SHUF_GAUSS_DRAWS);
        low = static_cast<uint32_t>(index) + lane * SHUF_GAUSS_DRAWS;
        high = static_cast<uint32_t>(index >> 32);
#pragma unroll
        for (int p = 0; p < block; p += 4) {
            uint32_t early[4];
            draw(g, low + p / 4, high, early, word + p);
#pragma unroll
            for (int k = 0; k < 4; k++)
                s[p + k] = spread(early[k]) + table.template at<3, 0>(early[k], p + k) +
                           table.template at<0, 8>(early[k], p + k);
        }
        s[0] -= 48 * unit;
        transform(s);
    }

    /* The standard normal numbers at positions p to p + 3, as shuf__gauss_double() computes them. p
     * is a multiple of 4. */
    __device__ __forceinline__ void doubles(const Gauss &g, int p, double (&z)[4]) const
    {
        uint32_t second[4], rest[4];
#if CUDART_VERSION < 12000
        __syncwarp(); /* CUDA 11 would first draw the words of all positions, and spill */
#endif
        draw(g, low + (block + p) / 4, high, rest, second);
#pragma unroll
        for (int k = 0; k < 4; k++)
            z[k] = exact_of(s[p + k], word[p + k], second[k], rest[k]);
    }

    /* The standard normal numbers at positions p to p + 3 as floats: those of shuf__gauss_float()
     * or, with Sticky, of shuf__gauss_sticky(). Numbers that are too small are left for
     * too_small(). `least` becomes the least magnitude so far. */
    template <bool Sticky>
    __device__ __forceinline__ void floats(int p, float (&z)[4], float &least) const
    {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const float d = dither(word[p + k]);
            const float x = Sticky ? __fmaf_rz(d, 0x1p-37f, s[p + k]) : fmaf(d, 0x1p-37f, s[p + k]);
            least = fminf(least, fabsf(x));
            z[k] = negated(x, word[p + k]);
        }
    }
};

/* ---- Types of values. With Standard, std is 1 and mean is 0. ---- */

struct F64 {
    using Value = double;
    static constexpr int threads = tuning::gauss_wide_threads,
                         blocks_per_sm = tuning::gauss_wide_blocks_per_sm;
    using Out = double;
    using Pair = double2;

    template <bool Standard>
    static __device__ __forceinline__ void values(const Gauss &g, const Block &b, int p,
                                                  double (&y)[4], float &)
    {
        b.doubles(g, p, y);
        if (!Standard)
#pragma unroll
            for (int k = 0; k < 4; k++)
                y[k] = fma(y[k], g.std, g.mean);
    }
    static __device__ __forceinline__ double scaled(const Gauss &g, double z)
    {
        return fma(z, g.std, g.mean);
    }
    static __device__ __forceinline__ double2 pair(double a, double b)
    {
        return make_double2(a, b);
    }
    static __device__ __forceinline__ double one(double a)
    {
        return a;
    }
};

/* Types that are made from floats. With Sticky, a number is rounded towards 0 and its last bit is
 * set, because the scaled number is rounded again, to 16 bits. */
template <bool Sticky> struct OfF32 {
    using Value = float;
    static constexpr int threads = tuning::gauss_threads,
                         blocks_per_sm = tuning::gauss_blocks_per_sm;

    template <bool Standard>
    static __device__ __forceinline__ void values(const Gauss &g, const Block &b, int p,
                                                  float (&y)[4], float &least)
    {
        numbers(b, p, y, least);
#pragma unroll
        for (int k = 0; k < 4; k++)
            y[k] = scaled<Standard>(g, y[k]);
    }
    static __device__ __forceinline__ void numbers(const Block &b, int p, float (&z)[4],
                                                   float &least)
    {
        b.floats<Sticky>(p, z, least);
    }
    static __device__ __forceinline__ float narrowed(double z)
    {
        return Sticky ? __double2float_rz(z) : __double2float_rn(z);
    }
    template <bool Standard = false>
    static __device__ __forceinline__ float scaled(const Gauss &g, float z)
    {
        const float x = Sticky ? __uint_as_float(__float_as_uint(z) | 1) : z;
        return Standard ? x : fmaf(x, g.std_f32, g.mean_f32);
    }
};

struct F32 : OfF32<false> {
    using Out = float;
    using Pair = float2;

    static __device__ __forceinline__ float2 pair(float a, float b)
    {
        return make_float2(a, b);
    }
    static __device__ __forceinline__ float one(float a)
    {
        return a;
    }
};

struct F16 : OfF32<true> {
    using Out = __half;
    using Pair = __half2;

    static __device__ __forceinline__ __half2 pair(float a, float b)
    {
        return __floats2half2_rn(a, b);
    }
    static __device__ __forceinline__ __half one(float a)
    {
        return __float2half_rn(a);
    }
};

struct Bf16 : OfF32<true> {
    using Out = __nv_bfloat16;
    using Pair = __nv_bfloat162;

    static __device__ __forceinline__ __nv_bfloat162 pair(float a, float b)
    {
        return __floats2bfloat162_rn(a, b);
    }
    static __device__ __forceinline__ __nv_bfloat16 one(float a)
    {
        return __float2bfloat16_rn(a);
    }
};

/* The place in the superblock of position p of this lane's block. */
__device__ __forceinline__ uint32_t place(uint32_t p, uint32_t lane)
{
    return p / 2 * 64 + 2 * lane + p % 2;
}

/* ---- Numbers too small for a float's dither ---- */

__device__ __forceinline__ uint32_t one_of(const uint32_t (&four)[4], uint32_t k)
{
    const uint32_t low = k & 1 ? four[1] : four[0], upper = k & 1 ? four[3] : four[2];
    return k & 2 ? upper : low;
}

/* Computes value number `index` of the stream in double precision, by eight neighbouring lanes,
 * which give the same index. Lane `q` of them makes draw q of the value's block. Sums of floats are
 * exact. */
static __device__ __forceinline__ double exact(const Gauss &g, uint64_t index, uint32_t q)
{
    static_assert(block == 4 * 8, "a draw has four words");
    const auto lane = static_cast<uint32_t>(index % 64 / 2);
    const auto p = static_cast<uint32_t>(index % SHUF_GAUSS_SUPER / 64 * 2 + index % 2);
    const uint64_t first = (index / SHUF_GAUSS_SUPER * SHUF_GAUSS_LANES + lane) * SHUF_GAUSS_DRAWS;
    const auto low = static_cast<uint32_t>(first), high = static_cast<uint32_t>(first >> 32);
    const InGlobal table{lane};
    uint32_t word[4], rest[4];
    float sum = q == 0 ? -48 * unit : 0;
    draw(g, low + q, high, rest, word);
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        const float x = spread(rest[k]) + table.at<3, 0>(rest[k], 4 * q + k) +
                        table.at<0, 8>(rest[k], 4 * q + k);
        sum += __popc(p & (4 * q + k)) % 2 ? -x : x;
    }
#pragma unroll
    for (int other = 1; other < 8; other *= 2)
        sum += __shfl_xor_sync(~0u, sum, other);
    const uint32_t chosen = __shfl_sync(~0u, one_of(word, p % 4), static_cast<int>(p / 4), 8);
    draw(g, low + (block + p) / 4, high, rest, word);
    return exact_of(sum, chosen, one_of(word, p % 4), one_of(rest, p % 4));
}

/* The numbers that a warp must compute again in double precision. */
constexpr uint32_t lanes = 32, again_most = 2 * lanes;

struct Again {
    uint64_t *list; /* the warp's list, with room for again_most indices */
    uint32_t count;

    /* Computes the values of the list, four at a time. put(i, y) takes value y, which is number i
     * of the request. */
    template <typename Number, typename Put>
    __device__ __forceinline__ void make(const Gauss &g, uint32_t lane, const Put &put)
    {
        __syncwarp();
#pragma unroll 1
        for (uint32_t i = lane / 8; i - lane / 8 < count; i += 4) {
            const uint64_t index = list[min(i, count - 1)];
            const float z = Number::narrowed(exact(g, index, lane % 8));
            if (i < count && lane % 8 == 0 && index - g.offset < g.count)
                put(index - g.offset, Number::one(Number::scaled(g, z)));
        }
        count = 0;
        __syncwarp();
    }

    /* Adds values of this lane's block to the list; `small` has a bit for each position. */
    template <typename Number, typename Put>
    __device__ __forceinline__ void take(const Gauss &g, uint64_t super, uint32_t lane,
                                         uint32_t small, const Put &put)
    {
        for (uint32_t which = __ballot_sync(~0u, small != 0); which != 0;
             which = __ballot_sync(~0u, small != 0)) {
            const uint32_t p = __ffs(static_cast<int>(small)) - 1;
            const uint64_t index = super * SHUF_GAUSS_SUPER + place(p, lane);
            small &= small - 1;
            if (which >> lane & 1)
                list[count + __popc(which & ((1u << lane) - 1))] = index;
            count += __popc(which);
            if (count >= lanes)
                make<Number>(g, lane, put);
        }
    }
};

/* The superblocks `from` to `to` - 1, whose values are all requested, and up to two `edges`: `edge`
 * and edge + edge_step. */
struct Supers {
    uint64_t from, to, edge, edge_step;
    unsigned edges;

    explicit Supers(const shuf__stream &s)
    {
        const uint64_t end = s.offset + s.count, first = s.offset / SHUF_GAUSS_SUPER;
        const uint64_t last = (end - 1) / SHUF_GAUSS_SUPER;
        from = (s.offset + SHUF_GAUSS_SUPER - 1) / SHUF_GAUSS_SUPER;
        to = end / SHUF_GAUSS_SUPER;
        const bool before = first < from || first >= to, behind = last != first && last >= to;
        edges = static_cast<unsigned>(before) + static_cast<unsigned>(behind);
        edge = before ? first : last;
        edge_step = last - first;
    }
};

/* Whether small numbers are computed again in double precision. Doubles always are in double
 * precision. */
template <typename Number>
constexpr bool made_again = sizeof(typename Number::Value) < sizeof(double);

/* Bit q is set if the number at position q is too small for a float, for q = p to p + 7. `least` is
 * the least magnitude of these eight numbers. note(q, z) learns of each such number. */
template <typename Number, typename Note>
__device__ __forceinline__ uint32_t too_small(const Block &b, int p, float least, const Note &note)
{
    constexpr auto limit = static_cast<float>(SHUF_GAUSS_SMALL);
    uint32_t small = 0;
    if (least <= limit) {
#pragma unroll
        for (int q = p; q < p + 8; q += 4) {
            typename Number::Value z[4];
            Number::numbers(b, q, z, least);
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (fabsf(z[k]) <= limit) {
                    small |= 1u << (q + k);
                    note(q + k, z[k]);
                }
        }
    }
    return small;
}

} // namespace shuf::gauss

#endif
