/* SPDX-License-Identifier: MIT
 *
 * See random.h. The generator is SplitMix64.
 */
#include "random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t state;

void random_start(const char *test)
{
    const char *given = getenv("SHUF_TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    state = given ? strtoull(given, NULL, 0)
                  : (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + (uint64_t)getpid();
    printf("%s: SHUF_TEST_SEED=%" PRIu64 " repeats this run\n", test, state);
    fflush(stdout);
}

uint64_t random_u64(void)
{
    uint64_t z = state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

uint64_t random_below(uint64_t limit)
{
    return random_u64() % limit;
}

uint64_t random_size(uint64_t limit)
{
    unsigned bits = 0;
    while (bits < 63 && limit >> (bits + 1) != 0)
        bits++;
    uint64_t size = 1 + random_below(UINT64_C(1) << random_below(bits + 1));
    return size < limit ? size : limit;
}

void random_sizes(uint64_t n, uint64_t world, uint64_t *sizes)
{
    memset(sizes, 0, world * sizeof *sizes);
    for (unsigned cuts = 0; cuts < 3; cuts++) {
        const uint64_t take = random_below(n + 1);
        sizes[random_below(world)] += take;
        n -= take;
    }
    sizes[random_below(world)] += n;
}
