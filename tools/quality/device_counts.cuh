/* SPDX-License-Identifier: MIT
 *
 * Counts the words of the tests `signs` and `digits` on a GPU.
 */
#ifndef SHUF__QUALITY_DEVICE_COUNTS_CUH
#define SHUF__QUALITY_DEVICE_COUNTS_CUH

#include "device.cuh"

namespace quality
{

/* ---- The test `signs` ---- */

/* The code has the operations of stream_blocks.c and of shuf__law_spread() in the same order, and
 * without fused multiply-adds. So a sum near an edge falls in the same cell as on the CPU. A warp
 * takes a superblock. Each thread takes one block of it, and reads 4 or 8 values at a time. */

/* ---- Spread ---- */

/* Moves a value as shuf__law_spread() does: uniformly among the numbers that are rounded to it. */
template <typename T> struct Spread {
    static __device__ double move(T value, uint64_t)
    {
        return to_double(value);
    }
};

__device__ inline double power_of_two(int exponent)
{
    return __longlong_as_double(static_cast<long long>(exponent + 1023) << 52);
}

/* The same as scatter() in stream_law.c. */
__device__ inline double scatter(uint64_t number)
{
    uint64_t h = (number + 1) * 0x9E3779B97F4A7C15U;
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9U;
    h = (h ^ h >> 27) * 0x94D049BB133111EBU;
    return __dmul_rn(__dadd_rn(static_cast<double>((h ^ h >> 31) >> 11), 0.5), 0x1p-53);
}

/* LEAST is the exponent of the smallest normalised number. */
template <typename T, int LEAST, int DIGITS> struct RoundedSpread {
    static __device__ double move(T value, uint64_t number)
    {
        const double z = to_double(value), size = fabs(z);
        const auto bits = static_cast<uint64_t>(__double_as_longlong(size));
        const int exponent = max(static_cast<int>(bits >> 52) - 1023, LEAST);
        const double half = power_of_two(exponent - DIGITS);
        const bool narrow = size == power_of_two(exponent) && exponent > LEAST;
        const double low = __dsub_rn(size, narrow ? half / 2 : half);
        const double width = __dsub_rn(__dadd_rn(size, half), low);
        return copysign(__dadd_rn(low, __dmul_rn(scatter(number), width)), z);
    }
};

template <> struct Spread<__half> : RoundedSpread<__half, -14, 11> {
};
template <> struct Spread<__nv_bfloat16> : RoundedSpread<__nv_bfloat16, -126, 8> {
};

/* A block of a superblock. */
template <typename T> struct SpreadBlock {
    const T *superblock;
    uint64_t number; /* number of its first value */
    unsigned lane;

    __device__ double at(unsigned position) const
    {
        const unsigned i = position / 2 * 64 + 2 * lane + position % 2;
        return Spread<T>::move(superblock[i], number + i);
    }
};

/* ---- Cells ---- */

/* Finds cells as shuf__cell() does, by a table of guesses. Each multiple of 1 / per_unit has a
 * guess for the numbers nearest to it. A guess is twice the cell of these numbers. It is one more
 * if the edge of the next cell lies among them. */
class Cells
{
  public:
    /* Fills the guesses. All threads of the block call this function, and it synchronises them.
     * `from` has all edges; the first and the last edge are infinite. */
    __device__ void fill(const double *from)
    {
        for (unsigned i = threadIdx.x; i <= SHUF__DEVICE_CELLS; i += blockDim.x)
            edge_[i] = from[i];
        for (unsigned i = threadIdx.x; i < 2 * reach; i += blockDim.x) {
            const double middle = static_cast<int>(i) - reach;
            const unsigned cell = search(from, (middle - 0.5) / per_unit);
            const bool is_split = from[cell + 1] <= (middle + 0.5) / per_unit;
            guess_[i] = static_cast<uint16_t>(2 * cell + is_split);
        }
    }

    /* Adds 1.5 * 2^52. The low word of the sum is then the nearest integer. */
    __device__ unsigned find(double z) const
    {
        const int nearest = __double2loint(__fma_rn(z, per_unit, 0x1.8p52));
        const unsigned guess = guess_[max(-reach, min(nearest, reach - 1)) + reach];
        unsigned cell = guess / 2;
        if (guess % 2 && z >= edge_[cell + 1])
            cell++;
        return cell;
    }

  private:
    /* Cells are wider than 2^-7, and their edges are below 4, so no guess has two edges. */
    static constexpr int reach = 4096;
    static constexpr double per_unit = 1024;

    /* The cell of z. */
    static __device__ unsigned search(const double *edge, double z)
    {
        unsigned low = 0, high = SHUF__DEVICE_CELLS;
        while (high - low > 1) {
            const unsigned middle = (low + high) / 2;
            if (z >= edge[middle])
                low = middle;
            else
                high = middle;
        }
        return low;
    }

    double edge_[SHUF__DEVICE_CELLS + 1];
    uint16_t guess_[2 * reach];
};

/* ---- Choices of signs ---- */

/* Moves bit i of `number` to the place of MASK's i-th bit. */
template <unsigned MASK> __device__ constexpr unsigned deposit(unsigned number)
{
    unsigned result = 0;
    for (unsigned mask = MASK, bit = 0; mask != 0; mask &= mask - 1, bit++)
        result |= (number >> bit & 1) * (mask & ~(mask - 1));
    return result;
}

template <unsigned VALUES> __device__ void transform(double (&x)[VALUES])
{
#pragma unroll
    for (unsigned step = 1; step < VALUES; step *= 2)
#pragma unroll
        for (unsigned p = 0; p < VALUES; p++)
            if (!(p & step)) {
                const double sum = x[p] + x[p + step], difference = x[p] - x[p + step];
                x[p] = sum;
                x[p + step] = difference;
            }
}

/* See add_cube() in stream_blocks.c. */
template <unsigned MASK, unsigned VALUES, typename T>
__device__ void add_cube(const SpreadBlock<T> &block, double scale, const Cells &cells,
                         unsigned *tally)
{
    constexpr unsigned signs = VALUES == 4 ? 2 : 16;
#pragma unroll 1
    for (unsigned coset = 0; coset < 32 / VALUES; coset++) {
        const unsigned base = deposit<~MASK & 31>(coset);
        double value[VALUES];
#pragma unroll
        for (unsigned v = 0; v < VALUES; v++)
            value[v] = __dmul_rn(scale, block.at(base | deposit<MASK>(v)));
#pragma unroll 1
        for (unsigned i = 0; i < signs; i++) {
            const unsigned sign = VALUES == 4 ? i << 3 : (i & 1) << 3 | i >> 1 << 5;
            double x[VALUES];
#pragma unroll
            for (unsigned v = 0; v < VALUES; v++)
                x[v] = sign >> v & 1 ? -value[v] : value[v];
            transform(x);
            unsigned cell[VALUES]; /* found before any addition, because loads cannot pass it */
#pragma unroll
            for (unsigned v = 0; v < VALUES; v++)
                cell[v] = cells.find(x[v]);
#pragma unroll
            for (unsigned v = 0; v < VALUES; v++)
                atomicAdd(&tally[SHUF__DEVICE_CELLS * i + cell[v]], 1U);
        }
    }
}

constexpr unsigned sign_threads = 256, sign_blocks = 132 * 5; /* an H200 runs so many at a time */

/* scale4 and scale8 are for sums of 4 and of 8 values. A launch adds at most 2^28 to the cells of a
 * choice of signs. */
template <typename T>
__global__ void __launch_bounds__(sign_threads)
    sign_kernel(const T *values, uint64_t number, uint64_t count, double scale4, double scale8,
                const double *edges, unsigned long long *words)
{
    constexpr unsigned all = SHUF__DEVICE_CELLS * SHUF__DEVICE_SIGNS, warps = sign_threads / 32;
    constexpr unsigned two = 2 * SHUF__DEVICE_CELLS;
    __shared__ Cells cells;
    __shared__ unsigned tally[all];
    cells.fill(edges);
    for (unsigned i = threadIdx.x; i < all; i += sign_threads)
        tally[i] = 0;
    __syncthreads();
    const uint64_t warp = uint64_t{blockIdx.x} * warps + threadIdx.x / 32;
    for (uint64_t first = warp * 1024; first < count; first += uint64_t{gridDim.x} * warps * 1024) {
        const SpreadBlock<T> block{values + first, number + first, threadIdx.x % 32};
        add_cube<3, 4>(block, scale4, cells, tally);
        add_cube<12, 4>(block, scale4, cells, tally + two);
        add_cube<24, 4>(block, scale4, cells, tally + 2 * two);
        add_cube<7, 8>(block, scale8, cells, tally + 3 * two);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < all; i += sign_threads)
        atomicAdd(&words[i], static_cast<unsigned long long>(tally[i]));
}

/* ---- The test `digits` ---- */

/* Counts as add_places() in stream_digits.c does. A warp takes 32 values at a time and transposes
 * their digits. Each word then has one bit of one digit of all 32 values, so a few operations
 * compare 32 pairs of digits. Each thread counts for some pairs of places. */

/* Exchanges bit b of lane l's word with bit l of lane b's word. */
__device__ inline unsigned transpose_bits(unsigned word, unsigned lane)
{
    unsigned mask = 0xFFFF;
#pragma unroll
    for (unsigned step = 16; step > 0; step /= 2, mask ^= mask << step) {
        const unsigned other = __shfl_xor_sync(~0U, word, step);
        word = lane & step ? (word & ~mask) | (other >> step & mask)
                           : (word & mask) | (other & mask) << step;
    }
    return word;
}

/* The bits of 32 values at the 40 binary places, and the same for their neighbours and for the
 * values 64 later. */
class Planes
{
  public:
    static constexpr unsigned digits = SHUF__DEVICE_RELATIONS * SHUF__DEVICE_PLACES;

    /* Fills the planes from the lane's value x, and from y, the value 64 later. All lanes call this
     * function, and it synchronises them. */
    __device__ void fill(double x, double y, unsigned lane)
    {
        const uint64_t a = bits_of(x), b = bits_of(y);
        const auto low_a = transpose_bits(static_cast<unsigned>(a), lane);
        const auto low_b = transpose_bits(static_cast<unsigned>(b), lane);
        const unsigned rest = transpose_bits(static_cast<unsigned>(a >> 32 & 255) |
                                                 static_cast<unsigned>(b >> 32 & 255) << 8 |
                                                 unsigned{x < 0} << 16 | unsigned{y < 0} << 17,
                                             lane);
        put_value(lane, low_a);
        put(apart, lane, low_b);
        if (lane < 8)
            put_value(32 + lane, rest);
        else if (lane < 16)
            put(apart, 24 + lane, rest);
        else if (lane == 16) {
            negative_[own] = rest;
            negative_[neighbour] = neighbours(rest);
        } else if (lane == 17)
            negative_[apart] = rest;
    }

    /* Compares the two digits of each lane. Bit l of *equal is set if those of lane l are equal.
     * Bit l of *opposite is set if their sum is 15. */
    __device__ void compare(unsigned one, unsigned other, unsigned *equal, unsigned *opposite) const
    {
        const Digit a = digit_[one], b = digit_[other];
        unsigned some = 0, all = ~0U;
#pragma unroll
        for (unsigned i = 0; i < 4; i++) {
            some |= a.bit[i] ^ b.bit[i];
            all &= a.bit[i] ^ b.bit[i];
        }
        *equal = ~some;
        *opposite = all;
    }

    /* Bit l is the exclusive or of two facts: the value's digit is 8 or more; the other value is
     * negative. */
    __device__ unsigned compare_sign(unsigned place, unsigned relation) const
    {
        return digit_[place].bit[3] ^ negative_[relation];
    }

  private:
    enum { own, neighbour, apart };

    struct alignas(16) Digit {
        unsigned bit[4];
    };

    static __device__ uint64_t bits_of(double x)
    {
        return static_cast<unsigned long long>(fmin(fabs(x), 7.99) * 0x1p48);
    }

    static __device__ unsigned neighbours(unsigned word)
    {
        return (word & 0x55555555) << 1 | (word >> 1 & 0x55555555);
    }

    /* Bit 0 is the lowest bit of the last place. */
    __device__ void put(unsigned relation, unsigned bit, unsigned word)
    {
        const unsigned place = SHUF__DEVICE_PLACES - 1 - bit / 4;
        digit_[SHUF__DEVICE_PLACES * relation + place].bit[bit % 4] = word;
    }

    __device__ void put_value(unsigned bit, unsigned word)
    {
        put(own, bit, word);
        put(neighbour, bit, neighbours(word));
    }

    Digit digit_[digits];
    unsigned negative_[SHUF__DEVICE_RELATIONS];
};

/* The counts of one thread: for the pairs of places number lane, lane + 32, ..., and for the signs
 * at one place. */
template <unsigned PLACES> class PlaceTally
{
  public:
    explicit __device__ PlaceTally(unsigned lane) : lane_(lane)
    {
#pragma unroll
        for (unsigned i = 0; i < items; i++) {
            const Pair at(lane + 32 * i);
            one_[i] = at.one;
            other_[i] = at.is_counted() ? SHUF__DEVICE_PLACES * at.relation + at.other : 0;
        }
    }

    __device__ void take(const Planes &planes)
    {
#pragma unroll
        for (unsigned i = 0; i < items; i++) {
            unsigned equal, opposite;
            planes.compare(one_[i], other_[i], &equal, &opposite);
            equal_[i] += __popc(equal);
            opposite_[i] += __popc(opposite);
        }
        sign_ += __popc(planes.compare_sign(lane_ % PLACES, sign_relation()));
    }

    __device__ void add(unsigned long long *words) const
    {
        constexpr unsigned most = SHUF__DEVICE_PLACES;
#pragma unroll
        for (unsigned i = 0; i < items; i++) {
            const Pair at(lane_ + 32 * i);
            const unsigned to = SHUF__DEVICE_RELATION * at.relation + most * at.one + at.other;
            if (at.is_counted()) {
                atomicAdd(&words[to], static_cast<unsigned long long>(equal_[i]));
                atomicAdd(&words[to + most * most], static_cast<unsigned long long>(opposite_[i]));
            }
        }
        if (lane_ < SHUF__DEVICE_RELATIONS * PLACES)
            atomicAdd(
                &words[SHUF__DEVICE_RELATION * sign_relation() + 2 * most * most + lane_ % PLACES],
                static_cast<unsigned long long>(sign_));
    }

  private:
    struct Pair {
        unsigned relation, one, other;

        explicit __device__ Pair(unsigned number)
            : relation(number / (PLACES * PLACES)), one(number / PLACES % PLACES),
              other(number % PLACES)
        {
        }

        /* Two digits of the same value are compared only once. */
        __device__ bool is_counted() const
        {
            return relation < SHUF__DEVICE_RELATIONS && (relation > 0 || one < other);
        }
    };

    static constexpr unsigned items = (SHUF__DEVICE_RELATIONS * PLACES * PLACES + 31) / 32;

    __device__ unsigned sign_relation() const
    {
        return lane_ / PLACES % SHUF__DEVICE_RELATIONS;
    }

    unsigned lane_, one_[items], other_[items], equal_[items] = {}, opposite_[items] = {};
    unsigned sign_ = 0;
};

constexpr unsigned place_threads = 128,
                   place_blocks = 132 * 4; /* an H200 runs so many at the same time */

/* PLACES is the number of places of the type. A launch of 2^28 values adds at most 2^27 to a
 * count. */
template <unsigned PLACES, typename T>
__global__ void __launch_bounds__(place_threads)
    place_kernel(const T *values, uint64_t count, unsigned long long *words)
{
    constexpr unsigned warps = place_threads / 32;
    __shared__ Planes all_planes[warps];
    const unsigned lane = threadIdx.x % 32;
    Planes &planes = all_planes[threadIdx.x / 32];
    PlaceTally<PLACES> tally(lane);
    for (uint64_t s = uint64_t{blockIdx.x} * warps + threadIdx.x / 32; s < count / 64;
         s += uint64_t{gridDim.x} * warps) {
        const T *x = values + s / 2 * 128 + s % 2 * 32 + lane;
        planes.fill(to_double(x[0]), to_double(x[64]), lane);
        __syncwarp();
        tally.take(planes);
        __syncwarp();
    }
    tally.add(words);
}

} // namespace quality

#endif
