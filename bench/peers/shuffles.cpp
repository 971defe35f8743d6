// SPDX-License-Identifier: MIT
//
// See shuffles.h. With PEER_ITEMS it also has the sort.
#include "shuffles.h"

#include <algorithm>
#include <memory>
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

#ifdef PEER_ITEMS

// The parallel sort is the merge sort of libstdc++'s parallel mode, on OpenMP.
#if defined(_OPENMP) && defined(__GLIBCXX__)
#include <parallel/algorithm>
#define PARALLEL_SORT
#endif

namespace
{

struct Keyed {
    uint64_t key, item;
    bool operator<(const Keyed &other) const
    {
        return key < other.key;
    }
};

void sort(Keyed *first, Keyed *end, int threads)
{
#ifdef PARALLEL_SORT
    const auto how = __gnu_parallel::multiway_mergesort_tag(static_cast<unsigned>(threads));
    __gnu_parallel::sort(first, end, how);
#else
    (void)threads;
    std::sort(first, end);
#endif
}

} // namespace

void peer_sort_shuffle(const uint64_t *from, uint64_t *to, uint64_t n, uint64_t seed, int threads)
{
    const std::unique_ptr<Keyed[]> keyed(new Keyed[n]);
    const uint64_t stream = draw_for(seed, 0).state;
#pragma omp parallel for num_threads(threads)
    for (uint64_t i = 0; i < n; i++) {
        draw at = {stream + i * UINT64_C(0x9E3779B97F4A7C15)}; // the state after i draws
        keyed[i] = {draw_word(&at), from[i]};
    }
    sort(keyed.get(), keyed.get() + n, threads);
#pragma omp parallel for num_threads(threads)
    for (uint64_t i = 0; i < n; i++)
        to[i] = keyed[i].item;
}

#endif
