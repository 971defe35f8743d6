// SPDX-License-Identifier: MIT
//
// See shuffles.h.
#include "shuffles.h"

#include <algorithm>
#include <numeric>
#include <random>

void peer_std_shuffle(uint32_t *values, uint64_t n)
{
    static std::mt19937_64 engine;
    std::iota(values, values + n, 0u);
    std::shuffle(values, values + n, engine);
}

void peer_std_shuffle_items(const uint64_t *from, uint64_t *to, uint64_t n)
{
    static std::mt19937_64 engine;
    std::copy(from, from + n, to);
    std::shuffle(to, to + n, engine);
}
