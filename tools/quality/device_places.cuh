/* SPDX-License-Identifier: MIT
 *
 * Counts the words of the test `digits` on a GPU, as add_places() in stream_places.c does. A warp
 * takes 32 values at a time and transposes their digits. Each word then has one bit of one digit of
 * all 32 values, so a few operations compare 32 pairs of digits. Each thread counts for some pairs
 * of places.
 */
#ifndef SHUF__QUALITY_DEVICE_PLACES_CUH
#define SHUF__QUALITY_DEVICE_PLACES_CUH

#include "device.h"
#include "device_values.cuh"

namespace quality
{

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
